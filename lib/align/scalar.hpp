// The oracle: affine alignment and its tie rule as docs/tie_rule.md states them, in the plainest code.
//
//     Alignment expected = align_scalar(query, target, scores, Span::local);   // 12 bytes a cell, about 5 ns a cell
#pragma once

#include "spillway/align.hpp"

namespace spillway {

/// What align() gives for the same arguments, bit for bit. Throws Error(usage) where align() does.
[[nodiscard]] Alignment align_scalar(std::string_view query, std::string_view target, const Scores& scores, Span span);

} // namespace spillway
