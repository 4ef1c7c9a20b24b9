// A record of a journal: docs/journal_format.md in code.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace spillway {

inline constexpr std::uint64_t record_alignment = 8;

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

[[nodiscard]] RecordHeader make_record_header(const std::array<std::uint64_t, 4>& key, std::uint64_t salt,
                                              std::span<const std::byte> payload) noexcept;

/// The header is one that was written with this salt: its length may be believed.
[[nodiscard]] bool header_is_whole(const RecordHeader& header, std::uint64_t salt) noexcept;

/// Why a record is not what its place says, or nullptr if it is.
[[nodiscard]] const char* record_fault(const RecordHeader& header, std::uint32_t check, std::uint64_t salt,
                                       std::span<const std::byte> payload) noexcept;

} // namespace spillway
