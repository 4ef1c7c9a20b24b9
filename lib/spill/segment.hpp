// What lies in a spill file, byte for byte: docs/segment_format.md in code.
#pragma once

#include "base/spill_place.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace spillway {

inline constexpr std::uint64_t segment_header_bytes = 4096;
inline constexpr std::uint64_t stored_alignment = 8;

/// Begins every segment. The rest of the 4 KiB is zero.
struct SegmentHeader {
    std::array<char, 8> magic{'S', 'P', 'I', 'L', 'L', 'S', 'E', 'G'};
    std::uint32_t version = 2;
    std::uint32_t byte_order = 0x01020304; ///< As the machine that wrote it stores it.
    std::array<std::uint64_t, 2> run{};    ///< Random; the same in all segments of a run.
    std::uint64_t salt = 0;                ///< Seed of the records' hashes; differs for each use of a segment.
    std::uint32_t segment = 0;
    std::uint32_t reserved = 0;
    std::uint64_t bytes = 0; ///< Of the segment.
    std::uint64_t hash = 0;  ///< XXH3-64 of the fields before it.
};
static_assert(sizeof(SegmentHeader) == 64);

/// Begins every record; the stored bytes follow at once, and then zeros up to a multiple of 8.
struct StoredHeader {
    std::array<std::uint64_t, 4> key{};
    std::uint32_t stored = 0; ///< Bytes that follow.
    std::uint32_t raw = 0;    ///< Bytes of the payload: as many, or more where it is compressed.
    std::uint64_t hash =
        0; ///< XXH3-64 of the stored bytes, seeded with that of this header with hash = 0 and the salt.
};
static_assert(sizeof(StoredHeader) == 48);

/// Header and stored bytes, padded.
[[nodiscard]] constexpr std::uint64_t stored_bytes(std::uint32_t length) noexcept {
    return (sizeof(StoredHeader) + std::uint64_t{length} + stored_alignment - 1) / stored_alignment * stored_alignment;
}

[[nodiscard]] SegmentHeader make_segment_header(const std::array<std::uint64_t, 2>& run, std::uint64_t salt,
                                                std::uint32_t segment, std::uint64_t bytes) noexcept;

[[nodiscard]] StoredHeader make_stored_header(const std::array<std::uint64_t, 4>& key, std::uint64_t salt,
                                              std::uint32_t raw, std::span<const std::byte> stored) noexcept;

/// What a place keeps of a header.
[[nodiscard]] constexpr std::uint32_t check_of(const StoredHeader& header) noexcept {
    return static_cast<std::uint32_t>(header.hash);
}

/// Why the first 4 KiB are not those of the segment that is described, or nullptr if they are.
[[nodiscard]] const char* segment_fault(std::span<const std::byte, segment_header_bytes> begin,
                                        const SegmentHeader& expected) noexcept;

/// Where a place's record begins in its segment; nothing if a segment of so many bytes has no such place.
[[nodiscard]] constexpr std::optional<std::uint64_t> record_begin(const SpillPlace& place,
                                                                  std::uint64_t segment_bytes) noexcept {
    const std::uint64_t begin = std::uint64_t{place.offset} * stored_alignment;
    const bool inside =
        begin >= segment_header_bytes && begin <= segment_bytes && stored_bytes(place.length) <= segment_bytes - begin;
    return inside ? std::optional(begin) : std::nullopt;
}

/// Bytes behind a record's stored ones.
[[nodiscard]] constexpr std::size_t padding_bytes(std::uint32_t length) noexcept {
    return static_cast<std::size_t>(stored_bytes(length) - sizeof(StoredHeader) - length);
}

/// Why a record is not what its place says, or nullptr if it is. Only then its raw length may be believed, which is no
/// more than its stored bytes can have been compressed from.
[[nodiscard]] const char* stored_fault(const StoredHeader& header, const SpillPlace& place, std::uint64_t salt,
                                       std::span<const std::byte> stored,
                                       std::span<const std::byte> padding = {}) noexcept;

} // namespace spillway
