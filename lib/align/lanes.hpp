// Scores of many pairs at once, one pair in each lane of a register: the inner loops, once for each ISA.
//
//     const LaneKernels& kernels = lane_kernels(isa);
//     LaneMatrix<std::int8_t> m = ...;         // lanes8 pairs, packed
//     kernels.on8.fill(m, best);               // each lane's best end
//
// Rows go with the query, columns with the target. A block of rows is held in registers and swept over a tile of
// columns; between blocks the last row's sums and insertions lie in memory, between tiles the last column's.
//
// A lane's sum is counted from where a path that has only matched so far would stand: `perfect` in row 0, and match
// more with each row. No sum is less than `floor`: what would sink below, wherever a tile begins or sums are lowered,
// is put there. From there it may rise again, but a path lost perfect - floor to come so low, and the loss of a path
// never shrinks on its way: so a sum is exact if its path has lost less. That makes 8 bits enough for queries of any
// length: every so many rows, before a sum can pass the greatest value, all are lowered. Within a tile a deletion's sum
// never shrinks and the others of its row are no less, so that one step from any of them stays in the type: the inner
// loop needs no saturation, of which processors do half as many, or fewer, a cycle.
//
// Sums are counted upwards by gap_extend with each row and column as well. Then a gap costs nothing as it grows, which
// saves two operations of ten a cell. Columns start from 0 again with each tile.
//
// Tiles of columns follow one another, all rows of one before the next: a tile's columns, and the sums that lie between
// its blocks, stay in the nearest cache however long the target is. Where all lanes have the same target, what each
// row's bases score against each base is laid out once, and a cell loads it instead of comparing.
//
// Where a path may end, its sums are kept for a window of rows, and only the greatest of each column is looked for: the
// row is searched once a lane's best end has risen, among those of one column.
//
//     vector operations a cell: pair 2 (xor, table; or compare, blend; none if the target is shared), add, max 4,
//     subtract: 8, or 6; one more in rows where a path may begin, and two where it may end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "align/isa.hpp"

namespace spillway {

/// Queries or targets of a group as they are before packing: one row of bytes each, `stride` apart.
struct LaneText {
    const char* text = nullptr;
    std::ptrdiff_t stride = 0; ///< A multiple of 16, at least the length.
    std::ptrdiff_t length = 0; ///< Of the longest; what lies behind a shorter one may be anything.
};

/// The least sum of a lane; of 32 bits one that can still be subtracted from.
template <class Lane>
inline constexpr Lane least_sum = static_cast<Lane>(sizeof(Lane) == 4 ? -(1 << 30) : -(1 << (8 * sizeof(Lane) - 1)));
template <class Lane>
inline constexpr Lane greatest_sum = static_cast<Lane>(-1 - least_sum<Lane>);

/// The least floor: one step down from it is a number of the type.
template <class Lane>
[[nodiscard]] constexpr std::int64_t least_floor(std::int64_t lowest_pair, std::int64_t gap_open,
                                                 std::int64_t gap_extend) noexcept {
    const std::int64_t down = std::max(gap_open - gap_extend, -lowest_pair - 2 * gap_extend);
    return least_sum<Lane> + std::max<std::int64_t>(0, down);
}

/// No path's score is less.
inline constexpr std::int32_t least_end_score = -(1 << 29);

/// A group of pairs, and room for what is computed. Rows and columns are arrays of as many elements as there are lanes,
/// one after the other, aligned as registers are.
template <class Lane>
struct LaneMatrix {
    static constexpr std::ptrdiff_t block = 4; ///< Rows held in registers: as many as sixteen of them take.
    static constexpr std::ptrdiff_t tile = 64; ///< Columns. More would leave less of 8 bits, fewer cost more to begin.
    static constexpr std::ptrdiff_t window = 32; ///< Rows whose ends are kept at once: a multiple of block.
    /// What a row has between two tiles, in lanes; and the scores of its bases, if the target is shared.
    static constexpr std::ptrdiff_t edges = 3, bases = 5;

    const Lane* query = nullptr;                 ///< rows x lanes: codes 0 to 3, unknown 4.
    const Lane* target = nullptr;                ///< columns x lanes: codes 0 to 3, unknown 8.
    const std::uint8_t* shared_target = nullptr; ///< Instead, if not null: columns, codes 0 to 3, unknown 4.
    const std::int32_t* target_sizes = nullptr;  ///< By lane: columns of its own. A path ends in no other.
    std::ptrdiff_t rows = 0;                     ///< A multiple of block.
    std::ptrdiff_t columns = 0;                  ///< At least 1.
    std::ptrdiff_t begins = 0;     ///< A path may begin in this many rows, and before the first: a multiple of block.
    std::ptrdiff_t first_end = 0;  ///< A path may end in this row or later, from 0: a multiple of block.
    std::ptrdiff_t first_last = 0; ///< From this row on, a multiple of block, `ends` says where.
    std::int64_t least_score = least_end_score; ///< Of an end, one that scores more is looked for.
    const Lane* ends = nullptr; ///< (rows - first_last) x lanes: greatest_sum where a path may end, else least_sum.
    bool distinguishes = false; ///< Whether there are unknown bases, and they score otherwise than a mismatch.
    bool whole_query = false;   ///< Column 0 is an insertion from row 0 on, not a new begin.

    Lane match = 0, mismatch = 0, unknown = 0; ///< Added.
    Lane gap_open = 0, gap_extend = 0;         ///< Subtracted.
    Lane perfect = 0;                          ///< A sum of 0 before the first row; at least floor.
    Lane floor = 0;                            ///< least_floor, or more.
    std::ptrdiff_t period = 0;                 ///< Rows after which sums are lowered; 0: never. A multiple of block.

    Lane* edge = nullptr;     ///< edges x rows x lanes: scratch.
    Lane* end_sums = nullptr; ///< window x tile x lanes: scratch.
    Lane* profile = nullptr;  ///< bases x rows x lanes: scratch, if the target is shared.
};

/// A lane's best end: the greatest score, then the first column, then the first row, from 0.
struct LaneEnd {
    std::int32_t score = 0, row = 0, column = 0;
};

template <class Lane>
struct LaneKernel {
    std::ptrdiff_t lanes = 0;
    /// ends: one for each lane; a lane without any has a score of less than least_end_score.
    void (*fill)(const LaneMatrix<Lane>&, LaneEnd* ends) = nullptr;
};

struct LaneKernels {
    LaneKernel<std::int8_t> on8;
    LaneKernel<std::int16_t> on16;
    LaneKernel<std::int32_t> on32;
    /// Of whole queries (differences.hpp), where match + 2 gap_open is at most 255. Counts scores from that of column 0,
    /// and sets no row. Takes of the matrix texts, sizes, scores, first_last and ends, and edge as scratch.
    LaneKernel<std::int8_t> differences;
    /// Writes the codes of `lanes` (a multiple of 16) texts, position by position, to `codes`, whose length is rounded
    /// up to a multiple of 16. True if there is an unknown base.
    bool (*pack)(const LaneText& texts, std::ptrdiff_t lanes, std::uint8_t unknown, std::uint8_t* codes) = nullptr;
};

/// Of an available ISA. Isa::baseline has none: 0 lanes.
[[nodiscard]] LaneKernels lane_kernels(Isa isa);

} // namespace spillway
