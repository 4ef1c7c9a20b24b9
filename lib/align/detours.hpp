// Proves that no gap helps a query that already lies on one diagonal with a few mismatches, without any matrix.
//
//     if (detours_excluded(query, target, 17, certificate, freedom)) ...   // the diagonal alone gives the result
//
// An optimal path that has a gap leaves the diagonal. Each detour, before its first contact with the diagonal, after
// its last, or between two, loses no more than the diagonal does over the same bases of the query: else the diagonal
// would be better there. So it steps around one or more mismatches, and what these lose pays for its gaps and for
// whatever else interrupts it: that allows a known number of exact stretches on neighbouring diagonals. If even the
// longest ones, put one after the other, do not reach over the mismatches, there is no such detour.
#pragma once

#include <cstddef>

#include "align/bases.hpp"
#include "align/certificate.hpp"

namespace spillway {

/// True only if every optimal path is on `diagonal`. Needs: each optimal path touches it; `freedom` holds for each of
/// them; the whole query lies inside the target there, and has no unknown base. About 20 ns a mismatch and diagonal of
/// drift.
[[nodiscard]] bool detours_excluded(const CodedBases& query, const CodedBases& target, std::ptrdiff_t diagonal,
                                    const Certificate& certificate, const Freedom& freedom);

} // namespace spillway
