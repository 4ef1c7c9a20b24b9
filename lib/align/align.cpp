#include "spillway/align.hpp"

#include "align/batch.hpp"
#include "align/limits.hpp"
#include "spillway/error.hpp"

namespace spillway {

Alignment align(std::string_view query, std::string_view target, const Scores& scores, Span span) {
    check_scores(scores);
    check_lengths(query.size(), target.size(), scores);
    Alignment result;
    BatchAligner(target, scores, span).align(query, result);
    return result;
}

void align(std::span<const std::string_view> queries, std::string_view target, const Scores& scores, Span span,
           std::span<Alignment> out) {
    if (queries.size() != out.size()) {
        throw Error(ErrorCode::usage, "aligning", "a batch",
                    std::to_string(queries.size()) + " queries but room for " + std::to_string(out.size()) +
                        " alignments; give one for each query");
    }
    check_scores(scores);
    for (const std::string_view query : queries) check_lengths(query.size(), target.size(), scores);
    if (queries.empty()) return;
    BatchAligner aligner(target, scores, span);
    for (std::size_t i = 0; i < queries.size(); ++i) aligner.align(queries[i], out[i]);
}

std::string to_string(std::span<const CigarElement> cigar) {
    std::string text;
    for (const CigarElement element : cigar) {
        text += std::to_string(element >> 4);
        text += (element & 0xF) < 9 ? "MIDNSHP=X"[element & 0xF] : '?';
    }
    return text;
}

} // namespace spillway
