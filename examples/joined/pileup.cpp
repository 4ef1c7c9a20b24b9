#include "pileup.hpp"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

namespace joined {

using spillway::hts::Read;

namespace {

constexpr std::uint8_t min_mapping_quality = 20, min_base_quality = 20;

/// Counts the bases of a read from `begin` on.
void count(const Read& read, std::int64_t begin, const spillway::hts::Interval& interval, std::vector<Depths>& depths) {
    std::int64_t at = read.begin;
    std::size_t base = 0;
    for (const std::uint32_t element : read.cigar) {
        const std::uint32_t operation = element & 15U, length = element >> 4U;
        if (operation == spillway::hts::cigar_match) {
            const std::int64_t first = std::max({at, begin, interval.begin});
            const std::int64_t last = std::min(at + std::int64_t{length}, interval.end);
            for (std::int64_t position = first; position < last; ++position) {
                const std::size_t i = base + static_cast<std::size_t>(position - at);
                const std::size_t allele = alleles.find(read.bases[i]);
                if (allele == std::string_view::npos || read.qualities[i] < min_base_quality) continue;
                ++depths[static_cast<std::size_t>(position - interval.begin)].of[allele];
            }
        }
        if (operation != spillway::hts::cigar_insertion && operation != spillway::hts::cigar_soft_clip) at += length;
        if (operation != spillway::hts::cigar_deletion && operation != spillway::hts::cigar_skip) base += length;
    }
}

} // namespace

std::vector<Depths> pile_up(spillway::hts::ReadStream& stream, const spillway::hts::Interval& interval) {
    std::vector<Depths> depths(static_cast<std::size_t>(interval.end - interval.begin));
    std::unordered_map<std::uint64_t, std::int64_t> first_mates; // Where those end whose mate begins before that.
    stream.seek(interval);
    while (const auto block = stream.next()) {
        for (const Read& read : block->reads()) {
            if (read.mapping_quality < min_mapping_quality) continue;
            std::int64_t begin = read.begin;
            if (const auto mate = first_mates.find(read.name_hash); mate != first_mates.end()) {
                begin = mate->second;
                first_mates.erase(mate);
            } else if (read.mate_contig == read.contig && read.mate_begin >= read.begin && read.mate_begin < read.end) {
                first_mates.emplace(read.name_hash, read.end);
            }
            count(read, begin, interval, depths);
        }
    }
    return depths;
}

} // namespace joined
