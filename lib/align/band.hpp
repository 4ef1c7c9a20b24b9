// Alignment inside a band of diagonals, with its path: the one place besides the oracle where cells are computed.
//
//     BandAligner<std::int16_t> aligner(scores, Span::query);
//     aligner.set_target(target);
//     aligner.set_query(query);
//     Alignment best = worst_alignment;
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
#include <vector>

#include "align/bases.hpp"
#include "align/cigar.hpp"
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

/// Lane is the type that sums are made in: 16 bits where fits_16_bits allows it, else 32.
template <class Lane>
class BandAligner {
public:
    BandAligner(const Scores& scores, Span span) : scores_(scores), span_(span) {}

    void set_target(const CodedBases& target);
    void set_query(const CodedBases& query);

    /// Replaces `best` if the best path inside the band ends better. About 0.3 ns a cell, a step of the band at least 5
    /// ns.
    void align(Band band, Alignment& best);

    /// The shape of one sweep over the band's antidiagonals (cells of equal i + j), for the loops that do it.
    struct Sweep {
        const Lane* query;  // base i - 1 at [i - 1]
        const Lane* target; // backwards: base j - 1 at [target_size - j]
        std::ptrdiff_t query_size, target_size;
        Band band;
        std::ptrdiff_t begin, end; // antidiagonals
        Lane* any[2];              // by i; of the latest even and odd antidiagonal
        Lane* deletion;            // by i; of the latest antidiagonal
        Lane* insertion;
        Lane* best; // by i; local only: the best value and the first antidiagonal that has it
        Lane* best_at;
        Lane* steps;      // for the traceback
        std::size_t* row; // by antidiagonal - begin: where its steps begin
        Lane match, mismatch, unknown, gap_open, gap_extend;
        Lane query_best; // out, Span::query only
        std::ptrdiff_t query_best_at;

        [[nodiscard]] std::ptrdiff_t first_row(std::ptrdiff_t antidiagonal) const noexcept;
        [[nodiscard]] std::ptrdiff_t last_row(std::ptrdiff_t antidiagonal) const noexcept;
    };

private:
    void trace(const Sweep& sweep, std::ptrdiff_t i, std::ptrdiff_t j, Alignment& result);

    Scores scores_;
    Span span_;
    std::ptrdiff_t query_size_ = 0, target_size_ = 0;
    bool has_unknown_ = false, target_has_unknown_ = false;
    std::vector<Lane> query_, target_, rows_, steps_;
    std::vector<std::size_t> row_;
    BackwardCigar path_;
};

/// Whether no sum of an alignment of these lengths leaves 16 bits.
[[nodiscard]] bool fits_16_bits(std::size_t query, std::size_t target, const Scores& scores) noexcept;

extern template class BandAligner<std::int16_t>;
extern template class BandAligner<std::int32_t>;

} // namespace spillway
