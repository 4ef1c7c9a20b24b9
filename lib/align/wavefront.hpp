// Alignment of long pairs that differ little, by wavefronts: the cost grows with what the query loses, not with the
// matrix.
//
//     WavefrontAligner<std::int16_t> aligner(scores, Span::local);
//     if (aligner.align(query, target, index, result)) ...     // the oracle's result; else it would not pay
//
// Why the result is the oracle's. Take any loss `limit` and the paths that lose no more. None of them is cut: a
// diagonal is given up only where the bases that remain must lose more than is left (block_losses.hpp), or where no
// such path may come. So for each cell on one of them, where f is the least loss of reaching it, the wave of loss f
// reaches the cell's row. If the best path found loses at most `limit`, that holds for every best path, and the end is
// the oracle's: all best ends are seen. In the traceback the predecessor's loss is known (the cell's, less the step's),
// and the question is whether it attains that: whether the wave of that loss reaches its row. If it does it is reached
// with that loss, as f never falls along a diagonal; if the wave says no, then no best path comes from there. So each
// step is the oracle's: the pair first, over equal bases without a question, for they lose nothing and f does not fall;
// then the shortest deletion, then the shortest insertion. Local: H is 0 where f is what clipping every base before the
// row would lose.
//
// The limit: a first search gives up every diagonal that is far behind the leading one. What it finds is some
// alignment, mostly a best one, and its loss is the limit of the second. If it finds nothing, or something that loses
// much more than the blocks must, there may be a long gap: the limit is a guess from the blocks, raised until it holds.
// Where the blocks say little as well, the pair is left to the matrix.
//
// Memory: for each diagonal of each wave 2 bytes in 16-bit lanes, 4 in 32-bit ones; align() gives up before these are
// 128 MiB, 256 MiB, or more than half as many as the matrix has cells. They are kept for the next pair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "align/band.hpp"
#include "align/bases.hpp"
#include "align/block_losses.hpp"
#include "align/cigar.hpp"
#include "align/exact_runs.hpp"
#include "align/losses.hpp"
#include "align/wavefronts.hpp"
#include "spillway/align.hpp"

namespace spillway {

/// Lane as for Wavefronts. Thread safety: one thread at a time. Scores must have passed check_scores.
template <class Lane>
class WavefrontAligner {
public:
    WavefrontAligner(const Scores& scores, Span span, Instructions instructions = Instructions::widest);

    /// Overwrites `result`. False, with `result` of no use, if the matrix would probably cost less, if the best score
    /// is 0, or if the scores are beyond this method: they tell unknown bases from mismatches and there are some, or
    /// one step loses more than 128 units.
    [[nodiscard]] bool align(const CodedBases& query, const CodedBases& target, const TargetIndex& index,
                             Alignment& result);

private:
    struct End {
        std::int64_t loss;             // of the alignment
        std::int32_t reached_with = 0; // of the path to this cell
        std::ptrdiff_t row = 0, diagonal = 0;
    };
    struct Wave {
        const Lane* lanes; // of band.low and on
        Band band;
    };
    struct Chunk {
        std::unique_ptr<Lane[]> lanes;
        std::size_t size;
    };

    [[nodiscard]] bool suits(const CodedBases& query, const CodedBases& target) const;
    [[nodiscard]] End search_near_the_lead();
    [[nodiscard]] bool search(std::int64_t limit, End& end);
    void consider_ends(End& best) const;
    [[nodiscard]] std::ptrdiff_t first_diagonal_at(std::ptrdiff_t row) const;
    void store_wave();
    [[nodiscard]] bool reaches(std::int64_t loss, std::ptrdiff_t diagonal, std::ptrdiff_t row) const;
    [[nodiscard]] bool trace(const End& end, Alignment& result);

    Scores scores_;
    Span span_;
    Losses losses_;
    Wavefronts<Lane> waves_;
    BlockLosses<Lane> blocks_;
    const CodedBases* query_ = nullptr;
    const CodedBases* target_ = nullptr;
    std::ptrdiff_t query_size_ = 0, target_size_ = 0;
    std::size_t budget_ = 0; // rows that may still be made for this pair
    std::vector<Wave> kept_; // by loss
    std::vector<Chunk> chunks_;
    std::size_t chunk_ = 0, chunk_used_ = 0;
    BackwardCigar path_;
};

extern template class WavefrontAligner<std::int16_t>;
extern template class WavefrontAligner<std::int32_t>;

} // namespace spillway
