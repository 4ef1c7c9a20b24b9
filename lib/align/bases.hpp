// Bases as small numbers, with borders that equal nothing, so that runs of equal bases end without a bounds check.
//
//     CodedBases query(CodedBases::Side::query), target(CodedBases::Side::target);
//     query.assign("ACGN");
//     target.assign("TACGN");
//     equal_after(query.at(0), target.at(1));   // 3: N equals nothing, not even N
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace spillway {

class CodedBases {
public:
    enum class Side : std::uint8_t { query = 4, target = 8 };

    /// A, C, G, T are 0 to 3 on both sides; what is unknown, and the borders, have a number of their own on each side.
    explicit CodedBases(Side side) : side_(side) {}

    void assign(std::string_view bases) {
        const auto strange = static_cast<std::uint8_t>(side_);
        size_ = bases.size();
        codes_.resize(size_ + 2 * border);
        std::memset(codes_.data(), strange, border);
        std::memset(codes_.data() + border + size_, strange, border);
        std::uint8_t* to = codes_.data() + border;
        const char* from = bases.data();
        std::uint8_t any = 0;
        const std::size_t size = size_; // a member might change with what is stored, as far as the compiler knows
        for (std::size_t i = 0; i < size; ++i) { // masks of a byte, which compilers turn into vector code
            using Byte = std::uint8_t;
            const auto lower = static_cast<Byte>(from[i] | 0x20);
            const auto is = [&](char base) { return static_cast<Byte>(lower == static_cast<Byte>(base) ? 0xFF : 0); };
            const auto known = static_cast<Byte>(is('a') | is('c') | is('g') | is('t'));
            to[i] = static_cast<Byte>((is('c') & 1) | (is('g') & 2) | (is('t') & 3) | (strange & ~known));
            any = static_cast<Byte>(any | to[i]);
        }
        has_unknown_ = any > 3;
    }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool has_unknown() const noexcept { return has_unknown_; }
    [[nodiscard]] std::size_t unknown() const noexcept {
        if (!has_unknown_) return 0;
        return static_cast<std::size_t>(std::count(at(0), at(0) + size_, static_cast<std::uint8_t>(side_)));
    }

    /// The base at `position`, -1 to size(): eight bases may be read from there on, and eight before it.
    [[nodiscard]] const std::uint8_t* at(std::ptrdiff_t position) const noexcept {
        return codes_.data() + static_cast<std::ptrdiff_t>(border) + position;
    }

private:
    static constexpr std::size_t border = 16;

    Side side_;
    std::size_t size_ = 0;
    bool has_unknown_ = false;
    std::vector<std::uint8_t> codes_;
};

[[nodiscard]] inline std::uint64_t eight_bases(const std::uint8_t* at) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    if constexpr (std::endian::native == std::endian::big) {
        std::uint64_t swapped = 0;
        for (int i = 0; i < 8; ++i) swapped |= (word >> (8 * i) & 0xFF) << (56 - 8 * i);
        word = swapped;
    }
    return word;
}

/// How many bases from `query` and `target` on are equal. One of the two must end in its border.
[[nodiscard]] inline std::ptrdiff_t equal_after(const std::uint8_t* query, const std::uint8_t* target) noexcept {
    for (std::ptrdiff_t length = 0;; length += 8) {
        const std::uint64_t differ = eight_bases(query + length) ^ eight_bases(target + length);
        if (differ != 0) return length + std::countr_zero(differ) / 8;
    }
}

/// How many bases before `query` and `target` are equal.
[[nodiscard]] inline std::ptrdiff_t equal_before(const std::uint8_t* query, const std::uint8_t* target) noexcept {
    for (std::ptrdiff_t length = 0;; length += 8) {
        const std::uint64_t differ = eight_bases(query - length - 8) ^ eight_bases(target - length - 8);
        if (differ != 0) return length + std::countl_zero(differ) / 8;
    }
}

} // namespace spillway
