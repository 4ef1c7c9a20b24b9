// A contig that is long and has few reads: several spans of the reference at little cost.
//
//     Genome genome;
//     add_long_contig(genome);
//     SamBuilder sam(genome);
//     cover_long_contig(sam.read_group("rg1", "S1"), genome);
//     ... sam.bam(directory, "in.bam"), sam.cram(directory, "in.cram", fasta, reads_in_slice)
//     for (const std::int64_t region_length : region_lengths) ...            // each cuts it into fewer spans
#pragma once

#include "hts/sam_builder.hpp"
#include "inputs.hpp"

#include <array>
#include <cstdint>
#include <string>

namespace spillway::test {

inline const std::string long_contig = "long";
inline constexpr std::int64_t long_contig_size = 3 * caller::shortest_span + 50'000;

inline constexpr std::array<std::int64_t, 3> region_lengths = {500, 10'000, long_contig_size};

/// Of a CRAM: so few that its slices do not keep it from being cut where the reference may be.
inline constexpr int reads_in_slice = 20;

inline void add_long_contig(Genome& genome) {
    genome.random(long_contig, static_cast<std::size_t>(long_contig_size), 57);
}

/// Islands of reads with an SNV every 90 bases.
inline void cover_long_contig(SamBuilder& sam, const Genome& genome) {
    for (std::int64_t at = 5'000; at + 1'000 < long_contig_size; at += 12'000) {
        sam.cover(long_contig, {.from = at, .to = at + 500, .step = 10},
                  {genome.snvs(long_contig, at + 130, at + 380, 90), {}});
    }
}

} // namespace spillway::test
