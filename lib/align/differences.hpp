// Scores of whole queries by differences of neighbouring sums, which fit 8 bits however long the pairs and however much
// they lose (Suzuki and Kasahara, BMC Bioinformatics 19:45, 2018). Included once for each ISA, by lanes.cpp.
//
//     fill_differences(m, ends);                 // LaneMatrix<std::int8_t>, as LaneKernels::differences says
//
// As in lanes.hpp sums are counted upwards by gap_extend with each row and column, so that only opening a gap costs: let
// that be q. Of a cell's sum H and those of the cells beside it lie
//
//     u = H - above + q,  v = H - left + q,  x = deletion to the right - H + q,  y = insertion below - H + q
//
// between 0 and match + 2 gap_open, at most 255. With those of the cell to the left and above, z = H - diagonal + 2q is
// the greatest of pair + 2 gap_open, x + u and y + v; then u' = z - v, v' = z - u, x' = q - (z - (x + u)) and
// y' = q - (z - (y + v)), the last two at least 0. A cell takes 12 vector operations, for twice as many lanes as 16 bits
// have with 8.
#if defined(SPILLWAY_ALIGN_DIFFERENCES_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef SPILLWAY_ALIGN_DIFFERENCES_HPP
#undef SPILLWAY_ALIGN_DIFFERENCES_HPP
#else
#define SPILLWAY_ALIGN_DIFFERENCES_HPP
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <hwy/highway.h>

#include "align/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace spillway::HWY_NAMESPACE {
namespace {

class Differences {
    using D = hwy::HWY_NAMESPACE::ScalableTag<std::uint8_t>;
    using Matrix = LaneMatrix<std::int8_t>;
    static constexpr auto lanes = static_cast<std::ptrdiff_t>(hwy::HWY_NAMESPACE::MaxLanes(D()));
    static constexpr std::ptrdiff_t block = Matrix::block, tile = Matrix::tile;

public:
    HWY_INLINE explicit Differences(const Matrix& m) : m_(m), edge_(reinterpret_cast<std::uint8_t*>(m.edge)) {
        const int opening = m.gap_open - m.gap_extend;
        opening_ = static_cast<std::uint8_t>(opening);
        for (int k = 0; k < 16; ++k) {
            const int score = (k == 0 ? m.match : k < 4 ? m.mismatch : m.unknown) + 2 * m.gap_open;
            table_[k] = static_cast<std::uint8_t>(std::max(0, score)); // less than 0 is never the greatest
        }
    }

    HWY_INLINE void fill(LaneEnd* ends) {
        namespace hn = hwy::HWY_NAMESPACE;
        const D d;
        std::fill_n(sum_, lanes, 0);
        for (std::ptrdiff_t lane = 0; lane < lanes; ++lane)
            ends[lane] = {std::numeric_limits<std::int32_t>::min(), 0, 0};
        for (std::ptrdiff_t row = 0; row < m_.rows; ++row) { // all inserted
            hn::Store(hn::Set(d, row == 0 ? std::uint8_t{0} : opening_), d, u_of(row));
            hn::Store(hn::Zero(d), d, x_of(row));
        }
        for (std::ptrdiff_t column = 0; column < m_.columns; column += tile) {
            const std::ptrdiff_t count = std::min(tile, m_.columns - column);
            for (std::ptrdiff_t k = 0; k < count; ++k) {
                hn::Store(hn::Set(d, static_cast<std::uint8_t>(m_.gap_open)), d, v_ + k * lanes);
                hn::Store(hn::Zero(d), d, y_ + k * lanes);
            }
            for (std::ptrdiff_t row = 0; row < m_.rows; row += block) {
                if (row < m_.first_last) {
                    sweep<false>(row, column, count);
                } else {
                    sweep<true>(row, column, count);
                }
            }
            add_up(column, count, ends);
        }
    }

private:
    std::uint8_t* u_of(std::ptrdiff_t row) const { return edge_ + row * lanes; }
    std::uint8_t* x_of(std::ptrdiff_t row) const { return edge_ + (m_.rows + row) * lanes; }

    template <bool ends>
    HWY_NOINLINE void sweep(std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t count) {
        namespace hn = hwy::HWY_NAMESPACE;
        using V = hn::Vec<D>;
        const D d;
        const V table = hn::LoadDup128(d, table_), opening = hn::Set(d, opening_);
        const auto* query = reinterpret_cast<const std::uint8_t*>(m_.query) + row * lanes;
        const auto* target = reinterpret_cast<const std::uint8_t*>(m_.target) + column * lanes;
        const auto* allowed = reinterpret_cast<const std::uint8_t*>(m_.ends) + (ends ? row - m_.first_last : 0) * lanes;
        V u[block], x[block];
#pragma GCC unroll 8
        for (std::ptrdiff_t r = 0; r < block; ++r) {
            u[r] = hn::Load(d, u_of(row + r));
            x[r] = hn::Load(d, x_of(row + r));
        }
        for (std::ptrdiff_t at = 0; at < count * lanes; at += lanes) {
            __asm__("" : "+r"(query)); // loaded where it is used: there are not registers enough
            const V base = hn::Load(d, target + at);
            V v = hn::Load(d, v_ + at), y = hn::Load(d, y_ + at);
#pragma GCC unroll 8
            for (std::ptrdiff_t r = 0; r < block; ++r) {
                const V pair = hn::TableLookupBytes(table, hn::Xor(base, hn::Load(d, query + r * lanes)));
                const V deletion = hn::Add(x[r], u[r]), insertion = hn::Add(y, v);
                const V z = hn::Max(hn::Max(pair, deletion), insertion);
                const V above = v;
                v = hn::Sub(z, u[r]);
                u[r] = hn::Sub(z, above);
                x[r] = hn::SaturatedSub(opening, hn::Sub(z, deletion));
                y = hn::SaturatedSub(opening, hn::Sub(z, insertion));
                if constexpr (ends) {
                    const V is_last = hn::Load(d, allowed + r * lanes); // least_sum, or greatest_sum
                    const V before = hn::Load(d, last_ + at);
                    hn::Store(hn::IfThenElse(hn::Lt(is_last, hn::Set(d, std::uint8_t{128})), v, before), d, last_ + at);
                }
            }
            hn::Store(v, d, v_ + at);
            hn::Store(y, d, y_ + at);
        }
#pragma GCC unroll 8
        for (std::ptrdiff_t r = 0; r < block; ++r) {
            hn::Store(u[r], d, u_of(row + r));
            hn::Store(x[r], d, x_of(row + r));
        }
    }

    /// The tile's sums of each lane's last row, and the best of them.
    HWY_INLINE void add_up(std::ptrdiff_t column, std::ptrdiff_t count, LaneEnd* ends) {
        HWY_ALIGN std::int32_t best[lanes], best_column[lanes];
        for (std::ptrdiff_t lane = 0; lane < lanes; ++lane) {
            best[lane] = ends[lane].score;
            best_column[lane] = ends[lane].column;
        }
        for (std::ptrdiff_t k = 0; k < count; ++k) {
            const auto here = static_cast<std::int32_t>(column + k);
            for (std::ptrdiff_t lane = 0; lane < lanes; ++lane) {
                sum_[lane] += last_[k * lanes + lane] - m_.gap_open;
                const bool better = (sum_[lane] > best[lane]) & (here < m_.target_sizes[lane]);
                best[lane] = better ? sum_[lane] : best[lane];
                best_column[lane] = better ? here : best_column[lane];
            }
        }
        for (std::ptrdiff_t lane = 0; lane < lanes; ++lane) ends[lane] = {best[lane], 0, best_column[lane]};
    }

    const Matrix& m_;
    std::uint8_t* edge_; // u of all rows, then x
    std::uint8_t opening_;
    HWY_ALIGN std::uint8_t table_[16];
    HWY_ALIGN std::uint8_t v_[tile * lanes], y_[tile * lanes];
    HWY_ALIGN std::uint8_t last_[tile * lanes] = {}; // v of each lane's last row
    HWY_ALIGN std::int32_t sum_[lanes];
};

void fill_differences(const LaneMatrix<std::int8_t>& m, LaneEnd* ends) {
    Differences(m).fill(ends);
}

} // namespace
} // namespace spillway::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
