#include "spillway/align.hpp"

#include <limits>
#include <string>

#include "align/batch.hpp"
#include "align/finish.hpp"
#include "align/limits.hpp"
#include "align/score_pass.hpp"
#include "spillway/error.hpp"

namespace spillway {

namespace {

void check_room(std::size_t pairs, std::size_t room) {
    if (pairs != room) {
        throw Error(ErrorCode::usage, "aligning", "a batch",
                    std::to_string(pairs) + " pairs but room for " + std::to_string(room) +
                        " results; give one for each pair");
    }
    if (pairs > std::numeric_limits<std::uint32_t>::max()) {
        throw Error(ErrorCode::usage, "aligning", "a batch",
                    std::to_string(pairs) + " pairs; at most 2^32 - 1 are possible, so give them in parts");
    }
}

} // namespace

Alignment align(std::string_view query, std::string_view target, const Scores& scores, Span span) {
    check_scores(scores);
    check_lengths(query.size(), target.size(), scores);
    Alignment result;
    BatchAligner(target, scores, span).align(query, result);
    return result;
}

void align(std::span<const std::string_view> queries, std::string_view target, const Scores& scores, Span span,
           std::span<Alignment> out) {
    check_room(queries.size(), out.size());
    check_scores(scores);
    for (const std::string_view query : queries) check_lengths(query.size(), target.size(), scores);
    if (queries.empty()) return;
    BatchAligner aligner(target, scores, span);
    for (std::size_t i = 0; i < queries.size(); ++i) aligner.align(queries[i], out[i]);
}

void align(std::span<const SequencePair> pairs, const Scores& scores, Span span, std::span<Alignment> out) {
    std::vector<AlignmentEnd> ends(out.size());
    score(pairs, scores, span, ends);
    Finisher finisher(scores, span);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        out[i].score = ends[i].score;
        out[i].query_end = ends[i].query_end;
        out[i].target_end = ends[i].target_end;
        finisher.finish(pairs[i].query, pairs[i].target, out[i]);
    }
}

void score(std::span<const SequencePair> pairs, const Scores& scores, Span span, std::span<AlignmentEnd> out) {
    check_room(pairs.size(), out.size());
    check_scores(scores);
    for (const SequencePair& pair : pairs) check_lengths(pair.query.size(), pair.target.size(), scores);
    ScorePass(scores, span, chosen_isa()).run(pairs, out);
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
