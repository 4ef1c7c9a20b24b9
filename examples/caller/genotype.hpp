// From likelihoods to calls: which two haplotypes a diploid sample has here, and what that says at each site.
//
//     std::vector<caller::Call> calls = caller::genotype(candidate);   // after settle(); by position
//
// Every pair of haplotypes is weighed: a template (both mates) comes from either with probability one half. Sites are
// judged by sums over the pairs, so that PL, GQ and QUAL know what else the window may hold. All numbers are Phred: see
// phred.hpp.
#pragma once

#include "haplotypes.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace caller {

/// What is believed before any read is seen.
struct Priors {
    Phred substitution = from_phred(30); ///< A heterozygous site; a homozygous one is half as likely.
    Phred indel = from_phred(36);
};

/// What is called at one position: a VCF record without its text.
struct Call {
    std::int32_t contig = -1;
    std::int64_t position = 0; ///< Of the first base of `reference`, 0-based.
    std::string reference;
    std::vector<std::string> alternates; ///< In the order of their first haplotype.
    Phred quality = 0;                   ///< That no variant is here; of a low fraction that it is all errors.
    bool low_fraction =
        false; ///< Many templates have it, but too few for one of two chromosomes: mosaic, or misplaced.
    std::array<std::int32_t, 2> genotype{}; ///< Ascending; 0 is the reference.
    std::int32_t genotype_quality = 0;      ///< 0 to 99.
    std::int32_t depth = 0;                 ///< Templates over the position, all that the window holds.
    std::vector<std::int32_t> allele_depth; ///< Of them, those that fit one allele better than the others.
    std::vector<std::int32_t> likelihoods;  ///< PL, in VCF's order of genotypes.
};

/// Calls of the likeliest pair with at least one alternate allele, and low fractions, sorted by position.
[[nodiscard]] std::vector<Call> genotype(Candidate& candidate, const Priors& priors = {});

} // namespace caller
