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
#include "align/lane_ends.hpp"
#include "align/lane_packing.hpp"
#include "align/lane_sums.hpp"

HWY_BEFORE_NAMESPACE();
namespace spillway::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

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
