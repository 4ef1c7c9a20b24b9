// Scores and ends of many pairs: which pairs share a register, in how many bits, and what is done again in more.
//
//     ScorePass pass(scores, Span::local, chosen_isa());
//     pass.run(pairs, ends);                   // ends[i]: score and end of pairs[i], as align() has them
//
// Pairs of like lengths are put into lanes, first of 8 bits, or of 16 if the scores are large. There a path may begin
// or end only so many bases from the query's ends, and lose only so much; a score that loses less than any path that
// was left out is proven, and most are. The others are done again in 16 bits, or 32, without such limits; so are all
// where few are proven.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "align/batch.hpp"
#include "align/lanes.hpp"
#include "spillway/align.hpp"

namespace spillway {

/// Elements at a register's alignment.
template <class T>
class AlignedArray {
public:
    /// Room for `size` elements of no certain value.
    T* of(std::size_t size);

private:
    std::vector<T> elements_;
};

/// The scores as lanes hold them: divided by what all have in common.
struct ReducedScores {
    ReducedScores(const Scores& scores, Span span);
    std::int64_t match, mismatch, unknown, gap_open, gap_extend, divisor;
    bool whole_query;
};

/// Thread safety: one thread at a time. Scores and lengths must have passed limits.hpp.
class ScorePass {
public:
    ScorePass(const Scores& scores, Span span, Isa isa);

    /// ends and pairs have the same size, at most 2^32 - 1. Memory beside 12 bytes a pair: at most 24 MiB.
    void run(std::span<const SequencePair> pairs, std::span<AlignmentEnd> ends);

private:
    /// What pairs share lanes, longest queries first, and what is left for a wider pass.
    using Order = std::vector<std::uint32_t>;

    template <class Lane>
    struct Room {
        AlignedArray<Lane> query, target, ends, any, insertion, best, best_row;
    };

    void run_single(std::uint32_t pair);
    template <class Lane>
    void run_lanes(const LaneKernel<Lane>& kernel, Room<Lane>& room, bool proves, Order& order, Order& left);
    template <class Lane>
    void run_group(const LaneKernel<Lane>& kernel, Room<Lane>& room, bool proves, std::span<const std::uint32_t> group,
                   Order& left);
    template <class Lane>
    void pack(std::span<const std::uint32_t> group, std::ptrdiff_t lanes, Room<Lane>& room, LaneMatrix<Lane>& m);
    const char* texts(std::span<const std::uint32_t> group, bool queries, std::ptrdiff_t stride, std::ptrdiff_t lanes);

    Scores scores_;
    Span span_;
    ReducedScores reduced_;
    LaneKernels kernels_;
    bool narrow_; ///< Whether sums fit 8 bits.
    std::span<const SequencePair> pairs_;
    std::span<AlignmentEnd> ends_;
    std::vector<char> texts_;
    AlignedArray<std::uint8_t> query_codes_, target_codes_;
    Room<std::int8_t> room8_;
    Room<std::int16_t> room16_;
    Room<std::int32_t> room32_;
    BatchAligner one_by_one_;
    Alignment single_;
};

} // namespace spillway
