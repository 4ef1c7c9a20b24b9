// How likely each query is, given that it was read from each haplotype.
//
//     caller::Alignments wanted = caller::place(candidate);      // settles what needs no alignment
//     for (auto& task : wanted) spillway::align(task.queries, task.target, scores, spillway::Span::query, task.found);
//     caller::settle(candidate, wanted);                         // candidate.costs is complete
//
// The cost of a placement is the sum over its bases of -10 log10 of the error probability where they differ (a third of
// it for each wrong base) and of the correct base's where they agree, and of a cost for each gap that knows the repeat
// it is in.
#pragma once

#include "haplotypes.hpp"

#include "spillway/align.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace caller {

/// Scores of reads against haplotypes and of haplotypes against the reference; the latter decide how variants are
/// spelled.
inline constexpr spillway::Scores alignment_scores{};

/// The queries of one candidate that must be aligned to one haplotype.
struct AlignmentTask {
    std::uint32_t haplotype;
    std::vector<std::uint32_t> indexes; ///< Into Candidate::queries.
    std::vector<std::string_view> queries;
    std::string_view target;
    std::vector<spillway::Alignment> found; ///< Of the size of queries; filled by whoever aligns.
};
using AlignmentTasks = std::vector<AlignmentTask>;

/// Fills candidate.costs with the best placement without gaps. Where that costs no more than the cheapest gap that the
/// haplotype could have, no alignment can be likelier; the others are returned to be aligned.
[[nodiscard]] AlignmentTasks place(Candidate& candidate);

/// Takes the alignments into candidate.costs.
void settle(Candidate& candidate, const AlignmentTasks& tasks);

/// Cost of a gap in a read: `size` bases of the haplotype from `at` on missing, or `inserted` before `at` too many.
/// By period and length of the repeat it lies in: measured rates of Illumina reads in homopolymers (Albers et al. 2011,
/// Dindel: 2.9e-5 up to 4 bases, 1.1e-3 at 9, and linear from there), the like for longer units by number of units.
[[nodiscard]] Phred gap_cost(std::string_view haplotype, std::int64_t at, std::int64_t size, std::string_view inserted);

} // namespace caller
