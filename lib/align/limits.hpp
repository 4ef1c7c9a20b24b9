// The ranges of scores and lengths inside which no form of the alignment can overflow 32 bits.
//
//     check_scores(scores);
//     check_lengths(query.size(), target.size(), scores);
#pragma once

#include <cstddef>
#include <cstdint>

#include "spillway/align.hpp"

namespace spillway {

/// Cells of one matrix, with as many more rows and columns as `margin`, which is what a register may take beside them:
/// so a byte a cell stays within 256 MiB, whatever the shape, and every CIGAR length within htslib's 28 bits.
inline constexpr std::uint64_t max_cells = std::uint64_t{1} << 28, margin = 32;

/// Sums of scores stay within this, so that minus infinity can be -2^30 and still be subtracted from.
inline constexpr std::int64_t max_sum = std::int64_t{1} << 29;

/// Throws Error(usage) unless match > 0 >= mismatch, unknown and gap_open, gap_extend >= 0.
void check_scores(const Scores& scores);

/// The same scheme with gap_extend <= gap_open, of which more can be proven. Where opening a gap costs no more than
/// extending one, the recurrence opens it anew with each base, whatever extending costs: no sum and no step changes.
[[nodiscard]] Scores with_cheapest_extension(Scores scores) noexcept;

/// Throws Error(usage) if a pair of these lengths has too many cells or could sum past max_sum.
void check_lengths(std::size_t query, std::size_t target, const Scores& scores);

} // namespace spillway
