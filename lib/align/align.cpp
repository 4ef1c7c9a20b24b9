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

/// From so many pairs on, a score pass between them costs less than the whole matrix of each.
constexpr std::size_t many = 8;

/// Each pair as cheaply as that can be proven; those that need a whole matrix together, side by side.
class PairsAligner {
public:
    PairsAligner(const Scores& scores, Span span) : scores_(scores), span_(span), isa_(chosen_isa()) {}

    /// pair_of(i): what out[i] is of. Pairs of one target should follow one another.
    template <class PairOf>
    void align(const PairOf& pair_of, std::span<Alignment> out) {
        BatchAligner aligner(scores_, span_, instructions_of(isa_));
        std::vector<std::size_t> left;
        for (std::size_t i = 0; i < out.size(); ++i) {
            set_target(aligner, pair_of(i).target, i == 0);
            if (!aligner.align_cheaply(pair_of(i).query, out[i])) left.push_back(i);
        }
        if (left.size() < many) {
            for (const std::size_t i : left) {
                set_target(aligner, pair_of(i).target, false);
                aligner.align(pair_of(i).query, out[i]);
            }
            return;
        }
        std::vector<SequencePair> pairs;
        pairs.reserve(left.size());
        for (const std::size_t i : left) pairs.push_back(pair_of(i));
        std::vector<AlignmentEnd> ends(left.size());
        ScorePass(scores_, span_, isa_).run(pairs, ends);
        Finisher finisher(scores_, span_, instructions_of(isa_));
        for (std::size_t k = 0; k < left.size(); ++k) {
            Alignment& result = out[left[k]];
            result.score = ends[k].score;
            result.query_end = ends[k].query_end;
            result.target_end = ends[k].target_end;
            finisher.finish(pairs[k].query, pairs[k].target, result);
        }
    }

private:
    void set_target(BatchAligner& aligner, std::string_view target, bool first) {
        if (!first && target.data() == target_.data() && target.size() == target_.size()) return;
        aligner.set_target(target);
        target_ = target;
    }

    Scores scores_;
    Span span_;
    Isa isa_;
    std::string_view target_;
};

} // namespace

Alignment align(std::string_view query, std::string_view target, const Scores& scores, Span span) {
    Alignment result;
    align({&query, 1}, target, scores, span, {&result, 1});
    return result;
}

void align(std::span<const std::string_view> queries, std::string_view target, const Scores& scores, Span span,
           std::span<Alignment> out) {
    check_room(queries.size(), out.size());
    check_scores(scores);
    for (const std::string_view query : queries) check_lengths(query.size(), target.size(), scores);
    PairsAligner(scores, span).align([&](std::size_t i) { return SequencePair{queries[i], target}; }, out);
}

void align(std::span<const SequencePair> pairs, const Scores& scores, Span span, std::span<Alignment> out) {
    check_room(pairs.size(), out.size());
    check_scores(scores);
    for (const SequencePair& pair : pairs) check_lengths(pair.query.size(), pair.target.size(), scores);
    PairsAligner(scores, span).align([&](std::size_t i) { return pairs[i]; }, out);
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
