// Probabilities as fixed-point phred numbers: sums and products that give the same bits on every machine.
//
//     caller::Phred q = caller::from_phred(30);               // 0.001
//     caller::Phred either = caller::either(q, q);            // 0.002, about 27
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>

namespace caller {

/// -10 log10 of a probability or likelihood, in units of 1/64: larger is less likely, adding multiplies.
using Phred = std::int64_t;

inline constexpr Phred phred_unit = 64;

/// So unlikely that it changes no sum; small enough to be added many times.
inline constexpr Phred impossible = Phred{1} << 40;

[[nodiscard]] constexpr Phred from_phred(std::int64_t phred) {
    return phred * phred_unit;
}

/// To whole phred, halves up.
[[nodiscard]] constexpr std::int64_t to_phred(Phred value) {
    return (value + phred_unit / 2) / phred_unit;
}

namespace detail {

// Only + - * /, which IEEE rounds alike everywhere; libm's log10 and pow differ between machines in the last bit.
constexpr double natural_log_of_one_plus(double x) { // 0 <= x <= 1
    const double z = x / (2 + x);
    double term = z, sum = 0;
    for (int k = 1; k < 60; k += 2) {
        sum += term / k;
        term *= z * z;
    }
    return 2 * sum;
}

constexpr double natural_log(double x) { // x >= 1
    double log = 0;
    for (; x > 2; x /= 2) log += natural_log_of_one_plus(1);
    return log + natural_log_of_one_plus(x - 1);
}

inline constexpr double natural_log_of_ten = 2.302585092994045684;

constexpr double exponential(double x) { // |x| <= 1
    double term = 1, sum = 1;
    for (int k = 1; k < 25; ++k) {
        term *= x / k;
        sum += term;
    }
    return sum;
}

/// Difference in units beyond which the less likely summand no longer counts: its share rounds to nothing.
inline constexpr std::size_t gain_size = 28 * 64;

/// gain[d]: how much likelier, in units, the sum of two probabilities is than the larger, which is d units likelier.
inline constexpr auto gain = [] {
    std::array<std::uint16_t, gain_size> table{};
    const double step = exponential(-natural_log_of_ten / (10 * phred_unit));
    double ratio = 1;
    for (auto& entry : table) {
        const double units = 10 * phred_unit * natural_log_of_one_plus(ratio) / natural_log_of_ten;
        entry = static_cast<std::uint16_t>(units + 0.5);
        ratio *= step;
    }
    return table;
}();

/// Phred of a correct base, by quality: -10 log10(1 - 10^(-q/10)); quality 0 as 1.
inline constexpr auto correct = [] {
    std::array<std::uint16_t, 94> table{};
    const double step = exponential(-natural_log_of_ten / 10);
    double error = 1;
    for (auto& entry : table) {
        const double e = error < 0.75 ? error : 0.75;
        entry = static_cast<std::uint16_t>(10 * phred_unit * natural_log(1 / (1 - e)) / natural_log_of_ten + 0.5);
        error *= step;
    }
    return table;
}();

} // namespace detail

/// The probability that one of two exclusive things holds.
[[nodiscard]] inline Phred either(Phred a, Phred b) {
    const Phred low = a < b ? a : b;
    const auto apart = static_cast<std::size_t>(a < b ? b - a : a - b);
    return apart < detail::gain_size ? low - detail::gain[apart] : low;
}

/// Of the ratio of two counts, 0 <= part <= whole, 0 < whole.
[[nodiscard]] constexpr Phred from_ratio(std::int64_t part, std::int64_t whole) {
    if (part == 0) return impossible;
    const double times = static_cast<double>(whole) / static_cast<double>(part);
    return static_cast<Phred>(10 * phred_unit * detail::natural_log(times) / detail::natural_log_of_ten + 0.5);
}

/// -10 log10 of one half, in units.
inline constexpr Phred half = 193;

} // namespace caller
