#include "align/finish.hpp"

#include <algorithm>
#include <optional>

#include "align/certificate.hpp"
#include "align/cigar.hpp"

namespace spillway {

namespace {

/// Follows the end's diagonal back to where `score` is used up, which is the begin. Nothing if it never is. If it is,
/// no proof is needed: a cell on the way scores at least what is left of `score`, and no more, since the way on from
/// there would score more than the best. So each pair attains its cell's value, and the tie rule takes pairs first.
std::optional<std::ptrdiff_t> walk_back(const CodedBases& query, const CodedBases& target, std::int64_t score,
                                        const Scores& scores, Span span) {
    auto i = static_cast<std::ptrdiff_t>(query.size());
    auto j = static_cast<std::ptrdiff_t>(target.size());
    for (;;) {
        const std::ptrdiff_t run = equal_before(query.at(i), target.at(j));
        if (span == Span::local && score <= run * scores.match) {
            if (score % scores.match != 0) return std::nullopt;
            return i - score / scores.match;
        }
        score -= run * scores.match;
        i -= run, j -= run;
        if (i == 0) return span == Span::query && score == 0 ? std::optional<std::ptrdiff_t>(0) : std::nullopt;
        if (j == 0) return std::nullopt;
        --i, --j;
        score -= (*query.at(i) | *target.at(j)) > 3 ? scores.unknown : scores.mismatch;
        if (score > i * scores.match) return std::nullopt;
        if (span == Span::local && score <= 0) return std::nullopt;
    }
}

} // namespace

void Finisher::finish(std::string_view query, std::string_view target, Alignment& result) {
    result.query_begin = result.target_begin = 0;
    result.cigar.clear();
    if (query.empty() || (span_ == Span::local && result.score == 0)) return;

    // What lies behind the end has no part in any path to it. Nor has, before the band, what no such path reaches.
    const std::ptrdiff_t query_size = result.query_end, target_end = result.target_end;
    query_.assign(query.substr(0, static_cast<std::size_t>(query_size)));
    const Certificate certificate(scores_, span_, query_.size(), query_.unknown());
    const Freedom freedom = certificate.freedom(result.score);
    const std::ptrdiff_t window = std::max<std::ptrdiff_t>(0, target_end - query_size - freedom.deleted);
    target_.assign(target.substr(static_cast<std::size_t>(window), static_cast<std::size_t>(target_end - window)));

    const std::ptrdiff_t diagonal = target_end - window - query_size;
    if (const auto begin = walk_back(query_, target_, result.score, scores_, span_)) {
        result.query_begin = static_cast<std::int32_t>(*begin);
        result.target_begin = static_cast<std::int32_t>(*begin + diagonal + window);
        result.cigar.assign(1, cigar_element(CigarOperation::match, static_cast<std::uint32_t>(query_size - *begin)));
        return;
    }
    // Going back from the end, a deletion leads to a smaller diagonal, an insertion to a greater one.
    band_.set_target(target_);
    band_.set_query(query_);
    Alignment found = worst_alignment();
    std::swap(found.cigar, result.cigar);
    band_.align({diagonal - freedom.deleted, diagonal + freedom.inserted}, found);
    std::swap(result, found);
    result.target_begin += static_cast<std::int32_t>(window);
    result.target_end += static_cast<std::int32_t>(window);
}

} // namespace spillway
