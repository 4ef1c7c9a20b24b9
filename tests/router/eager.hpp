// A router's options for tests: always to the device where it works, so that a test does not hang on the machine's load.
#pragma once

#include "spillway/router.hpp"

#include <chrono>

namespace spillway::test {

inline RouterOptions eager() {
    RouterOptions options;
    options.low = 0;
    options.high = 0;
    options.switch_cost = 1;
    options.retry = std::chrono::milliseconds(1);
    return options;
}

} // namespace spillway::test
