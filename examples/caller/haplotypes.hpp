// From a window to a candidate: the sequences that its reads may come from, and the part of each read that can tell them apart.
//
//     caller::Candidate candidate = caller::make_candidate(std::move(window), rules);
//     candidate.haplotypes[0].bases;                  // the reference's own
//     candidate.queries[0].bases();                   // what of a read lies on the slice
#pragma once

#include "phred.hpp"
#include "variants.hpp"
#include "windows.hpp"

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
    const spillway::hts::Read* read;
    std::uint32_t first; ///< Its first base in the read.
    std::uint32_t size;
    std::int64_t begin; ///< Where its first base lies on the reference; a clipped base as if aligned without gaps.
    std::int64_t end;   ///< One past where its last base lies.
    bool cut_left;      ///< The read goes on beyond the slice's begin: a placement that does not reach it has a gap there.
    bool cut_right;     ///< The same at the slice's end.

    [[nodiscard]] std::string_view bases() const { return {read->bases.data() + first, size}; }
    [[nodiscard]] std::span<const std::uint8_t> qualities() const { return read->qualities.subspan(first, size); }
};

/// The unit of work of the stages from here on.
struct Candidate {
    Window window;
    std::vector<Variant> events;        ///< What enough reads show, in order.
    std::vector<Haplotype> haplotypes;  ///< Distinct; the first is the reference.
    std::vector<Query> queries;         ///< Those that reach the evidence, in the order of Window::reads.
    std::vector<std::int32_t> costs;    ///< Query-major: Phred of each query given each haplotype; see likelihoods.hpp.

    [[nodiscard]] std::int32_t& cost(std::size_t query, std::size_t haplotype) {
        return costs[query * haplotypes.size() + haplotype];
    }
};

/// Windows whose reads support no event give a candidate with the reference haplotype alone.
[[nodiscard]] Candidate make_candidate(Window window, const EvidenceRules& rules);

/// Where a reference position lies on a haplotype, counting events that end at or before it (`after`) or begin before it.
[[nodiscard]] std::int64_t place_on(const Candidate& candidate, const Haplotype& haplotype, std::int64_t position, bool after);

} // namespace caller
