#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "align/lanes.cpp"
// Levels that add nothing to these kernels, or that no one has asked for.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "align/lanes.hpp"

// What a machine below SSE4 has is no gain over aligning one pair after the other.
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "align/differences.hpp"

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

/// What pairing a base of each side adds, one row and one column on.
template <class Lane>
HWY_INLINE Lane pair_score(const LaneMatrix<Lane>& m, Lane query, Lane target) {
    const Lane score = (query | target) > 3 ? m.unknown : query == target ? m.match : m.mismatch;
    return static_cast<Lane>(score + 2 * m.gap_extend);
}

/// The compiler must take each load from here where it stands: it would keep all of them in registers that it has not.
template <class Lane>
HWY_INLINE void leave_in_memory(const Lane*& from) {
    __asm__("" : "+r"(from));
}

/// This value has a register: what is carried from column to column must not pass through memory.
template <class V>
HWY_INLINE void keep_in_register(V& value) {
#if HWY_ARCH_X86
    __asm__("" : "+v"(value.raw));
#else
    __asm__("" : "+w"(value.raw));
#endif
}

/// A block of rows, each lane with a target of its own: how its bases and the queries' are read.
template <class D>
struct OwnTargets {
    using Lane = hn::TFromD<D>;
    using V = hn::Vec<D>;

    HWY_INLINE OwnTargets(const LaneMatrix<Lane>& m, std::ptrdiff_t row, std::ptrdiff_t column)
        : query(m.query + row * lanes<D>), target(m.target + column * lanes<D>) {}

    HWY_INLINE V next_column(D d) {
        leave_in_memory(query);
        const V base = hn::Load(d, target);
        target += lanes<D>;
        return base;
    }
    HWY_INLINE V query_base(D d, std::ptrdiff_t r) const { return hn::Load(d, query + r * lanes<D>); }

    const Lane *query, *target;
};

/// Bases are compared.
template <class D, bool with_unknown>
struct ComparedPairs : OwnTargets<D> {
    using Lane = hn::TFromD<D>;
    using V = hn::Vec<D>;

    HWY_INLINE ComparedPairs(D d, const LaneMatrix<Lane>& m, std::ptrdiff_t row, std::ptrdiff_t column)
        : OwnTargets<D>(m, row, column), match(hn::Set(d, pair_score<Lane>(m, 0, 0))),
          mismatch(hn::Set(d, pair_score<Lane>(m, 0, 1))), unknown(hn::Set(d, pair_score<Lane>(m, 4, 8))) {}

    HWY_INLINE V operator()(D d, std::ptrdiff_t r, V base) const {
        const V other = this->query_base(d, r);
        V pair = hn::IfThenElse(hn::Eq(base, other), match, mismatch);
        if constexpr (with_unknown) {
            pair = hn::IfThenElse(hn::Gt(hn::Or(base, other), hn::Set(d, Lane{3})), unknown, pair);
        }
        return pair;
    }

    V match, mismatch, unknown;
};

/// Eight bits: codes differ in a number of four bits that says all, and a table of sixteen gives the score.
template <class D>
struct TablePairs : OwnTargets<D> {
    using Lane = hn::TFromD<D>;
    using V = hn::Vec<D>;

    HWY_INLINE TablePairs(D d, const LaneMatrix<Lane>& m, std::ptrdiff_t row, std::ptrdiff_t column)
        : OwnTargets<D>(m, row, column) {
        alignas(16) Lane scores[16];
        for (int k = 0; k < 16; ++k) scores[k] = pair_score<Lane>(m, 0, static_cast<Lane>(k));
        table = hn::LoadDup128(d, scores);
    }

    HWY_INLINE V operator()(D d, std::ptrdiff_t r, V base) const {
        return hn::TableLookupBytes(table, hn::Xor(base, this->query_base(d, r)));
    }

    V table;
};

/// All lanes have one target: the block's scores against each base are in LaneMatrix::profile.
template <class D>
struct ProfiledPairs {
    using Lane = hn::TFromD<D>;
    using V = hn::Vec<D>;
    static constexpr std::ptrdiff_t block = LaneMatrix<Lane>::block;

    static HWY_INLINE void lay_out(D d, const LaneMatrix<Lane>& m) {
        Lane* to = m.profile;
        for (std::ptrdiff_t row = 0; row < m.rows; row += block) {
            for (Lane base = 0; base < LaneMatrix<Lane>::bases; ++base) {
                for (std::ptrdiff_t r = 0; r < block; ++r, to += lanes<D>) {
                    const V query = hn::Load(d, m.query + (row + r) * lanes<D>);
                    const V other = hn::Set(d, static_cast<Lane>(base < 4 ? base : 8));
                    const V known = hn::IfThenElse(hn::Eq(query, other), hn::Set(d, pair_score<Lane>(m, 0, 0)),
                                                   hn::Set(d, pair_score<Lane>(m, 0, 1)));
                    const V unknown = hn::Set(d, pair_score<Lane>(m, 4, 8));
                    const V either = hn::Or(query, other);
                    hn::Store(hn::IfThenElse(hn::Gt(either, hn::Set(d, Lane{3})), unknown, known), d, to);
                }
            }
        }
    }

    HWY_INLINE ProfiledPairs(D, const LaneMatrix<Lane>& m, std::ptrdiff_t row, std::ptrdiff_t column)
        : profile(m.profile + row * LaneMatrix<Lane>::bases * lanes<D>), target(m.shared_target + column) {}

    HWY_INLINE const Lane* next_column(D) { return profile + *target++ * (block * lanes<D>); }
    HWY_INLINE V operator()(D d, std::ptrdiff_t r, const Lane* scores) const {
        return hn::Load(d, scores + r * lanes<D>);
    }

    const Lane* profile;
    const std::uint8_t* target;
};

/// Where a path may end in a block: nowhere, anywhere, or where LaneMatrix::ends says.
enum class Ends { none, all, some };

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

/// A block of rows over `count` columns from `column` on. zero: ZeroSums::of_block. window: the first row of end_sums.
template <class D, class Pairs, bool begins, Ends ends>
HWY_NOINLINE void sweep(const LaneMatrix<hn::TFromD<D>>& m, Tile<D>& tile, std::ptrdiff_t row, std::ptrdiff_t column,
                        std::ptrdiff_t count, const hn::TFromD<D>* zero, std::ptrdiff_t window) {
    using Lane = hn::TFromD<D>;
    using V = hn::Vec<D>;
    constexpr std::ptrdiff_t block = LaneMatrix<Lane>::block, most = LaneMatrix<Lane>::tile;
    const D d;
    const V open = hn::Set(d, static_cast<Lane>(m.gap_open - m.gap_extend));

    HWY_ALIGN Lane row_sums[ends != Ends::none ? block * lanes<D> : 1];
    const Lane* const allowed = ends == Ends::some ? m.ends + (row - m.first_last) * lanes<D> : nullptr;
    Lane* end_sums = ends != Ends::none ? m.end_sums + (row - window) * Tile<D>::size : nullptr;
    if constexpr (ends != Ends::none) {
        for (std::ptrdiff_t r = 0; r < block; ++r) {
            const std::ptrdiff_t number = row + r - m.first_end;
            hn::Store(hn::Set(d, static_cast<Lane>(number * m.gap_extend)), d, row_sums + r * lanes<D>);
        }
    }

    Lane* const edge = m.edge + row * LaneMatrix<Lane>::edges * lanes<D>;
    V held[block + 1], deletion[block];
#pragma GCC unroll 8
    for (std::ptrdiff_t r = 0; r <= block; ++r) held[r] = hn::Load(d, edge + r * lanes<D>);
#pragma GCC unroll 8
    for (std::ptrdiff_t r = 0; r < block; ++r) deletion[r] = hn::Load(d, edge + (block + 1 + r) * lanes<D>);
    Pairs pair(d, m, row, column);
    std::ptrdiff_t at = 0;
    do { // At least once: else compilers copy what is left behind beside what is carried on.
        const auto base = pair.next_column(d);
        // From the last row up, so that each sum takes the place of the one that is no longer needed.
#pragma GCC unroll 8
        for (std::ptrdiff_t r = block - 1; r >= 0; --r) held[r + 1] = hn::Add(held[r], pair(d, r, base));
        V inserted = hn::Load(d, tile.insertion + at);
        V end;
        if constexpr (ends != Ends::none) end = hn::Load(d, tile.best + at);
#pragma GCC unroll 8
        for (std::ptrdiff_t r = 0; r < block; ++r) {
            const V not_inserted = hn::Max(held[r + 1], deletion[r]);
            const V opened = hn::Sub(not_inserted, open);
            V& now = held[r + 1];
            now = hn::Max(not_inserted, inserted);
            if constexpr (begins) now = hn::Max(now, hn::Load(d, zero + r * lanes<D>));
            deletion[r] = hn::Max(deletion[r], opened);
            inserted = hn::Max(inserted, opened);
            if constexpr (ends != Ends::none) {
                V here = minus(d, now, hn::Load(d, row_sums + r * lanes<D>));
                if constexpr (ends == Ends::some) here = hn::Min(here, hn::Load(d, allowed + r * lanes<D>));
                hn::Store(here, d, end_sums + r * lanes<D>);
                end = hn::Max(here, end);
            }
            keep_in_register(deletion[r]);
            keep_in_register(now);
        }
        held[0] = hn::Load(d, tile.any + at);
        hn::Store(held[block], d, tile.any + at);
        hn::Store(inserted, d, tile.insertion + at);
        if constexpr (ends != Ends::none) {
            hn::Store(end, d, tile.best + at);
            end_sums += block * lanes<D>;
        }
        if constexpr (begins) zero += lanes<D>;
        at += lanes<D>;
    } while (at < count * lanes<D>);
    const V next_tile = hn::Set(d, static_cast<Lane>(m.gap_extend * most)), floor = hn::Set(d, m.floor);
#pragma GCC unroll 8
    for (std::ptrdiff_t r = 0; r <= block; ++r) {
        hn::Store(hn::Max(minus(d, held[r], next_tile), floor), d, edge + r * lanes<D>);
    }
#pragma GCC unroll 8
    for (std::ptrdiff_t r = 0; r < block; ++r) {
        hn::Store(hn::Max(minus(d, deletion[r], next_tile), floor), d, edge + (block + 1 + r) * lanes<D>);
    }
}

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

/// Column 0.
template <class D>
HWY_INLINE void begin_edges(D d, const LaneMatrix<hn::TFromD<D>>& m) {
    using Lane = hn::TFromD<D>;
    constexpr std::ptrdiff_t block = LaneMatrix<Lane>::block;
    Lowering<Lane> sums{m.perfect};
    for (std::ptrdiff_t row = 0; row < m.rows; row += block) {
        Lane* const edge = m.edge + row * LaneMatrix<Lane>::edges * lanes<D>;
        for (std::ptrdiff_t r = 0; r <= block; ++r) {
            std::int64_t sum = sums.zero + r * m.gap_extend;
            if (m.whole_query && row + r > 0) sum -= m.gap_open + (row + r - 1) * std::int64_t{m.gap_extend};
            hn::Store(hn::Set(d, at_least(m.floor, sum)), d, edge + r * lanes<D>);
            const Lane deletion = at_least(m.floor, sum - m.gap_open + m.gap_extend);
            if (r > 0) hn::Store(hn::Set(d, deletion), d, edge + (block + r) * lanes<D>);
        }
        sums.pass(m, row);
    }
}

/// A sum of 0 before a row, before the tile.
template <class Lane>
HWY_INLINE std::int64_t zero_before(const LaneMatrix<Lane>& m, std::ptrdiff_t row) {
    Lowering<Lane> sums{m.perfect};
    for (std::ptrdiff_t passed = 0; passed < row; passed += LaneMatrix<Lane>::block) sums.pass(m, passed);
    return sums.zero;
}

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

template <class D, class Pairs>
HWY_INLINE void fill(const LaneMatrix<hn::TFromD<D>>& m, LaneEnd* best) {
    using Lane = hn::TFromD<D>;
    constexpr std::ptrdiff_t block = LaneMatrix<Lane>::block, most = LaneMatrix<Lane>::tile;
    constexpr auto sweeps = [](bool begins, Ends ends) {
        if (begins) {
            return ends == Ends::none  ? sweep<D, Pairs, true, Ends::none>
                   : ends == Ends::all ? sweep<D, Pairs, true, Ends::all>
                                       : sweep<D, Pairs, true, Ends::some>;
        }
        return ends == Ends::none  ? sweep<D, Pairs, false, Ends::none>
               : ends == Ends::all ? sweep<D, Pairs, false, Ends::all>
                                   : sweep<D, Pairs, false, Ends::some>;
    };
    const D d;
    const auto extend = hn::Set(d, m.gap_extend), open = hn::Set(d, static_cast<Lane>(m.gap_open - m.gap_extend));
    Tile<D> tile;
    ZeroSums<D> zeros;
    begin_edges(d, m);
    BestEnds<D> ends(m, best);
    for (std::ptrdiff_t column = 0; column < m.columns; column += most) {
        const std::ptrdiff_t count = m.columns - column < most ? m.columns - column : most;
        auto sum = hn::Set(d, m.perfect);
        for (std::ptrdiff_t k = 0; k < count; ++k) {
            sum = hn::Add(sum, extend);
            hn::Store(sum, d, tile.any + k * lanes<D>);
            hn::Store(hn::Max(minus(d, sum, open), hn::Set(d, m.floor)), d, tile.insertion + k * lanes<D>);
        }
        Lowering<Lane> sums{m.perfect};
        ends.begin_tile();
        std::ptrdiff_t window = m.first_end;
        for (std::ptrdiff_t row = 0; row < m.rows; row += block) {
            if (row == window) {
                for (std::ptrdiff_t k = 0; k < count; ++k) {
                    hn::Store(hn::Set(d, least_sum<Lane>), d, tile.best + k * lanes<D>);
                }
            }
            const bool begins = row < m.begins && sums.zero > m.floor;
            const Ends where = row < m.first_end ? Ends::none : row < m.first_last ? Ends::all : Ends::some;
            const Lane* const zero = begins ? zeros.of_block(m, sums.zero) : nullptr;
            sweeps(begins, where)(m, tile, row, column, count, zero, window);
            if (row + block == window + LaneMatrix<Lane>::window || row + block == m.rows) {
                ends.take(tile, window, column, count);
                window = row + block;
            }
            const std::int64_t lower = sums.pass(m, row);
            if (lower == 0) continue;
            const auto by = hn::Set(d, static_cast<Lane>(lower)), floor = hn::Set(d, m.floor);
            for (std::ptrdiff_t at = 0; at < count * lanes<D>; at += lanes<D>) {
                hn::Store(hn::Max(minus(d, hn::Load(d, tile.any + at), by), floor), d, tile.any + at);
                hn::Store(minus(d, hn::Load(d, tile.insertion + at), by), d, tile.insertion + at);
            }
        }
    }
}

void fill8(const LaneMatrix<std::int8_t>& m, LaneEnd* best) {
    using D = hn::ScalableTag<std::int8_t>;
    if (m.shared_target == nullptr) return fill<D, TablePairs<D>>(m, best);
    ProfiledPairs<D>::lay_out(D(), m);
    fill<D, ProfiledPairs<D>>(m, best);
}

void fill16(const LaneMatrix<std::int16_t>& m, LaneEnd* best) {
    using D = hn::ScalableTag<std::int16_t>;
    if (m.shared_target != nullptr) {
        ProfiledPairs<D>::lay_out(D(), m);
        fill<D, ProfiledPairs<D>>(m, best);
    } else if (m.distinguishes) {
        fill<D, ComparedPairs<D, true>>(m, best);
    } else {
        fill<D, ComparedPairs<D, false>>(m, best);
    }
}

void fill32(const LaneMatrix<std::int32_t>& m, LaneEnd* best) {
    using D = hn::ScalableTag<std::int32_t>;
    fill<D, ComparedPairs<D, true>>(m, best);
}

// Sixteen bytes of sixteen texts at a time are transposed in four steps; each puts two neighbours side by side.
template <class D8, class V = hn::Vec<D8>>
HWY_INLINE V encoded(D8 d, V text, V unknown) {
    // A, C, G and T differ in their low four bits.
    alignas(16) static constexpr std::uint8_t letter[16] = {0xFF, 'A', 0xFF, 'C', 'T', 0xFF, 0xFF, 'G'};
    alignas(16) static constexpr std::uint8_t code[16] = {0, 0, 0, 1, 3, 0, 0, 2};
    const V low = hn::And(text, hn::Set(d, std::uint8_t{0x0F})), upper = hn::And(text, hn::Set(d, std::uint8_t{0xDF}));
    const auto known = hn::Eq(upper, hn::TableLookupBytes(hn::Load(d, letter), low));
    return hn::IfThenElse(known, hn::TableLookupBytes(hn::Load(d, code), low), unknown);
}

bool pack(const LaneText& texts, std::ptrdiff_t count, std::uint8_t unknown_code, std::uint8_t* codes) {
    const hn::FixedTag<std::uint8_t, 16> d8;
    const hn::Repartition<std::uint16_t, decltype(d8)> d16;
    const hn::Repartition<std::uint32_t, decltype(d8)> d32;
    const hn::Repartition<std::uint64_t, decltype(d8)> d64;
    using V = hn::Vec<decltype(d8)>;
    const V unknown = hn::Set(d8, unknown_code);
    V any = hn::Zero(d8);
    for (std::ptrdiff_t lane = 0; lane < count; lane += 16) {
        for (std::ptrdiff_t at = 0; at < texts.length; at += 16) {
            V a[16], b[16];
#pragma GCC unroll 16
            for (std::ptrdiff_t k = 0; k < 16; ++k) {
                const char* from = texts.text + (lane + k) * texts.stride + at;
                a[k] = encoded(d8, hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(from)), unknown);
                any = hn::Or(any, a[k]);
            }
#pragma GCC unroll 8
            for (std::ptrdiff_t k = 0; k < 8; ++k) {
                b[2 * k] = hn::InterleaveLower(d8, a[2 * k], a[2 * k + 1]);
                b[2 * k + 1] = hn::InterleaveUpper(d8, a[2 * k], a[2 * k + 1]);
            }
#pragma GCC unroll 4
            for (std::ptrdiff_t k = 0; k < 16; k += 4) {
#pragma GCC unroll 2
                for (std::ptrdiff_t h = 0; h < 2; ++h) {
                    const auto low = hn::BitCast(d16, b[k + h]), high = hn::BitCast(d16, b[k + 2 + h]);
                    a[k + 2 * h] = hn::BitCast(d8, hn::InterleaveLower(d16, low, high));
                    a[k + 2 * h + 1] = hn::BitCast(d8, hn::InterleaveUpper(d16, low, high));
                }
            }
#pragma GCC unroll 2
            for (std::ptrdiff_t k = 0; k < 16; k += 8) {
#pragma GCC unroll 4
                for (std::ptrdiff_t h = 0; h < 4; ++h) {
                    const auto low = hn::BitCast(d32, a[k + h]), high = hn::BitCast(d32, a[k + 4 + h]);
                    b[k + 2 * h] = hn::BitCast(d8, hn::InterleaveLower(d32, low, high));
                    b[k + 2 * h + 1] = hn::BitCast(d8, hn::InterleaveUpper(d32, low, high));
                }
            }
#pragma GCC unroll 8
            for (std::ptrdiff_t h = 0; h < 8; ++h) {
                const auto low = hn::BitCast(d64, b[h]), high = hn::BitCast(d64, b[8 + h]);
                std::uint8_t* to = codes + (at + 2 * h) * count + lane;
                hn::StoreU(hn::BitCast(d8, hn::InterleaveLower(d64, low, high)), d8, to);
                hn::StoreU(hn::BitCast(d8, hn::InterleaveUpper(d64, low, high)), d8, to + count);
            }
        }
    }
    return !hn::AllTrue(d8, hn::Lt(any, hn::Set(d8, std::uint8_t{4})));
}

template <class Lane>
LaneKernel<Lane> kernel(void (*fill_lanes)(const LaneMatrix<Lane>&, LaneEnd*)) {
    return {lanes<hn::ScalableTag<Lane>>, fill_lanes};
}

} // namespace

LaneKernels kernels() {
    return {kernel<std::int8_t>(fill8), kernel<std::int16_t>(fill16), kernel<std::int32_t>(fill32),
            kernel<std::int8_t>(fill_differences), pack};
}

} // namespace spillway::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace spillway {

LaneKernels lane_kernels(Isa isa) {
#if HWY_TARGETS & HWY_AVX3
    if (isa == Isa::avx512) return N_AVX3::kernels();
#endif
#if HWY_TARGETS & HWY_AVX2
    if (isa == Isa::avx2) return N_AVX2::kernels();
#endif
#if HWY_TARGETS & HWY_SSE4
    if (isa == Isa::sse4) return N_SSE4::kernels();
#endif
#if HWY_TARGETS & HWY_NEON
    if (isa == Isa::neon) return N_NEON::kernels();
#endif
    (void)isa;
    return {};
}

} // namespace spillway
#endif
