// Scores and ends of many pairs: which pairs share a register, in how many bits, and what is done again in more.
//
//     ScorePass pass(scores, Span::local, chosen_isa());
//     pass.run(pairs, ends);                   // ends[i]: score and end of pairs[i], as align() has them
//
// Pairs of like lengths are put into lanes, where they can be those of one target. First lanes of 8 bits, or of 16 if
// the scores are large. There a path may begin
// or end only so many bases from the query's ends, and lose only so much; a score that loses less than any path that
// was left out is proven, and most are. The others are done again in 16 bits, or 32, without such limits; so are all
// where few are proven. Whole queries are done again in 8 bits by differences, if the scores allow it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "align/bases.hpp"
#include "align/batch.hpp"
#include "align/lanes.hpp"
#include "spillway/align.hpp"

namespace spillway {

/// Memory that is used again and again, for elements of any type at a register's alignment.
class AlignedRoom {
public:
    /// Room for `size` elements of no certain value; what was in it is lost.
    template <class T>
    T* of(std::size_t size);

private:
    std::vector<std::byte> bytes_;
};

/// The scores as lanes hold them: divided by what all have in common.
struct ReducedScores {
    ReducedScores(const Scores& scores, Span span);
    std::int64_t match, mismatch, unknown, gap_open, gap_extend, divisor;
    bool whole_query;

    /// Of a query of so many bases, in one gap.
    [[nodiscard]] std::int64_t all_inserted(std::ptrdiff_t query) const noexcept {
        return -(gap_open + (query - 1) * gap_extend);
    }
};

/// Thread safety: one thread at a time. Scores and lengths must have passed limits.hpp.
class ScorePass {
public:
    ScorePass(const Scores& scores, Span span, Isa isa);

    /// ends and pairs have the same size, at most 2^32 - 1. Memory beside 16 bytes a pair: at most 24 MiB.
    void run(std::span<const SequencePair> pairs, std::span<AlignmentEnd> ends);

private:
    /// Indices of pairs.
    using Order = std::vector<std::uint32_t>;
    using Group = std::span<const std::uint32_t>;

    void run_single(std::uint32_t pair);
    /// Takes the pairs of `order`; those that it does not settle are in `left`.
    template <class Lane>
    void run_lanes(const LaneKernel<Lane>& kernel, bool proves, Order& order, Order& left);
    /// Of pairs with one target those that fill registers; returns how many others there are, which are then first.
    template <class Lane>
    std::size_t run_shared(const LaneKernel<Lane>& kernel, bool proves, std::span<std::uint32_t> pairs, Order& left);
    template <class Lane>
    void run_group(const LaneKernel<Lane>& kernel, bool proves, bool shared, Group group, Order& left);
    /// The same for whole queries, by differences.
    void run_differences(Order& order, Order& left);
    void run_differences_of(Group group);
    template <class Lane>
    void lay_out(Group group, bool shared, std::ptrdiff_t lanes, LaneMatrix<Lane>& m);
    template <class Lane>
    void pack(Group group, bool shared, std::ptrdiff_t lanes, LaneMatrix<Lane>& m);
    template <class Lane>
    const Lane* say_where_paths_end(Group group, std::ptrdiff_t lanes, const LaneMatrix<Lane>& m);
    void sort_by_length(std::span<std::uint32_t> pairs) const;
    [[nodiscard]] std::ptrdiff_t alike(Group pairs, std::ptrdiff_t most, bool proves) const;
    [[nodiscard]] bool share_target(std::uint32_t a, std::uint32_t b) const;
    const char* texts(Group group, bool queries, std::ptrdiff_t stride, std::ptrdiff_t lanes);

    Scores scores_;
    Span span_;
    ReducedScores reduced_;
    LaneKernels kernels_;
    bool narrow_;      ///< Whether sums fit 8 bits.
    bool differences_; ///< Whether those between whole queries' neighbouring sums do.
    std::span<const SequencePair> pairs_;
    std::span<AlignmentEnd> ends_;
    std::size_t tried_ = 0; ///< Pairs that the pass has taken on.
    std::vector<char> texts_;
    CodedBases shared_target_{CodedBases::Side::query};
    AlignedRoom codes_, query_, target_, ends_room_, edge_, end_sums_, profile_;
    BatchAligner one_by_one_;
    std::array<std::int32_t, 64> target_sizes_{}; ///< By lane.
    Alignment single_;
};

} // namespace spillway
