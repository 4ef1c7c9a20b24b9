// How likely each query is, given that it was read from each haplotype.
//
//     caller::place(candidate);                       // settles what needs no alignment
//     caller::align_on_cpu(candidates);               // or on a device: for_each_task() says what
//     caller::settle(candidate);                      // candidate.costs is complete
//
// The cost of a placement is the sum over its bases of -10 log10 of the error probability where they differ (a third of
// it for each wrong base) and of the correct base's where they agree, and of a cost for each gap that knows the repeat
// it is in.
#pragma once

#include "haplotypes.hpp"

#include "spillway/align.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace caller {

/// Scores of reads against haplotypes and of haplotypes against the reference; the latter decide how variants are
/// spelled.
inline constexpr spillway::Scores alignment_scores{};

/// Fills candidate.costs with the best placement without gaps. Where that costs no more than the cheapest gap that the
/// haplotype could have, no alignment can be likelier; the others become candidate.alignments.
void place(Candidate& candidate);

/// Aligns all tasks of all candidates together.
void align_on_cpu(std::span<Candidate* const> candidates);

/// Calls align(haplotype, queries, found) for each task: std::string_view, a range of them, std::span<Alignment>.
template <class SomeCandidate, class Align>
void for_each_task(SomeCandidate& candidate, Align align) {
    std::vector<std::string_view> queries;
    for (auto& task : candidate.alignments) {
        queries.clear();
        for (const std::uint32_t query : task.queries) queries.push_back(candidate.bases(candidate.queries[query]));
        align(std::string_view(candidate.haplotypes[task.haplotype].bases), queries, std::span(task.found));
    }
}

/// Takes the alignments into candidate.costs.
void settle(Candidate& candidate);

/// Cost of a gap in a read: `size` bases of the haplotype from `at` on missing, or `inserted` before `at` too many.
/// By period and length of the repeat it lies in: measured rates of Illumina reads in homopolymers (Albers et al. 2011,
/// Dindel: 2.9e-5 up to 4 bases, 1.1e-3 at 9, and linear from there), the like for longer units by number of units.
[[nodiscard]] Phred gap_cost(std::string_view haplotype, std::int64_t at, std::int64_t size, std::string_view inserted);

} // namespace caller
