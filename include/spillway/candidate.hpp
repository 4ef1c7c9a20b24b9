// The words a stage meets: the key that orders the output, and a family's shared parent.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>

namespace spillway {

/// Most levels of fan-out a pipeline may have below its source, plus one for the source itself.
inline constexpr std::size_t max_key_depth = 4;

/// The place of a candidate in the order of the output: source ordinal, then one ordinal for each fan-out.
/// A plain value; keys of one pipeline and stage have the same depth and compare as paths.
struct Key {
    std::array<std::uint64_t, max_key_depth> ordinals{};
    std::uint32_t depth = 0; ///< How many ordinals count.

    friend auto operator<=>(const Key& a, const Key& b) noexcept { return a.ordinals <=> b.ordinals; }
    friend bool operator==(const Key& a, const Key& b) noexcept = default;
};

/// "17.3": for messages.
[[nodiscard]] std::string to_string(const Key& key);

} // namespace spillway
