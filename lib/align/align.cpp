#include "spillway/align.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "align/batch.hpp"
#include "align/certificate.hpp"
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

/// So many pairs that are not settled one by one are taken together: more would hardly fill lanes better.
constexpr std::size_t together = 4096;

/// After so many pairs it is known whether they are alike enough for claims to pay: one of four must have been proven.
constexpr std::size_t claims_tried = 64, claims_needed = claims_tried / 4;

AlignmentEnd end_of(const Alignment& alignment) {
    return {alignment.score, alignment.query_end, alignment.target_end};
}

/// Each pair as cheaply as that can be proven; those that need a whole matrix together, side by side. Pairs of one
/// target should follow one another.
class PairsAligner {
public:
    PairsAligner(const Scores& scores, Span span)
        : scores_(with_cheapest_extension(scores)), span_(span), isa_(chosen_isa()),
          aligner_(scores_, span_, instructions_of(isa_)) {}

    /// pair_of(i): what out[i] is of.
    template <class PairOf>
    void align(const PairOf& pair_of, std::span<Alignment> out) {
        for (std::size_t i = 0; i < out.size(); ++i) {
            const SequencePair pair = pair_of(i);
            set_target(pair.target);
            if (!aligner_.align_cheaply(pair.query, out[i])) leave(i, pair);
            if (left_.size() == together) align_left(out);
        }
        align_left(out);
    }

    void score(std::span<const SequencePair> pairs, std::span<AlignmentEnd> out) {
        if (pairs.size() < many) {
            std::vector<Alignment> all(pairs.size());
            align([&](std::size_t i) { return pairs[i]; }, all);
            std::transform(all.begin(), all.end(), out.begin(), end_of);
            return;
        }
        std::size_t claimed = 0;
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            const bool alike = i < claims_tried || claimed >= claims_needed;
            if (alike) set_target(pairs[i].target);
            if (alike && aligner_.claim(pairs[i].query, single_)) {
                claimed += i < claims_tried;
                out[i] = end_of(single_);
            } else {
                leave(i, pairs[i]);
            }
            if (left_.size() == together) score_left(out);
        }
        score_left(out);
    }

private:
    void set_target(std::string_view target) {
        if (has_target_ && target.data() == target_.data() && target.size() == target_.size()) return;
        aligner_.set_target(target);
        target_ = target;
        has_target_ = true;
    }

    void leave(std::size_t i, const SequencePair& pair) {
        left_.push_back(i);
        pairs_.push_back(pair);
    }

    void find_ends() {
        if (!pass_) pass_.emplace(scores_, span_, isa_);
        ends_.resize(left_.size());
        pass_->run(pairs_, ends_);
    }

    void align_left(std::span<Alignment> out) {
        if (left_.size() < many || !certifiable(scores_)) {
            for (std::size_t k = 0; k < left_.size(); ++k) {
                set_target(pairs_[k].target);
                aligner_.align(pairs_[k].query, out[left_[k]]);
            }
        } else {
            find_ends();
            if (!finisher_) finisher_.emplace(scores_, span_, instructions_of(isa_));
            for (std::size_t k = 0; k < left_.size(); ++k) {
                Alignment& result = out[left_[k]];
                result.score = ends_[k].score;
                result.query_end = ends_[k].query_end;
                result.target_end = ends_[k].target_end;
                finisher_->finish(pairs_[k].query, pairs_[k].target, result);
            }
        }
        left_.clear();
        pairs_.clear();
    }

    void score_left(std::span<AlignmentEnd> out) {
        find_ends();
        for (std::size_t k = 0; k < left_.size(); ++k) out[left_[k]] = ends_[k];
        left_.clear();
        pairs_.clear();
    }

    Scores scores_;
    Span span_;
    Isa isa_;
    BatchAligner aligner_;
    std::optional<ScorePass> pass_;
    std::optional<Finisher> finisher_;
    std::string_view target_;
    bool has_target_ = false;
    Alignment single_;
    std::vector<std::size_t> left_; // and their pairs and ends
    std::vector<SequencePair> pairs_;
    std::vector<AlignmentEnd> ends_;
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
    PairsAligner(scores, span).score(pairs, out);
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
