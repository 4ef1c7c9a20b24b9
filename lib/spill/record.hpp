// What lies in a segment, byte for byte: docs/segment_format.md in code.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace spillway {

inline constexpr std::uint64_t segment_header_bytes = 4096;
inline constexpr std::uint64_t record_alignment = 8;

/// Begins every segment. The rest of the 4 KiB is zero.
struct SegmentHeader {
    std::array<char, 8> magic{'S', 'P', 'I', 'L', 'L', 'S', 'E', 'G'};
    std::uint32_t version = 1;
    std::uint32_t byte_order = 0x01020304; ///< As the machine that wrote it stores it.
    std::array<std::uint64_t, 2> run{};    ///< Random; the same in all segments of a run.
    std::uint64_t salt = 0;                ///< Seed of the record headers' hashes; differs for each use of a segment.
    std::uint32_t segment = 0;
    std::uint32_t reserved = 0;
    std::uint64_t bytes = 0; ///< Of the segment.
    std::uint64_t hash = 0;  ///< XXH3-64 of the fields before it.
};
static_assert(sizeof(SegmentHeader) == 64);

/// Begins every record; the payload follows at once, and then zeros up to a multiple of 8.
struct RecordHeader {
    std::array<std::uint64_t, 4> key{};
    std::uint32_t length = 0;       ///< Of the payload, in bytes.
    std::uint32_t check = 0;        ///< Low half of the XXH3-64, seeded with the salt, of this header with check = 0.
    std::uint64_t payload_hash = 0; ///< XXH3-64 of the payload.
};
static_assert(sizeof(RecordHeader) == 48);

/// Header and payload, padded.
[[nodiscard]] constexpr std::uint64_t record_bytes(std::uint32_t length) noexcept {
    return (sizeof(RecordHeader) + std::uint64_t{length} + record_alignment - 1) / record_alignment * record_alignment;
}

[[nodiscard]] SegmentHeader make_segment_header(const std::array<std::uint64_t, 2>& run, std::uint64_t salt,
                                                std::uint32_t segment, std::uint64_t bytes) noexcept;

[[nodiscard]] RecordHeader make_record_header(const std::array<std::uint64_t, 4>& key, std::uint64_t salt,
                                              std::span<const std::byte> payload) noexcept;

/// The header is one that was written with this salt: its length may be believed.
[[nodiscard]] bool header_is_whole(const RecordHeader& header, std::uint64_t salt) noexcept;

/// Why a record is not what its place says, or nullptr if it is.
[[nodiscard]] const char* record_fault(const RecordHeader& header, std::uint32_t check, std::uint64_t salt,
                                       std::span<const std::byte> payload) noexcept;

} // namespace spillway
