// What an alignment can still look like when it scores at least so much: how far it drifts, how long it agrees.
//
//     Certificate certificate(scores, Span::query, 150, 0);
//     Freedom freedom = certificate.freedom(580);    // 600 is perfect: at most one gap of 7, a run of 50 equal bases
//
// All of it is arithmetic on the loss: what the alignment scores less than a query whose every base matches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "spillway/align.hpp"

namespace spillway {

/// What holds for every alignment of a given score or more.
struct Freedom {
    bool gaps = true;               ///< Whether one can have a gap.
    std::ptrdiff_t drift = 0;       ///< Diagonals that one can be away from any of its others.
    std::ptrdiff_t longest_run = 0; ///< Each has a run of this many equal bases, or more, on one diagonal.
};

class Certificate {
public:
    /// `unknown` of the query's bases are not A, C, G or T. Scores must have passed check_scores.
    Certificate(const Scores& scores, Span span, std::size_t query_size, std::size_t unknown);

    /// No alignment scores more.
    [[nodiscard]] std::int64_t perfect() const noexcept { return perfect_; }
    [[nodiscard]] Freedom freedom(std::int64_t score) const noexcept;

private:
    std::int64_t query_size_, unknown_, perfect_;
    std::int64_t match_, open_, extend_;
    std::int64_t least_gap_;       // the least loss of any gap
    std::int64_t least_event_;     // of what ends a run of equal bases, other than an unknown base of the query
    std::int64_t least_unmatched_; // of a base of the query, not unknown, that matches nothing
};

} // namespace spillway
