// From a window to a candidate: the sequences that its reads may come from, and the part of each read that can tell
// them apart.
//
//     caller::Candidate candidate = caller::make_candidate(window, rules);
//     candidate.haplotypes[0].bases;                  // the reference's own
//     candidate.bases(candidate.queries[0]);          // what of a read lies on the slice
#pragma once

#include "phred.hpp"
#include "variants.hpp"
#include "windows.hpp"

#include "spillway/align.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace caller {

/// Caps of a candidate: they bound its cost in the worst window, and are out of reach in ordinary ones.
inline constexpr std::size_t max_events = 10;
inline constexpr std::size_t max_haplotypes = 24;
inline constexpr std::size_t max_reads = 32'768;

/// A sequence of the window's slice with some of its events in place.
struct Haplotype {
    std::string bases;
    std::vector<std::uint16_t> events; ///< Indexes into Candidate::events, ascending.
};

/// The part of one read that lies on the slice, soft-clipped ends that reach into it included.
struct Query {
    std::uint64_t name_hash;
    std::int64_t begin;  ///< Where its first base lies on the reference; a clipped base as if aligned without gaps.
    std::int64_t end;    ///< One past where its last base lies.
    std::uint32_t first; ///< Its first base in Candidate::read_bases.
    std::uint32_t size;
    std::uint8_t mapping_quality;
    bool cut_left;  ///< The read goes on beyond the slice's begin: a placement that does not reach it has a gap there.
    bool cut_right; ///< The same at the slice's end.
};

/// The queries of a candidate that must be aligned to one haplotype, and what was found.
struct AlignmentTask {
    std::uint32_t haplotype = 0;
    std::vector<std::uint32_t> queries;     ///< Indexes into Candidate::queries.
    std::vector<spillway::Alignment> found; ///< One for each.
};

/// The unit of work of the stages from here on: a plain value that holds all it needs.
struct Candidate {
    std::int32_t contig = -1;
    std::int64_t contig_size = 0;
    std::int64_t begin = 0;       ///< First evidence position: the order of candidates.
    std::int64_t end = 0;         ///< One past the last evidence position.
    std::int64_t slice_begin = 0; ///< Of the stretch that haplotypes spell.
    std::string reference;        ///< Around the slice, as far as a variant may move.
    std::int64_t reference_begin = 0;
    std::vector<Variant> events;       ///< What enough reads show, in order.
    std::vector<Haplotype> haplotypes; ///< Distinct; the first is the reference.
    std::vector<Query> queries;        ///< Those that reach the evidence, by begin, then name hash, then flags.
    std::string read_bases;            ///< Of all queries.
    std::vector<std::uint8_t> read_qualities;
    std::vector<AlignmentTask> alignments; ///< Where a placement without gaps does not settle the cost.
    std::vector<std::int32_t> costs; ///< Query-major: Phred of each query given each haplotype; see likelihoods.hpp.

    [[nodiscard]] std::string_view bases(const Query& query) const {
        return std::string_view(read_bases).substr(query.first, query.size);
    }
    [[nodiscard]] std::span<const std::uint8_t> qualities(const Query& query) const {
        return std::span(read_qualities).subspan(query.first, query.size);
    }
    /// What it can be made again from: see candidate_at().
    [[nodiscard]] spillway::hts::Interval evidence() const noexcept { return {contig, begin, end}; }
    [[nodiscard]] Sequence sequence() const { return Sequence(reference, reference_begin, contig_size); }
    [[nodiscard]] std::int32_t& cost(std::size_t query, std::size_t haplotype) {
        return costs[query * haplotypes.size() + haplotype];
    }
};

/// Windows whose reads support no event give a candidate with the reference haplotype alone.
[[nodiscard]] Candidate make_candidate(const Window& window, const EvidenceRules& rules);

/// Where a reference position lies on a haplotype, counting events that end at or before it (`after`) or begin before
/// it.
[[nodiscard]] std::int64_t place_on(const Candidate& candidate, const Haplotype& haplotype, std::int64_t position,
                                    bool after);

} // namespace caller
