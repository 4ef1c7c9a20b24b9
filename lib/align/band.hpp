// Alignment inside a band of diagonals, with its path: the one place besides the oracle where cells are computed.
//
//     BandAligner<std::int16_t> aligner(scores, Span::query);
//     aligner.set_target(target);
//     aligner.set_query(query);
//     Alignment best = worst_alignment();
//     aligner.align({-4, 12}, best);     // best is the oracle's result if no path of that score leaves the band
//
// Why that holds. Let every path of the best score S lie in the band. A cell on such a path has its full-matrix value
// in the band too: its best prefix, followed by that path's rest, scores S, and so lies in the band. A predecessor that
// attains equality in the full matrix is on such a path as well, so it attains it in the band; one outside these paths
// has a band value no greater than its full value, which does not attain it. So ends and steps are those of the oracle,
// ties included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "align/bases.hpp"
#include "align/cigar.hpp"
#include "align/isa.hpp"
#include "spillway/align.hpp"

namespace spillway {

/// Diagonals (target position - query position), both ends included.
struct Band {
    std::ptrdiff_t low = 0;
    std::ptrdiff_t high = 0;
};

/// What any alignment is better than.
[[nodiscard]] inline Alignment worst_alignment() {
    Alignment worst;
    worst.score = std::numeric_limits<std::int32_t>::min();
    return worst;
}

/// The order of ends: highest score, then smallest target end, then smallest query end.
[[nodiscard]] inline bool ends_better(const Alignment& a, const Alignment& b) noexcept {
    if (a.score != b.score) return a.score > b.score;
    if (a.target_end != b.target_end) return a.target_end < b.target_end;
    return a.query_end < b.query_end;
}

template <class Lane>
struct Sweep;

/// Lane is the type that sums are made in: 16 bits where fits_16_bits allows it, else 32.
template <class Lane>
class BandAligner {
public:
    BandAligner(const Scores& scores, Span span, Instructions instructions = Instructions::widest)
        : scores_(scores), span_(span), instructions_(instructions) {}

    void set_target(const CodedBases& target);
    void set_query(const CodedBases& query);

    /// Replaces `best` if the best path inside the band ends better. About 0.2 ns a cell; a band of 32 diagonals, or of
    /// 16 without AVX2, costs about 3 ns a step whatever its width.
    void align(Band band, Alignment& best);

private:
    void trace(const Sweep<Lane>& sweep, Alignment& result);

    Scores scores_;
    Span span_;
    Instructions instructions_;
    std::ptrdiff_t query_size_ = 0, target_size_ = 0;
    bool has_unknown_ = false, target_has_unknown_ = false;
    std::vector<Lane> query_, target_, rows_;
    std::unique_ptr<std::uint8_t[]> steps_;
    std::size_t steps_size_ = 0;
    std::vector<std::ptrdiff_t> row_;
    BackwardCigar path_;
};

/// Whether no sum of an alignment of these lengths leaves 16 bits.
[[nodiscard]] bool fits_16_bits(std::size_t query, std::size_t target, const Scores& scores) noexcept;

extern template class BandAligner<std::int16_t>;
extern template class BandAligner<std::int32_t>;

} // namespace spillway
