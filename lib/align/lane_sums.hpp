// Where the sums of lanes lie: how they are subtracted and lowered, and what lies between the blocks of a tile. Included
// once for each ISA, by lanes.cpp.
//
//     Lowering<Lane> sums{m.perfect};
//     for (row = 0; row < m.rows; row += m.block) { ... lower = sums.pass(m, row); ... }     // sums.zero: before the row
#if defined(SPILLWAY_ALIGN_LANE_SUMS_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef SPILLWAY_ALIGN_LANE_SUMS_HPP
#undef SPILLWAY_ALIGN_LANE_SUMS_HPP
#else
#define SPILLWAY_ALIGN_LANE_SUMS_HPP
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

#include "align/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace spillway::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// a - b, but not less than the least value. Sums of 32 bits never come near it.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V minus(D, V a, V b) {
    if constexpr (sizeof(hn::TFromD<D>) == 4) {
        return hn::Sub(a, b);
    } else {
        return hn::SaturatedSub(a, b);
    }
}

/// Registers are of one size on all these targets.
template <class D>
inline constexpr auto lanes = static_cast<std::ptrdiff_t>(hn::MaxLanes(D()));

template <class Lane>
HWY_INLINE Lane at_least(Lane floor, std::int64_t sum) {
    return sum < floor ? floor : static_cast<Lane>(sum);
}

/// Where sums lie as rows go by: they are lowered after some blocks.
template <class Lane>
struct Lowering {
    std::int64_t zero;        ///< A sum of 0 before the row, before the tile.
    std::ptrdiff_t since = 0; ///< Rows since they were last lowered.

    /// Goes on past the block that begins at `row`. Returns what is then subtracted.
    HWY_INLINE std::int64_t pass(const LaneMatrix<Lane>& m, std::ptrdiff_t row) {
        constexpr std::ptrdiff_t block = LaneMatrix<Lane>::block;
        since += block;
        std::int64_t lower = 0;
        if (m.period != 0 && row < m.first_end && (since >= m.period || row + block == m.first_end)) {
            lower = (std::int64_t{m.match} + m.gap_extend) * since;
            since = 0;
        }
        zero += block * m.gap_extend - lower;
        return lower;
    }
};

/// A sum of 0 before a row, before the tile.
template <class Lane>
HWY_INLINE std::int64_t zero_before(const LaneMatrix<Lane>& m, std::ptrdiff_t row) {
    Lowering<Lane> sums{m.perfect};
    for (std::ptrdiff_t passed = 0; passed < row; passed += LaneMatrix<Lane>::block) sums.pass(m, passed);
    return sums.zero;
}

/// What lies between the blocks of a tile, column by column.
template <class D>
struct Tile {
    using Lane = hn::TFromD<D>;
    static constexpr std::ptrdiff_t size = LaneMatrix<Lane>::tile * lanes<D>;

    HWY_ALIGN Lane any[size];
    HWY_ALIGN Lane insertion[size];
    HWY_ALIGN Lane best[size]; ///< The greatest sum of a path's end in the column, in the rows of LaneMatrix::end_sums.
};

/// Sums of 0 where paths may begin, in memory: there are not registers enough. Cells of one antidiagonal have the same,
/// so a block has those of the one before it from `block` columns on, until sums are lowered.
template <class D>
class ZeroSums {
public:
    using Lane = hn::TFromD<D>;

    /// For a block: of its row r and column k, at (r + k) * lanes. zero: a sum of 0 before its first row.
    HWY_INLINE const Lane* of_block(const LaneMatrix<Lane>& m, std::int64_t zero) {
        const D d;
        std::int64_t columns = (zero - first_) / m.gap_extend;
        if (columns < 0 || columns > ahead || first_ + columns * m.gap_extend != zero) {
            first_ = zero;
            columns = 0;
            auto sum = hn::Set(d, static_cast<Lane>(zero + 2 * m.gap_extend));
            for (std::ptrdiff_t k = 0; k < size; ++k) {
                hn::Store(sum, d, sums_ + k * lanes<D>);
                sum = hn::Add(sum, hn::Set(d, m.gap_extend));
            }
        }
        return sums_ + columns * lanes<D>;
    }

private:
    static constexpr std::ptrdiff_t ahead = 32, size = LaneMatrix<Lane>::tile + LaneMatrix<Lane>::block + ahead;

    std::int64_t first_ = std::int64_t{1} << 40; // none yet
    HWY_ALIGN Lane sums_[size * lanes<D>];
};

} // namespace
} // namespace spillway::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
