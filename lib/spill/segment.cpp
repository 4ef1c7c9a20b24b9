#include "spill/segment.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace spillway {
namespace {

/// LZ4 makes nothing smaller than this part of it.
constexpr std::uint32_t most_shrinking = 255;

bool is_zero(std::span<const std::byte> bytes) noexcept {
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

/// One hash for header and stored bytes, so that no part of one record passes for a part of another.
std::uint64_t hash_of(StoredHeader header, std::uint64_t salt, std::span<const std::byte> stored) noexcept {
    header.hash = 0;
    return XXH3_64bits_withSeed(stored.data(), stored.size(), XXH3_64bits_withSeed(&header, sizeof(header), salt));
}

} // namespace

SegmentHeader make_segment_header(const std::array<std::uint64_t, 2>& run, std::uint64_t salt, std::uint32_t segment,
                                  std::uint64_t bytes) noexcept {
    SegmentHeader header;
    header.run = run;
    header.salt = salt;
    header.segment = segment;
    header.bytes = bytes;
    header.hash = XXH3_64bits(&header, offsetof(SegmentHeader, hash));
    return header;
}

StoredHeader make_stored_header(const std::array<std::uint64_t, 4>& key, std::uint64_t salt, std::uint32_t raw,
                                std::span<const std::byte> stored) noexcept {
    StoredHeader header;
    header.key = key;
    header.stored = static_cast<std::uint32_t>(stored.size());
    header.raw = raw;
    header.hash = hash_of(header, salt, stored);
    return header;
}

const char* segment_fault(std::span<const std::byte, segment_header_bytes> begin,
                          const SegmentHeader& expected) noexcept {
    SegmentHeader header;
    std::memcpy(&header, begin.data(), sizeof(header));
    if (header.magic != expected.magic) return "the segment does not begin as one";
    if (header.version != expected.version || header.byte_order != expected.byte_order)
        return "the segment is of another version or byte order";
    if (header.hash != XXH3_64bits(&header, offsetof(SegmentHeader, hash)) || header.reserved != 0 ||
        !is_zero(begin.subspan(sizeof(header))))
        return "the segment's header is damaged";
    if (header.run != expected.run) return "the segment is another run's";
    if (header.salt != expected.salt || header.segment != expected.segment || header.bytes != expected.bytes)
        return "another segment lies in its place";
    return nullptr;
}

const char* stored_fault(const StoredHeader& header, const SpillPlace& place, std::uint64_t salt,
                         std::span<const std::byte> stored, std::span<const std::byte> padding) noexcept {
    if (check_of(header) != place.check || header.stored != place.length || header.stored != stored.size())
        return "another record lies in its place";
    if (hash_of(header, salt, stored) != header.hash || header.raw < header.stored || !is_zero(padding))
        return "the record is damaged";
    if (header.raw != header.stored && header.raw / most_shrinking > header.stored) return "its length cannot be right";
    return nullptr;
}

} // namespace spillway
