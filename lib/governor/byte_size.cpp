#include "base/checked.hpp"
#include "spillway/governor.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace spillway {
namespace {

[[noreturn]] void refuse(std::string_view flag, std::string_view text, const char* why) {
    throw Error(ErrorCode::usage, "reading " + std::string(flag), '"' + std::string(text) + '"',
                std::string(why) + "; a size is a number with K, M, G or T, such as 512M or 1.5GiB");
}

bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

/// Shift for the unit's name, or -1.
int unit_shift(std::string_view unit) noexcept {
    std::string lower;
    for (const char c : unit) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (lower.empty() || lower == "b") return 0;
    const std::size_t index = std::string_view("kmgt").find(lower[0]);
    const std::string_view rest = std::string_view(lower).substr(1);
    if (index == std::string_view::npos || !(rest.empty() || rest == "b" || rest == "ib")) return -1;
    return static_cast<int>(index + 1) * 10;
}

} // namespace

std::uint64_t parse_bytes(std::string_view text, std::string_view flag) {
    constexpr std::uint64_t beyond = std::uint64_t{1} << 63U;
    std::size_t at = 0;
    while (at != text.size() && is_digit(text[at])) ++at;
    std::uint64_t whole = 0;
    if (at != 0) {
        const auto [rest, error] = std::from_chars(text.data(), text.data() + at, whole);
        if (error != std::errc()) refuse(flag, text, "it is too large");
    }
    double fraction = 0;
    std::size_t digits = at;
    if (at != text.size() && text[at] == '.') {
        double weight = 1;
        for (++at; at != text.size() && is_digit(text[at]); ++at, ++digits) {
            weight /= 10;
            fraction += weight * (text[at] - '0');
        }
    }
    if (digits == 0) refuse(flag, text, "it does not begin with a number");
    std::string_view unit = text.substr(at);
    while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
    const int shift = unit_shift(unit);
    if (shift < 0) refuse(flag, text, "its unit is unknown");
    const std::uint64_t scale = std::uint64_t{1} << static_cast<unsigned>(shift);
    const auto bytes = checked_multiply(whole, scale);
    if (!bytes || *bytes >= beyond) refuse(flag, text, "it is too large");
    return *bytes + static_cast<std::uint64_t>(std::round(fraction * static_cast<double>(scale)));
}

std::string format_bytes(std::uint64_t bytes) {
    if (bytes < 1024) return std::to_string(bytes) + " B";
    double value = static_cast<double>(bytes);
    const char* unit = "";
    for (const char* larger : {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}) {
        if (value < 1024) break;
        value /= 1024;
        unit = larger;
    }
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f %s", value, unit); // NOLINT(cppcoreguidelines-pro-type-vararg)
    return text.data();
}

} // namespace spillway
