// Where the paths of lanes end best, found from the sums that rows leave in a tile. Included once for each ISA, by
// lanes.cpp.
//
//     BestEnds<D> ends(m, found);
//     ends.begin_tile();
//     ends.take(tile, window, column, count);    // each window of rows, from the first; then found is up to date
#if defined(SPILLWAY_ALIGN_LANE_ENDS_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef SPILLWAY_ALIGN_LANE_ENDS_HPP
#undef SPILLWAY_ALIGN_LANE_ENDS_HPP
#else
#define SPILLWAY_ALIGN_LANE_ENDS_HPP
#endif

#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

#include "align/lane_sums.hpp"
#include "align/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace spillway::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// The best end of each lane, tile after tile, and in each tile window of rows after window.
template <class D>
class BestEnds {
public:
    using Lane = hn::TFromD<D>;
    using V = hn::Vec<D>;

    HWY_INLINE BestEnds(const LaneMatrix<Lane>& m, LaneEnd* ends)
        : m_(m), ends_(ends), zero_(zero_before(m, m.first_end) + m.gap_extend),
          best_(hn::Set(D(), at_least(least_sum<Lane>, m.least_score + zero_))), best_column_(hn::Set(D(), Lane{-1})) {
        for (std::ptrdiff_t lane = 0; lane < lanes<D>; ++lane) ends[lane] = {-(1 << 30), 0, 0};
    }

    /// What was found before comes before all of it.
    HWY_INLINE void begin_tile() { best_column_ = hn::Set(D(), Lane{-1}); }

    HWY_INLINE void take(const Tile<D>& tile, std::ptrdiff_t window, std::ptrdiff_t column, std::ptrdiff_t count) {
        const D d;
        const V extend = hn::Set(d, m_.gap_extend);
        V column_sum = extend, most = hn::Set(d, least_sum<Lane>);
        for (std::ptrdiff_t k = 0; k < count; ++k) {
            most = hn::Max(most, minus(d, hn::Load(d, tile.best + k * lanes<D>), column_sum));
            column_sum = hn::Add(column_sum, extend);
        }
        if (!hn::AllTrue(d, hn::Lt(most, best_))) find(tile, window, column, count);
    }

private:
    HWY_INLINE void find(const Tile<D>& tile, std::ptrdiff_t window, std::ptrdiff_t column, std::ptrdiff_t count) {
        const D d;
        HWY_ALIGN Lane columns[lanes<D>], found[lanes<D>];
        for (std::ptrdiff_t lane = 0; lane < lanes<D>; ++lane) {
            const std::ptrdiff_t own = m_.target_sizes[lane] - column;
            columns[lane] = static_cast<Lane>(own < 0 ? 0 : own < count ? own : count);
        }
        const V one = hn::Set(d, Lane{1}), extend = hn::Set(d, m_.gap_extend), own = hn::Load(d, columns);
        V number = hn::Zero(d), column_sum = extend, is_new = hn::Zero(d);
        for (std::ptrdiff_t k = 0; k < count; ++k) {
            const V here = minus(d, hn::Load(d, tile.best + k * lanes<D>), column_sum);
            const auto first = hn::And(hn::Eq(here, best_), hn::Gt(best_column_, number));
            const auto better = hn::And(hn::Or(hn::Gt(here, best_), first), hn::Gt(own, number));
            best_column_ = hn::IfThenElse(better, number, best_column_);
            best_ = hn::IfThenElse(better, here, best_);
            is_new = hn::IfThenElse(better, one, is_new);
            number = hn::Add(number, one);
            column_sum = hn::Add(column_sum, extend);
        }
        hn::Store(is_new, d, found);
        hn::Store(best_column_, d, columns);
        HWY_ALIGN Lane sums[lanes<D>];
        hn::Store(best_, d, sums);
        for (std::ptrdiff_t lane = 0; lane < lanes<D>; ++lane) {
            if (found[lane] == 0) continue;
            const std::int64_t score = sums[lane] - zero_;
            // No row has this score which could not have it if all bases up to it matched.
            const std::int64_t first = score < 0 ? 0 : (score + m_.match - 1) / m_.match - 1 - window;
            std::ptrdiff_t row = first < 0 ? 0 : static_cast<std::ptrdiff_t>(first);
            const std::ptrdiff_t at = columns[lane];
            while (end_sum(row, at, lane) != tile.best[at * lanes<D> + lane]) ++row;
            ends_[lane] = {static_cast<std::int32_t>(score), static_cast<std::int32_t>(window + row),
                           static_cast<std::int32_t>(column + columns[lane])};
        }
    }

    /// The sums of a block lie side by side, column after column.
    HWY_INLINE Lane end_sum(std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t lane) const {
        constexpr std::ptrdiff_t block = LaneMatrix<Lane>::block;
        const std::ptrdiff_t of_block = row / block * LaneMatrix<Lane>::tile + column;
        return m_.end_sums[(of_block * block + row % block) * lanes<D> + lane];
    }

    const LaneMatrix<Lane>& m_;
    LaneEnd* ends_;
    std::int64_t zero_; // of first_end, one row and no column on
    V best_, best_column_;
};

} // namespace
} // namespace spillway::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
