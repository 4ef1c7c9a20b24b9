// The best alignment without gaps on one diagonal, by the tie rule.
//
//     if (align_ungapped(query, target, 17, scores, Span::local, alignment)) ...
#pragma once

#include <cstddef>

#include "align/bases.hpp"
#include "spillway/align.hpp"

namespace spillway {

/// Writes it, its CIGAR included, if there is one: Span::query needs the whole query inside the target.
/// About 0.3 ns a base.
bool align_ungapped(const CodedBases& query, const CodedBases& target, std::ptrdiff_t diagonal, const Scores& scores,
                    Span span, Alignment& result);

} // namespace spillway
