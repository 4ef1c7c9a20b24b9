// How far along each diagonal of the matrix a given loss reaches: one wave of furthest rows after the other.
//
//     Wavefronts<std::int16_t> waves(losses);
//     waves.begin(query, target, {-40, 60}, {.row = 0});
//     while (waves.furthest() < n) waves.advance();      // waves.loss() is the least that the query loses
//
// Row i of diagonal k is the cell after i bases of the query and i + k of the target. Let f be the least loss of a path
// that ends at a cell; f never falls along a diagonal (take the last base of both from a path to the next cell: what is
// left loses no more). So all that a loss s can reach is told by one number a diagonal, the furthest row with f <= s.
// These come from those of smaller losses:
//
//     deletion(s, k)  = max(any(s - deletion_open, k - 1),  deletion(s - deletion_extend, k - 1))
//     insertion(s, k) = max(any(s - insertion_open, k + 1), insertion(s - insertion_extend, k + 1)) + 1
//     any(s, k)       = max(any(s - mismatch, k) + 1, deletion(s, k), insertion(s, k)), and on over equal bases
//
// Paths that step over the query's or the target's end are cut there: f does not fall along a diagonal, so the last
// cell inside is reached as well.
//
// Waves lie in a ring of rows that is never cleared. What is read there beyond a wave's own diagonals is from a smaller
// loss, or nothing: a row that is reached, though maybe not the furthest. So a number that is read is never too large,
// and it is exact wherever the diagonals kept are those that matter (see wavefront.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "align/band.hpp"
#include "align/bases.hpp"
#include "align/losses.hpp"

namespace spillway {

/// Where paths may begin, at no loss: in this row, on each diagonal of the band.
struct WaveStart {
    std::ptrdiff_t row = 0;
    std::ptrdiff_t highest; ///< And up to this diagonal.
    bool inserting = false; ///< Or inside an insertion that goes on.
    bool anywhere = false;  ///< Or in any later row, which loses a clip for each row before it.
};

/// The rows that one step reads and writes, by diagonal - low, from first to last.
template <class Lane>
struct WaveStep {
    const Lane *mismatched, *deletion_opened, *deletion_extended, *insertion_opened, *insertion_extended;
    const Lane *least, *most; ///< The first and the last row of each diagonal.
    Lane *any, *deletion, *insertion;
    Lane* furthest_rows; ///< Of any, of all losses yet.
    const std::uint8_t *query, *target;
    std::ptrdiff_t low, first, last;
    Lane start;              ///< Paths may begin in this row; none if negative.
    std::ptrdiff_t furthest; ///< Out: of any.
};

/// Lane is the type of a row's number. Thread safety: one thread at a time.
template <class Lane>
class Wavefronts {
public:
    /// The longest query and the largest loss for which no lane overflows: an insertion may run past the query's end by
    /// half of the loss, and what is nowhere comes up by a row for each unit of it.
    static constexpr std::ptrdiff_t most_rows = sizeof(Lane) == 2 ? 20'000 : 1 << 28;
    static constexpr std::int32_t most_loss = sizeof(Lane) == 2 ? 24'000 : 1 << 28;

    explicit Wavefronts(const Losses& losses, Instructions instructions = Instructions::widest);

    /// Makes the wave of loss 0. The bases must live as long as waves are made of them. `band` bounds all waves.
    void begin(const CodedBases& query, const CodedBases& target, Band band, WaveStart start);

    /// Makes the wave of the next loss, at a cost by its diagonals.
    void advance();

    [[nodiscard]] std::int32_t loss() const noexcept { return loss_; }
    /// The furthest row that this loss reaches on any diagonal of the wave; negative if none.
    [[nodiscard]] std::ptrdiff_t furthest() const noexcept { return furthest_; }
    /// The diagonals of this wave; none if low > high.
    [[nodiscard]] const Band& band() const noexcept { return bands_[place(loss_)]; }
    /// The wave itself, on the diagonals of band(): the furthest row, negative if none is reached.
    [[nodiscard]] Lane at(std::ptrdiff_t diagonal) const noexcept { return rows(diagonal)[0]; }
    /// From this diagonal to band().high.
    [[nodiscard]] const Lane* rows(std::ptrdiff_t diagonal) const noexcept {
        return lanes_.data() + row(any, loss_) + (diagonal - whole_.low);
    }

    /// Gives up the diagonals at either end that have not reached row `least`, and beginning before it.
    void trim(std::ptrdiff_t least);

private:
    enum Kind : std::uint8_t { any, deletion, insertion };

    [[nodiscard]] std::size_t place(std::int32_t loss) const noexcept {
        return static_cast<std::size_t>(loss) & (ring_ - 1);
    }
    /// Where the first diagonal of a row is in lanes_.
    [[nodiscard]] std::ptrdiff_t row(Kind kind, std::int32_t loss) const noexcept;
    [[nodiscard]] Band next_band(std::ptrdiff_t start_row) const noexcept;
    void make_wave();

    Losses losses_;
    Instructions instructions_;
    std::size_t ring_; // a power of two
    const CodedBases* query_ = nullptr;
    const CodedBases* target_ = nullptr;
    Band whole_;
    WaveStart start_;
    std::int32_t loss_ = 0;
    std::ptrdiff_t furthest_ = -1;
    std::ptrdiff_t least_ = 0; // paths no longer begin before this row
    std::ptrdiff_t stride_ = 0;
    std::vector<Lane> lanes_; // rows: nothing, least, most, furthest, then three kinds of ring_ each
    std::vector<Band> bands_;
};

extern template class Wavefronts<std::int16_t>;
extern template class Wavefronts<std::int32_t>;

} // namespace spillway
