// Random numbers that are the same on every machine: std::mt19937_64's raw output, which the standard fixes, and
// integer arithmetic on it. (The standard's distributions, and functions such as log, may differ between libraries.)
#pragma once

#include <cstdint>
#include <random>

namespace simulate {

class Random {
public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}

    /// A number in [0, bound); bound > 0. Biased by less than bound / 2^32: nothing here could tell.
    std::uint64_t below(std::uint64_t bound) { return (engine_() >> 32) * bound >> 32; }
    /// A number in [low, high].
    std::int64_t between(std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low + 1)));
    }
    /// True with this probability.
    bool chance(double probability) {
        return static_cast<double>(engine_() >> 11) < probability * 9007199254740992.0; // 2^53
    }
    /// About normal: the sum of twelve uniform numbers has variance 1.
    double normal(double mean, double deviation) {
        double sum = -6;
        for (int i = 0; i < 12; ++i) sum += static_cast<double>(engine_() >> 11) / 9007199254740992.0;
        return mean + deviation * sum;
    }

private:
    std::mt19937_64 engine_;
};

} // namespace simulate
