#include <cstdint>
#include <cstdio>
#include <ctime>

// Its headers lack both extern "C" and what they use.
extern "C" {
#include <wfa2lib/wavefront/wavefront_align.h>
}

#include <limits>
#include <numeric>

#include "aligner.hpp"

namespace bench {
namespace {

class Wfa2 : public Aligner {
public:
    Wfa2(const spillway::Scores& scores, bool with_cigar) : Aligner(spillway::Span::query), with_cigar_(with_cigar) {
        wavefront_aligner_attr_t attributes = wavefront_aligner_attr_default;
        attributes.distance_metric = gap_affine;
        // What is lost against a match, half a match for each gapped base. It has no other penalties for insertions
        // than for deletions, so these are not quite the others' alignments; with scores for matches it is far slower.
        // What all have in common only makes more waves.
        const int mismatch = scores.match - scores.mismatch, opening = scores.gap_open - scores.gap_extend;
        const int extension = scores.gap_extend + scores.match / 2;
        const int unit = std::gcd(std::gcd(mismatch, opening), extension);
        attributes.affine_penalties.match = 0;
        attributes.affine_penalties.mismatch = mismatch / unit;
        attributes.affine_penalties.gap_opening = opening / unit;
        attributes.affine_penalties.gap_extension = extension / unit;
        attributes.alignment_scope = with_cigar ? compute_alignment : compute_score;
        attributes.heuristic.strategy = wf_heuristic_none; // exact, as all others are
        aligner_ = wavefront_aligner_new(&attributes);
    }
    Wfa2(const Wfa2&) = delete;
    Wfa2& operator=(const Wfa2&) = delete;
    ~Wfa2() override { wavefront_aligner_delete(aligner_); }

    [[nodiscard]] std::string name() const override { return "WFA2 (whole query)"; }
    void align(std::span<const spillway::SequencePair> pairs) override {
        for (const auto& pair : pairs) {
            const auto query_size = static_cast<int>(pair.query.size());
            const auto target_size = static_cast<int>(pair.target.size());
            wavefront_aligner_set_alignment_free_ends(aligner_, 0, 0, target_size, target_size);
            wavefront_align(aligner_, pair.query.data(), query_size, pair.target.data(), target_size);
            found_scores.push_back(std::numeric_limits<std::int32_t>::min());
            if (with_cigar_) {
                std::string text;
                const cigar_t* cigar = aligner_->cigar;
                for (int at = cigar->begin_offset; at < cigar->end_offset;) {
                    const char operation = cigar->operations[at] == 'X' ? 'M' : cigar->operations[at];
                    int end = at;
                    while (end < cigar->end_offset &&
                           (cigar->operations[end] == 'X' ? 'M' : cigar->operations[end]) == operation) {
                        ++end;
                    }
                    text += std::to_string(end - at) + operation;
                    at = end;
                }
                found_cigars.push_back(text);
            }
        }
    }

private:
    bool with_cigar_;
    wavefront_aligner_t* aligner_ = nullptr;
};

} // namespace

void add_wfa2(Aligners& to, const spillway::Scores& scores, bool with_cigar) {
    to.push_back(std::make_unique<Wfa2>(scores, with_cigar));
}

} // namespace bench
