// What lies in a spill file, byte for byte: docs/segment_format.md in code.
#pragma once

#include "base/spill_place.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
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

/// Why a record is not what its place says, or nullptr if it is. Only then its raw length may be believed.
[[nodiscard]] const char* stored_fault(const StoredHeader& header, const SpillPlace& place, std::uint64_t salt,
                                       std::span<const std::byte> stored) noexcept;

} // namespace spillway
