// One of the two copies of a contig: its bases, and how they lie on the reference.
#pragma once

#include "genome.hpp"
#include "variants.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace simulate {

/// Where a piece of a haplotype lies on the reference, as an aligner would say.
struct Placement {
    std::int64_t begin = 0;           ///< 0-based.
    std::vector<std::uint32_t> cigar; ///< htslib's packing.
};

class Haplotype {
public:
    /// `which` of the variants' two alleles it carries.
    Haplotype(const Contig& contig, const std::vector<Variant>& variants, std::size_t which);

    [[nodiscard]] const std::string& bases() const noexcept { return bases_; }
    /// The placement of bases [begin, begin + length). Where less than `anchor` aligned bases stand between an end and
    /// an indel, or an end lies in an insertion, they are soft-clipped: an aligner has no evidence for the indel there.
    [[nodiscard]] Placement place(std::int64_t begin, std::int64_t length, std::int64_t anchor = 5) const;

private:
    /// A run of bases that lies on the reference without a gap, or an insertion.
    struct Block {
        std::int64_t begin; ///< On the haplotype.
        std::int64_t length;
        std::int64_t reference; ///< Of the first base; for an insertion of the base after it.
        bool inserted;
    };
    void append(std::int64_t length, std::int64_t reference, bool inserted);

    std::string bases_;
    std::vector<Block> blocks_;
};

} // namespace simulate
