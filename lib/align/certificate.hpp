// What an alignment can still look like when it scores at least so much: how far it drifts, how long it agrees.
//
//     Certificate certificate(scores, Span::query, 150, 0);
//     Freedom freedom = certificate.freedom(580);    // 600 is perfect: at most one gap of 7, a run of 50 equal bases
//
// All of it is arithmetic on the loss: what the alignment scores less than a query whose every base matches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "align/band.hpp"
#include "spillway/align.hpp"

namespace spillway {

/// Whether what an alignment loses bounds the length of its gaps. Else nothing is proven here, and only the whole matrix
/// says which alignment is best.
[[nodiscard]] constexpr bool certifiable(const Scores& scores) noexcept {
    return scores.gap_open >= scores.gap_extend && scores.gap_extend > 0;
}

/// What holds for every alignment of a given score or more. All in bases of the query or diagonals.
struct Freedom {
    bool gaps = true;               ///< Whether one can have a gap.
    std::ptrdiff_t deleted = 0;     ///< The most that one can delete in all,
    std::ptrdiff_t inserted = 0;    ///< or insert.
    std::ptrdiff_t clipped = 0;     ///< The most that one with a gap can clip.
    std::ptrdiff_t longest_run = 0; ///< Each has a run of this many equal bases, or more, on one diagonal.

    [[nodiscard]] std::ptrdiff_t drift() const noexcept { return deleted > inserted ? deleted : inserted; }
};

class Certificate {
public:
    /// `unknown` of the query's bases are not A, C, G or T. Scores must have passed check_scores.
    Certificate(const Scores& scores, Span span, std::size_t query_size, std::size_t unknown);

    /// No alignment scores more.
    [[nodiscard]] std::int64_t perfect() const noexcept { return perfect_; }
    [[nodiscard]] Freedom freedom(std::int64_t score) const noexcept;
    /// Every alignment of at least this score stays on these diagonals: where it touches one further out, the target's
    /// or the query's end leaves too few bases that it could pair, before and behind.
    [[nodiscard]] Band diagonals(std::int64_t score, std::size_t target_size) const noexcept;

    /// The least loss of any gap, and of gaps that lead away from a diagonal and back to it.
    [[nodiscard]] std::int64_t least_gap() const noexcept { return least_gap_; }
    [[nodiscard]] std::int64_t least_detour() const noexcept { return 2 * least_gap_ + match_; }
    /// What `mismatches` lose at most, and how many gaps and mismatches such a loss pays for.
    [[nodiscard]] std::int64_t most_lost(std::size_t mismatches) const noexcept {
        return worst_pair_ * static_cast<std::int64_t>(mismatches);
    }
    [[nodiscard]] std::int64_t most_events(std::int64_t loss) const noexcept { return loss / least_event_; }

private:
    std::int64_t query_size_, unknown_, perfect_;
    std::int64_t match_, open_, extend_, worst_pair_;
    bool clips_, holds_;
    std::int64_t least_gap_;       // the least loss of any gap
    std::int64_t least_event_;     // of what ends a run of equal bases, other than an unknown base of the query
    std::int64_t least_unmatched_; // of a base of the query, not unknown, that matches nothing
};

} // namespace spillway
