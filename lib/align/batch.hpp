// Aligns many queries to one target: the little that each needs, with a proof that it is enough.
//
//     BatchAligner aligner(scores, Span::query);
//     aligner.set_target(target);
//     for (...) aligner.align(query, alignment);
//
// 1. A query that lies on the target whole is claimed where it lies first: only that path has the perfect score.
// 2. Any alignment, best or not, bounds what the best one can look like (certificate.hpp): it has a long exact run, and
//    all such runs are known; from one on its diagonal it can drift only so far. So the bands around those diagonals
//    hold every best path, and aligning inside them gives the oracle's result (band.hpp); bands of no drift need no
//    matrix.
// 3. A long query is aligned by wavefronts (wavefront.hpp), unless it differs too much from the target.
// 4. Where the alignment that bounds the best one is a bad one, a better one is looked for in a band about the longest
//    run, and in one of twice the width, until what it proves is no more than it is worth.
// 5. Where the bound stays too weak, and for scores that prove nothing, the band is the whole matrix.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "align/bases.hpp"
#include "align/certificate.hpp"
#include "align/either_band.hpp"
#include "align/exact_runs.hpp"
#include "align/wavefront.hpp"
#include "spillway/align.hpp"

namespace spillway {

/// Thread safety: one thread at a time. Scores and lengths must have passed limits.hpp.
class BatchAligner {
public:
    BatchAligner(const Scores& scores, Span span, Instructions instructions = Instructions::widest)
        : scores_(scores), span_(span), instructions_(instructions), band_(scores, span, instructions) {}
    BatchAligner(const BatchAligner&) = delete; // band_ refers to target_ and query_
    BatchAligner& operator=(const BatchAligner&) = delete;

    /// Its index is made when a query asks for it: about 1 ns a base.
    void set_target(std::string_view target);

    /// `result` is overwritten; its CIGAR's storage is used again.
    void align(std::string_view query, Alignment& result);

    /// The same, but false, with `result` of no use, if that takes more than a narrow band, or waves of a long query.
    [[nodiscard]] bool align_cheaply(std::string_view query, Alignment& result);

    /// The same, but false if that takes any matrix at all, or a long query is not on the target as it is.
    [[nodiscard]] bool claim(std::string_view query, Alignment& result);

private:
    /// What may be done to prove a result.
    enum class Effort : std::uint8_t { no_matrix, narrow_band, any_band };

    [[nodiscard]] bool align_long(Alignment& result);
    [[nodiscard]] std::optional<std::ptrdiff_t> find_whole_query();
    [[nodiscard]] bool align_proven(std::string_view query, Effort effort, Alignment& result);
    [[nodiscard]] bool align_certified(Effort effort, Alignment& result);
    [[nodiscard]] bool align_in_bands(bool gaps, Alignment& result);
    [[nodiscard]] bool certified_bands(const Certificate& certificate, std::int64_t score, std::ptrdiff_t widest);
    [[nodiscard]] std::ptrdiff_t widest(Effort effort) const;
    [[nodiscard]] const ExactRun& longest_run() const;
    /// Whether all runs that an alignment so free must have one of are on this diagonal, and all of them known.
    [[nodiscard]] bool only_on(std::ptrdiff_t diagonal, const Freedom& freedom) const;
    [[nodiscard]] bool lies_inside(std::ptrdiff_t diagonal) const;
    [[nodiscard]] Band likely_band() const;

    Scores scores_;
    Span span_;
    Instructions instructions_;
    bool has_index_ = false, may_need_index_ = false;
    CodedBases target_{CodedBases::Side::target}, query_{CodedBases::Side::query};
    TargetIndex index_;
    std::vector<ExactRun> runs_;
    std::vector<Band> bands_;
    EitherBandAligner band_;
    std::optional<WavefrontAligner<std::int16_t>> long_;
    std::optional<WavefrontAligner<std::int32_t>> longest_;
    Alignment trial_;
};

} // namespace spillway
