#include "spill/record.hpp"

#include <xxhash.h>

namespace spillway {
namespace {

std::uint32_t check_of(RecordHeader header, std::uint64_t salt) noexcept {
    header.check = 0;
    return static_cast<std::uint32_t>(XXH3_64bits_withSeed(&header, sizeof(header), salt));
}

} // namespace

RecordHeader make_record_header(const std::array<std::uint64_t, 4>& key, std::uint64_t salt,
                                std::span<const std::byte> payload) noexcept {
    RecordHeader header;
    header.key = key;
    header.length = static_cast<std::uint32_t>(payload.size());
    header.payload_hash = XXH3_64bits(payload.data(), payload.size());
    header.check = check_of(header, salt);
    return header;
}

bool header_is_whole(const RecordHeader& header, std::uint64_t salt) noexcept {
    return check_of(header, salt) == header.check;
}

const char* record_fault(const RecordHeader& header, std::uint32_t check, std::uint64_t salt,
                         std::span<const std::byte> payload) noexcept {
    if (!header_is_whole(header, salt)) return "the record's header is damaged";
    if (header.check != check || header.length != payload.size()) return "another record lies in its place";
    if (XXH3_64bits(payload.data(), payload.size()) != header.payload_hash) return "the record's payload is damaged";
    return nullptr;
}

} // namespace spillway
