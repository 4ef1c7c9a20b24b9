#include "spill/segment.hpp"

#include <xxhash.h>

namespace spillway {
namespace {

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

const char* stored_fault(const StoredHeader& header, const SpillPlace& place, std::uint64_t salt,
                         std::span<const std::byte> stored) noexcept {
    if (check_of(header) != place.check || header.stored != place.length || header.stored != stored.size())
        return "another record lies in its place";
    if (hash_of(header, salt, stored) != header.hash || header.raw < header.stored) return "the record is damaged";
    return nullptr;
}

} // namespace spillway
