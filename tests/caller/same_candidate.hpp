// Whether two candidates are made of the same.
//
//     CHECK(same(caller::candidate_at(candidate.evidence(), stream, inputs), candidate));
#pragma once

#include "haplotypes.hpp"

#include <algorithm>
#include <tuple>

namespace spillway::test {

/// All that candidates are made with.
inline bool same(const caller::Candidate& a, const caller::Candidate& b) {
    const auto plain = [](const caller::Candidate& c) {
        return std::tie(c.contig, c.contig_size, c.begin, c.end, c.slice_begin, c.reference, c.reference_begin,
                        c.events, c.read_bases, c.read_qualities);
    };
    const auto haplotype = [](const caller::Haplotype& h) { return std::tie(h.bases, h.events); };
    const auto query = [](const caller::Query& q) {
        return std::tie(q.name_hash, q.begin, q.end, q.first, q.size, q.mapping_quality, q.cut_left, q.cut_right);
    };
    return plain(a) == plain(b) && std::ranges::equal(a.haplotypes, b.haplotypes, {}, haplotype, haplotype) &&
           std::ranges::equal(a.queries, b.queries, {}, query, query);
}

} // namespace spillway::test
