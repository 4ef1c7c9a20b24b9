#include "align/ungapped.hpp"

#include <algorithm>

#include "align/cigar.hpp"

namespace spillway {

bool align_ungapped(const CodedBases& query, const CodedBases& target, std::ptrdiff_t diagonal, const Scores& scores,
                    Span span, Alignment& result) {
    const auto query_size = static_cast<std::ptrdiff_t>(query.size());
    const std::ptrdiff_t first = std::max<std::ptrdiff_t>(0, -diagonal);
    const std::ptrdiff_t last = std::min(query_size, static_cast<std::ptrdiff_t>(target.size()) - diagonal);
    if (last <= first || (span == Span::query && last - first < query_size)) return false;

    // Local: walking back from the best end, the path stops where the sum is 0 for the first time.
    std::ptrdiff_t begin = first, best_begin = first, best_end = first;
    std::int32_t sum = 0, best = 0;
    for (std::ptrdiff_t at = first; at < last;) {
        const std::ptrdiff_t run = std::min(equal_after(query.at(at), target.at(at + diagonal)), last - at);
        sum += static_cast<std::int32_t>(run) * scores.match;
        at += run;
        if (sum > best) {
            best = sum;
            best_begin = begin;
            best_end = at;
        }
        if (at == last) break;
        sum += (*query.at(at) | *target.at(at + diagonal)) > 3 ? scores.unknown : scores.mismatch;
        ++at;
        if (span == Span::local && sum <= 0) {
            sum = 0;
            begin = at;
        }
    }
    if (span == Span::query) {
        best = sum;
        best_begin = 0;
        best_end = query_size;
    } else if (best == 0) {
        return false;
    }
    result.score = best;
    result.query_begin = static_cast<std::int32_t>(best_begin);
    result.query_end = static_cast<std::int32_t>(best_end);
    result.target_begin = static_cast<std::int32_t>(best_begin + diagonal);
    result.target_end = static_cast<std::int32_t>(best_end + diagonal);
    result.cigar.assign(1, cigar_element(CigarOperation::match, static_cast<std::uint32_t>(best_end - best_begin)));
    return true;
}

} // namespace spillway
