// Reads, reference and VCF over htslib, for callers on a pool of threads. htslib itself does not appear in this header.
#pragma once

#include "spillway/error.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::hts {

/// A half-open interval of a contig, 0-based.
struct Interval {
    std::int32_t contig = -1; ///< Index into the alignment header's contigs.
    std::int64_t begin = 0;
    std::int64_t end = 0;
};

/// One aligned read as decoded; its spans point into the ReadBlock that holds it.
struct Read {
    std::int32_t contig = -1;
    std::int64_t begin = 0;              ///< First aligned reference position, 0-based.
    std::int64_t end = 0;                ///< One past the last aligned reference position.
    std::uint16_t flags = 0;             ///< SAM flags.
    std::uint8_t mapping_quality = 0;    ///< MAPQ; 255 is unknown.
    std::uint64_t name_hash = 0;         ///< Hash of the read's name: equal for mates, the same on every machine.
    std::int32_t mate_contig = -1;
    std::int64_t mate_begin = -1;
    std::span<const char> bases;         ///< Upper case A, C, G, T, N; as in SEQ, clips included.
    std::span<const std::uint8_t> qualities; ///< Phred; same length as bases. Missing ones (0xff) are replaced, see ReadFilter.
    std::span<const std::uint32_t> cigar;    ///< htslib's packing: length << 4 | operation; zero-length elements removed.
};

/// Some reads that were decoded together, immutable; shared by the windows they cover.
class ReadBlock;

} // namespace spillway::hts
