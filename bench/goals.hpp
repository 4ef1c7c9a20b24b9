// How a benchmark says whether a figure is what is wanted: a line of its own for each goal, which begins with "goal". One
// that is missed fails no run: only wrong results do, for figures depend on the machine and what else it does.
#pragma once

#include <cstdio>
#include <string>

namespace bench {

[[nodiscard]] inline const char* told(bool met) {
    return met ? "met" : "MISSED";
}

/// "at least 10: 12.34 (met)"
[[nodiscard]] inline std::string judged(double figure, double at_least) {
    char text[64];
    std::snprintf(text, sizeof text, "at least %.3g: %.2f (%s)", at_least, figure, told(figure >= at_least));
    return text;
}

} // namespace bench
