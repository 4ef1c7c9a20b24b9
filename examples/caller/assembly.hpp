// Sequences that reads spell and no single read's CIGAR shows: local assembly by a de Bruijn graph.
//
//     for (const std::string& path : caller::assemble(reference_stretch, reads)) ...   // likeliest first, each its own
//
// For what an aligner cannot place: insertions and deletions so large, or so close to others, that reads end in soft
// clips or in mismatches beside them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace caller {

/// One read, whole, its clipped ends included.
struct AssemblyRead {
    std::string_view bases;
    std::span<const std::uint8_t> qualities;
};

/// Paths other than the reference from its first to its last k-mer, at most max_assembled of them, by support; none
/// where the reference repeats a k-mer. A pure function of the reads as a set. Cost: linear in their bases.
[[nodiscard]] std::vector<std::string> assemble(std::string_view reference, std::span<const AssemblyRead> reads);

inline constexpr std::size_t max_assembled = 6;

} // namespace caller
