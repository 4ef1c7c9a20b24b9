// Arithmetic on lengths that come from files: overflow is an answer, not undefined.
//
//     std::optional<std::uint64_t> end = checked_add(offset, length);
//     if (!end || *end > file_size) ...
#pragma once

#include <concepts>
#include <optional>

namespace spillway {

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_add(T a, T b) noexcept {
    T sum{};
    if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
    return sum;
}

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_multiply(T a, T b) noexcept {
    T product{};
    if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
    return product;
}

/// The next multiple of `unit`, a power of two, that is at least `value`.
template <std::unsigned_integral T>
[[nodiscard]] constexpr std::optional<T> checked_round_up(T value, T unit) noexcept {
    const std::optional<T> above = checked_add(value, static_cast<T>(unit - 1));
    if (!above) return std::nullopt;
    return static_cast<T>(*above & ~static_cast<T>(unit - 1));
}

} // namespace spillway
