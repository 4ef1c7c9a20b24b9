// What a stream gave, copied out of its blocks in words that tests can compare.
#pragma once

#include "spillway/hts.hpp"

#include <string>
#include <vector>

namespace spillway::test {

/// "100M5D" of htslib's packing.
inline std::string cigar_text(std::span<const std::uint32_t> cigar) {
    std::string text;
    for (const std::uint32_t element : cigar) text += std::to_string(element >> 4) + "MIDNSHP=XB"[element & 15];
    return text;
}

struct SeenRead {
    std::int32_t contig;
    std::int64_t position; ///< 1-based.
    std::int64_t last;     ///< 1-based, included.
    std::string cigar, bases, qualities;
    std::uint64_t name_hash;
    int flags;
    int mapping_quality;

    friend bool operator==(const SeenRead&, const SeenRead&) = default;
};

inline std::vector<SeenRead> drain(hts::ReadStream& stream) {
    std::vector<SeenRead> reads;
    while (const auto block = stream.next()) {
        for (const hts::Read& read : block->reads()) {
            SeenRead seen{read.contig,
                          read.begin + 1,
                          read.end,
                          cigar_text(read.cigar),
                          std::string(read.bases.begin(), read.bases.end()),
                          {},
                          read.name_hash,
                          read.flags,
                          read.mapping_quality};
            for (const std::uint8_t quality : read.qualities) seen.qualities += static_cast<char>(quality + 33);
            reads.push_back(std::move(seen));
        }
    }
    return reads;
}

/// All reads of a file, in order.
inline std::vector<SeenRead> read_all(const std::string& path, const std::string& fasta = {},
                                      hts::ReadFilter filter = {}) {
    hts::ReadStream stream(hts::AlignmentFile::open(path, fasta), std::move(filter));
    return drain(stream);
}

} // namespace spillway::test
