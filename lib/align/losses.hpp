// What an alignment loses: its score, told as the distance from that of a query whose every base matches.
//
//     Losses losses({4, -6, -6, 8, 2});    // unit 2: a mismatch loses 5, a deletion of g bases 4 + (g - 1)
//     // score = match * query length - unit * loss
//
// A base of the query that is not in a pair gives up its match as well, so an insertion or a clipped base loses that on
// top. No loss is negative, and a match loses nothing: that makes alignment a search for the cheapest path.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "spillway/align.hpp"

namespace spillway {

/// In units of the greatest common divisor of all of them. Unknown bases are as mismatch.
struct Losses {
    explicit Losses(const Scores& scores)
        : unit(std::gcd(std::gcd(scores.match, scores.mismatch), std::gcd(scores.gap_open, scores.gap_extend))),
          mismatch((scores.match - scores.mismatch) / unit), deletion_open(scores.gap_open / unit),
          deletion_extend(scores.gap_extend / unit), insertion_open((scores.gap_open + scores.match) / unit),
          insertion_extend((scores.gap_extend + scores.match) / unit), clip(scores.match / unit) {}

    std::int32_t unit;
    std::int32_t mismatch;
    std::int32_t deletion_open;    ///< Of a gap's first base,
    std::int32_t deletion_extend;  ///< and of each further one.
    std::int32_t insertion_open;   ///< > deletion_open.
    std::int32_t insertion_extend; ///< > deletion_extend.
    std::int32_t clip;             ///< Of a query base before the alignment's begin or after its end, if local.

    /// The most that a single step loses.
    [[nodiscard]] std::int32_t largest() const noexcept { return std::max(mismatch, insertion_open); }
};

} // namespace spillway
