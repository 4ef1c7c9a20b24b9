// Runs what should throw, and gives the Error to look at.
#pragma once

#include "spillway/error.hpp"

#include <catch2/catch.hpp>

namespace spillway::test {

template <class Action>
Error error_of(Action&& action) {
    try {
        action();
    } catch (const Error& error) {
        return error;
    }
    FAIL("no Error was thrown");
    return {ErrorCode::runtime, "", "", ""};
}

inline bool says(const Error& error, const std::string& text) {
    return std::string(error.what()).find(text) != std::string::npos;
}

} // namespace spillway::test
