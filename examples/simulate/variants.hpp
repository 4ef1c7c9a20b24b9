// The planted variants: SNVs and indels, het and hom, some in repeats, some sites with two alternates.
#pragma once

#include "genome.hpp"
#include "random.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace simulate {

/// One site, left-aligned and trimmed, as in VCF.
struct Variant {
    std::int64_t begin = 0; ///< 0-based: of REF's first base.
    std::string reference;
    std::vector<std::string> alternates;
    std::array<int, 2> alleles{}; ///< On the two haplotypes: 0 is REF, k the k-th alternate.

    [[nodiscard]] std::int64_t end() const { return begin + static_cast<std::int64_t>(reference.size()); }
};

struct VariantOptions {
    double snv_rate = 0.001;    ///< Sites per base.
    double indel_rate = 0.0002; ///< Sites per base.
    double repeat_share = 0.4;  ///< Of the indels: placed in repeats, by whole units.
    double hom_share = 0.35;    ///< Of the sites: both haplotypes alike.
    double multi_share = 0.03;  ///< Of the sites: two alternates, one on each haplotype.
    std::int64_t longest = 30;  ///< Of indels.
    std::int64_t gap = 2;       ///< Fewest unchanged bases between two sites.
    std::int64_t edge = 200;    ///< No site nearer to a contig's ends.
};

/// By begin, not overlapping.
[[nodiscard]] std::vector<Variant> plant_variants(const Contig& contig, const VariantOptions& options, Random& random);

} // namespace simulate
