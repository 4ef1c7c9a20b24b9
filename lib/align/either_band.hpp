// A BandAligner of the lanes that a pair's sums need: 16 bits, else 32.
//
//     EitherBandAligner aligner(scores, span, Instructions::widest);
//     aligner.set_pair(query, target);           // kept by reference, used when a band asks for them
//     aligner.align({-4, 12}, best);
#pragma once

#include <optional>

#include "align/band.hpp"

namespace spillway {

class EitherBandAligner {
public:
    EitherBandAligner(const Scores& scores, Span span, Instructions instructions)
        : scores_(scores), span_(span), instructions_(instructions) {}

    /// Both must outlive the calls of align() that follow; a target that stays the same is prepared once.
    void set_target(const CodedBases& target) {
        target_ = &target;
        narrow_has_target_ = wide_has_target_ = false;
    }
    void set_query(const CodedBases& query) {
        query_ = &query;
        narrow_has_query_ = wide_has_query_ = false;
    }

    /// BandAligner::align.
    void align(Band band, Alignment& best) {
        if (fits_16_bits(query_->size(), target_->size(), scores_)) {
            align(narrow_, narrow_has_target_, narrow_has_query_, band, best);
        } else {
            align(wide_, wide_has_target_, wide_has_query_, band, best);
        }
    }

private:
    template <class Lane>
    void align(std::optional<BandAligner<Lane>>& aligner, bool& has_target, bool& has_query, Band band,
               Alignment& best) {
        if (!aligner) aligner.emplace(scores_, span_, instructions_);
        if (!has_target) aligner->set_target(*target_);
        if (!has_query) aligner->set_query(*query_);
        has_target = has_query = true;
        aligner->align(band, best);
    }

    Scores scores_;
    Span span_;
    Instructions instructions_;
    const CodedBases* query_ = nullptr;
    const CodedBases* target_ = nullptr;
    std::optional<BandAligner<std::int16_t>> narrow_;
    std::optional<BandAligner<std::int32_t>> wide_;
    bool narrow_has_target_ = false, wide_has_target_ = false, narrow_has_query_ = false, wide_has_query_ = false;
};

} // namespace spillway
