#include "hts/cram_index.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <tuple>
#include <unistd.h>

namespace spillway::hts {
namespace {

/// Reads an ITF8 number of the CRAM specification (section 2.3); advances `at`. False at the end of the bytes.
bool read_itf8(std::span<const std::uint8_t> bytes, std::size_t& at, std::int32_t& value) {
    if (at >= bytes.size()) return false;
    const std::uint8_t first = bytes[at];
    // The count of leading ones is the count of bytes that follow.
    const std::size_t more = first < 0x80 ? 0 : first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (bytes.size() - at <= more) return false;
    std::uint32_t number = more == 4 ? first & 0x0fU : first & (0x7fU >> more);
    for (std::size_t i = 1; i <= more; ++i) {
        // Of the fifth byte only the lower half counts.
        if (i == 4)
            number = number << 4 | (bytes[at + i] & 0x0fU);
        else
            number = number << 8 | bytes[at + i];
    }
    at += more + 1;
    value = static_cast<std::int32_t>(number);
    return true;
}

} // namespace

std::vector<CramSlice> read_cram_index(const std::string& path, std::size_t contigs) {
    const std::string text = read_text(path, "reading the index");
    std::vector<CramSlice> slices;
    std::size_t line_number = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        ++line_number;
        // Contig, begin (1-based), length, container offset, slice offset, slice bytes.
        std::array<std::int64_t, 6> fields{};
        const char* cursor = text.data() + at;
        const char* const line_end = text.data() + end;
        for (std::int64_t& field : fields) {
            if (cursor != line_end && *cursor == '\t') ++cursor;
            const auto [next, problem] = std::from_chars(cursor, line_end, field);
            if (problem != std::errc{})
                throw Error(ErrorCode::input, "reading the index", path,
                            "line " + std::to_string(line_number) + " is malformed: make it again with samtools index");
            cursor = next;
        }
        at = end + 1;
        const auto [contig, begin, length, container, offset, bytes] = fields;
        if (contig < 0) continue;
        constexpr std::int64_t limit = std::int64_t{1} << 40;
        if (static_cast<std::uint64_t>(contig) >= contigs || begin < 0 || begin > limit || length < 0 ||
            length > limit || container < 0 || bytes < 0)
            throw Error(ErrorCode::input, "reading the index", path,
                        "line " + std::to_string(line_number) +
                            " does not fit the file: make it again with samtools index");
        const std::int64_t first = std::max<std::int64_t>(begin - 1, 0);
        slices.push_back({static_cast<std::int32_t>(contig), first, first + length, container, bytes});
    }
    std::sort(slices.begin(), slices.end(), [](const CramSlice& a, const CramSlice& b) {
        return std::tie(a.contig, a.begin, a.container) < std::tie(b.contig, b.begin, b.container);
    });
    return slices;
}

std::uint64_t records_of_container(int descriptor, std::int64_t offset) {
    // A header's start: 4 bytes of length, then contig, begin, span and records as ITF8 (CRAM 2 and 3, section 7).
    std::array<std::uint8_t, 24> bytes{};
    const ssize_t got = ::pread(descriptor, bytes.data(), bytes.size(), offset);
    if (got < 8) return 0;
    const std::span<const std::uint8_t> header(bytes.data(), static_cast<std::size_t>(got));
    std::size_t at = 4;
    std::int32_t contig = 0, begin = 0, span = 0, records = 0;
    const bool complete = read_itf8(header, at, contig) && read_itf8(header, at, begin) &&
                          read_itf8(header, at, span) && read_itf8(header, at, records);
    return complete && records > 0 ? static_cast<std::uint64_t>(records) : 0;
}

} // namespace spillway::hts
