#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "align/lanes.cpp"
// Levels that add nothing to these kernels, or that no one has asked for.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "align/lanes.hpp"

// What a machine below SSE4 has is no gain over aligning one pair after the other.
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
HWY_BEFORE_NAMESPACE();
namespace spillway::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Sums of 8 and 16 bits stay at the least value once they are there. Those of 32 never come near it.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V plus(D, V a, V b) {
    if constexpr (sizeof(hn::TFromD<D>) == 4) {
        return hn::Add(a, b);
    } else {
        return hn::SaturatedAdd(a, b);
    }
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V minus(D, V a, V b) {
    if constexpr (sizeof(hn::TFromD<D>) == 4) {
        return hn::Sub(a, b);
    } else {
        return hn::SaturatedSub(a, b);
    }
}

template <class D>
inline constexpr auto most_lanes = static_cast<std::ptrdiff_t>(hn::MaxLanes(D()));

/// What pairing a base of each side adds, one row and one column on.
template <class D, bool with_unknown>
struct Pairing {
    using Lane = hn::TFromD<D>;
    using V = hn::Vec<D>;

    HWY_INLINE Pairing(D d, const LaneMatrix<Lane>& m)
        : match(hn::Set(d, static_cast<Lane>(m.match + 2 * m.gap_extend))),
          mismatch(hn::Set(d, static_cast<Lane>(m.mismatch + 2 * m.gap_extend))),
          unknown(hn::Set(d, static_cast<Lane>(m.unknown + 2 * m.gap_extend))) {}

    HWY_INLINE V operator()(D d, V query, V target) const {
        V pair = hn::IfThenElse(hn::Eq(query, target), match, mismatch);
        if constexpr (with_unknown) {
            pair = hn::IfThenElse(hn::Gt(hn::Or(query, target), hn::Set(d, 3)), unknown, pair);
        }
        return pair;
    }

    V match, mismatch, unknown;
};

/// Eight bits: codes differ in a number of four bits that says all, and a table of sixteen gives the score.
template <class D>
struct TablePairing {
    using Lane = hn::TFromD<D>;
    using V = hn::Vec<D>;

    HWY_INLINE TablePairing(D d, const LaneMatrix<Lane>& m) {
        alignas(16) Lane row[16];
        for (int k = 0; k < 16; ++k) {
            row[k] = static_cast<Lane>((k == 0 ? m.match : k < 4 ? m.mismatch : m.unknown) + 2 * m.gap_extend);
        }
        table = hn::LoadDup128(d, row);
    }

    HWY_INLINE V operator()(D, V query, V target) const { return hn::TableLookupBytes(table, hn::Xor(query, target)); }

    V table;
};

/// Where a path may end in a block: nowhere, anywhere, or where LaneMatrix::ends says.
enum class Ends { none, all, some };

/// What a block is besides its rows and columns.
template <class Lane>
struct BlockSums {
    Lane zero;                                      ///< A sum of 0 before its first row, in column 0.
    Lane lower;                                     ///< Subtracted from its last row.
    Lane first_column[LaneMatrix<Lane>::block + 1]; ///< The row before its first, and its rows, in column 0.
};

template <class D, class Pair, bool begins, Ends ends>
HWY_INLINE void sweep(D d, const Pair& pair, const LaneMatrix<hn::TFromD<D>>& m, std::ptrdiff_t row,
                      const BlockSums<hn::TFromD<D>>& sums) {
    using Lane = hn::TFromD<D>;
    using V = hn::Vec<D>;
    constexpr std::ptrdiff_t block = LaneMatrix<Lane>::block, tile = LaneMatrix<Lane>::tile;
    const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
    const V open = hn::Set(d, static_cast<Lane>(m.gap_open - m.gap_extend));
    const V lower = hn::Set(d, sums.lower), next_tile = hn::Set(d, static_cast<Lane>(m.gap_extend * tile));
    // Copies: what is stored below could change the members, as far as the compiler knows.
    const Lane* const target = m.target;
    Lane *const any = m.any, *const insertion = m.insertion, *const best = m.best, *const best_row = m.best_row;

    // Constants of rows and columns, in memory: there are not registers enough.
    HWY_ALIGN Lane zeros[begins ? (tile + block + 1) * most_lanes<D> : 1];
    if constexpr (begins) {
        V zero = hn::Set(d, sums.zero);
        for (std::ptrdiff_t k = 0; k <= tile + block; ++k) {
            hn::Store(zero, d, zeros + k * lanes);
            zero = plus(d, zero, hn::Set(d, m.gap_extend));
        }
    }
    HWY_ALIGN Lane row_numbers[ends != Ends::none ? block * most_lanes<D> : 1];
    HWY_ALIGN Lane row_sums[ends != Ends::none ? block * most_lanes<D> : 1];
    const Lane* const allowed = ends == Ends::some ? m.ends + (row - m.first_last) * lanes : nullptr;
    if constexpr (ends != Ends::none) {
        for (std::ptrdiff_t r = 0; r < block; ++r) {
            const std::ptrdiff_t number = row + r - m.first_end;
            hn::Store(hn::Set(d, static_cast<Lane>(number)), d, row_numbers + r * lanes);
            hn::Store(hn::Set(d, static_cast<Lane>(number * m.gap_extend)), d, row_sums + r * lanes);
        }
    }

    V held[block + 1], deletion[block], query[block];
#pragma GCC unroll 8
    for (std::ptrdiff_t r = 0; r <= block; ++r) held[r] = hn::Set(d, sums.first_column[r]);
#pragma GCC unroll 8
    for (std::ptrdiff_t r = 0; r < block; ++r) {
        deletion[r] = minus(d, held[r + 1], open);
        query[r] = hn::Load(d, m.query + (row + r) * lanes);
    }
    for (std::ptrdiff_t first = 0; first < m.columns; first += tile) {
        const std::ptrdiff_t last = first + tile < m.columns ? first + tile : m.columns;
        const Lane* zero = zeros + 2 * lanes;
        for (std::ptrdiff_t at = first * lanes; at < last * lanes; at += lanes) {
            const V base = hn::Load(d, target + at);
            V inserted = hn::Load(d, insertion + at);
            V before = held[0];
            held[0] = hn::Load(d, any + at);
            V end, end_row;
            if constexpr (ends != Ends::none) {
                end = hn::Load(d, best + at);
                end_row = hn::Load(d, best_row + at);
            }
#pragma GCC unroll 8
            for (std::ptrdiff_t r = 0; r < block; ++r) {
                V now = plus(d, before, pair(d, query[r], base));
                now = hn::Max(hn::Max(now, deletion[r]), inserted);
                if constexpr (begins) now = hn::Max(now, hn::Load(d, zero + r * lanes));
                const V opened = minus(d, now, open);
                deletion[r] = hn::Max(deletion[r], opened);
                inserted = hn::Max(inserted, opened);
                if constexpr (ends != Ends::none) {
                    V here = minus(d, now, hn::Load(d, row_sums + r * lanes));
                    if constexpr (ends == Ends::some) here = hn::Min(here, hn::Load(d, allowed + r * lanes));
                    const auto better = hn::Gt(here, end);
                    end = hn::Max(here, end);
                    end_row = hn::IfThenElse(better, hn::Load(d, row_numbers + r * lanes), end_row);
                }
                before = held[r + 1];
                held[r + 1] = now;
            }
            hn::Store(minus(d, held[block], lower), d, any + at);
            hn::Store(minus(d, inserted, lower), d, insertion + at);
            if constexpr (ends != Ends::none) {
                hn::Store(end, d, best + at);
                hn::Store(end_row, d, best_row + at);
            }
            if constexpr (begins) zero += lanes;
        }
#pragma GCC unroll 8
        for (std::ptrdiff_t r = 0; r <= block; ++r) held[r] = minus(d, held[r], next_tile);
#pragma GCC unroll 8
        for (std::ptrdiff_t r = 0; r < block; ++r) deletion[r] = minus(d, deletion[r], next_tile);
    }
}

template <class Lane>
HWY_INLINE Lane at_least(std::int64_t sum) {
    return sum < least_sum<Lane> ? least_sum<Lane> : static_cast<Lane>(sum);
}

/// What is subtracted from the last row of the block that begins at `row`, `since` rows after the last time.
template <class Lane>
HWY_INLINE std::int64_t lowering(const LaneMatrix<Lane>& m, std::ptrdiff_t row, std::ptrdiff_t since) {
    constexpr std::ptrdiff_t block = LaneMatrix<Lane>::block;
    if (m.period == 0 || row >= m.first_end || (since < m.period && row + block != m.first_end)) return 0;
    return (std::int64_t{m.match} + m.gap_extend) * since;
}

template <class D, class Pair>
HWY_INLINE void fill(D d, const LaneMatrix<hn::TFromD<D>>& m) {
    using Lane = hn::TFromD<D>;
    constexpr std::ptrdiff_t block = LaneMatrix<Lane>::block, tile = LaneMatrix<Lane>::tile;
    const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
    const Pair pair(d, m);
    for (std::ptrdiff_t column = 0, at = 0; column < m.columns; ++column, at += lanes) {
        const std::int64_t sum = m.perfect + (column % tile + 1) * m.gap_extend;
        hn::Store(hn::Set(d, static_cast<Lane>(sum)), d, m.any + at);
        hn::Store(hn::Set(d, at_least<Lane>(sum - m.gap_open + m.gap_extend)), d, m.insertion + at);
        hn::Store(hn::Set(d, least_sum<Lane>), d, m.best + at);
        hn::Store(hn::Zero(d), d, m.best_row + at);
    }
    std::int64_t zero = m.perfect;
    std::ptrdiff_t since = 0;
    for (std::ptrdiff_t row = 0; row < m.rows; row += block) {
        BlockSums<Lane> sums;
        for (std::ptrdiff_t r = 0; r <= block; ++r) {
            std::int64_t sum = zero + r * m.gap_extend;
            if (m.whole_query && row + r > 0) sum -= m.gap_open + (row + r - 1) * std::int64_t{m.gap_extend};
            sums.first_column[r] = at_least<Lane>(sum);
        }
        since += block;
        const std::int64_t lower = lowering(m, row, since);
        if (lower != 0) since = 0;
        sums.zero = at_least<Lane>(zero);
        sums.lower = static_cast<Lane>(lower);
        const bool begins = row < m.begins && zero > least_sum<Lane>;
        const bool all_end = row >= m.first_end && row < m.first_last, some_end = row >= m.first_last;
        if (begins && some_end) {
            sweep<D, Pair, true, Ends::some>(d, pair, m, row, sums);
        } else if (begins && all_end) {
            sweep<D, Pair, true, Ends::all>(d, pair, m, row, sums);
        } else if (begins) {
            sweep<D, Pair, true, Ends::none>(d, pair, m, row, sums);
        } else if (some_end) {
            sweep<D, Pair, false, Ends::some>(d, pair, m, row, sums);
        } else if (all_end) {
            sweep<D, Pair, false, Ends::all>(d, pair, m, row, sums);
        } else {
            sweep<D, Pair, false, Ends::none>(d, pair, m, row, sums);
        }
        zero += block * m.gap_extend - lower;
    }
}

template <class Lane>
void pick(const LaneMatrix<Lane>& m, LaneEnd* ends) {
    constexpr std::ptrdiff_t block = LaneMatrix<Lane>::block, tile = LaneMatrix<Lane>::tile;
    const hn::ScalableTag<Lane> d;
    const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
    // Rows are counted from first_end here: what a sum of 0 is in the row before it, one row and no column on.
    std::int64_t zero = m.perfect + m.gap_extend;
    for (std::ptrdiff_t row = 0, since = 0; row < m.first_end; row += block) {
        since += block;
        const std::int64_t lower = lowering(m, row, since);
        if (lower != 0) since = 0;
        zero += block * m.gap_extend - lower;
    }
    for (std::ptrdiff_t lane = 0; lane < lanes; ++lane) ends[lane] = {-(1 << 30), 0, 0};
    HWY_ALIGN Lane sums[most_lanes<decltype(d)>], columns[most_lanes<decltype(d)>];
    const auto one = hn::Set(d, Lane{1}), extend = hn::Set(d, m.gap_extend);
    for (std::ptrdiff_t first = 0; first < m.columns; first += tile) {
        const std::ptrdiff_t count = m.columns - first < tile ? m.columns - first : tile;
        auto best = hn::Set(d, least_sum<Lane>), best_column = hn::Zero(d), column = hn::Zero(d), column_sum = extend;
        for (std::ptrdiff_t k = 0; k < count; ++k) {
            const auto here = minus(d, hn::Load(d, m.best + (first + k) * lanes), column_sum);
            best_column = hn::IfThenElse(hn::Gt(here, best), column, best_column);
            best = hn::Max(best, here);
            column = hn::Add(column, one);
            column_sum = plus(d, column_sum, extend);
        }
        hn::Store(best, d, sums);
        hn::Store(best_column, d, columns);
        for (std::ptrdiff_t lane = 0; lane < lanes; ++lane) {
            const auto score = static_cast<std::int32_t>(sums[lane] - zero);
            if (sums[lane] == least_sum<Lane> || score <= ends[lane].score) continue;
            ends[lane].score = score;
            ends[lane].column = static_cast<std::int32_t>(first + columns[lane]);
        }
    }
    for (std::ptrdiff_t lane = 0; lane < lanes; ++lane) {
        ends[lane].row = static_cast<std::int32_t>(m.first_end + m.best_row[ends[lane].column * lanes + lane]);
    }
}

void fill8(const LaneMatrix<std::int8_t>& m) {
    const hn::ScalableTag<std::int8_t> d;
    fill<decltype(d), TablePairing<decltype(d)>>(d, m);
}

void fill16(const LaneMatrix<std::int16_t>& m) {
    const hn::ScalableTag<std::int16_t> d;
    if (m.distinguishes) return fill<decltype(d), Pairing<decltype(d), true>>(d, m);
    fill<decltype(d), Pairing<decltype(d), false>>(d, m);
}

void fill32(const LaneMatrix<std::int32_t>& m) {
    const hn::ScalableTag<std::int32_t> d;
    fill<decltype(d), Pairing<decltype(d), true>>(d, m);
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

bool pack(const LaneText& texts, std::ptrdiff_t lanes, std::uint8_t unknown_code, std::uint8_t* codes) {
    const hn::FixedTag<std::uint8_t, 16> d8;
    const hn::Repartition<std::uint16_t, decltype(d8)> d16;
    const hn::Repartition<std::uint32_t, decltype(d8)> d32;
    const hn::Repartition<std::uint64_t, decltype(d8)> d64;
    using V = hn::Vec<decltype(d8)>;
    const V unknown = hn::Set(d8, unknown_code);
    V any = hn::Zero(d8);
    for (std::ptrdiff_t lane = 0; lane < lanes; lane += 16) {
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
                std::uint8_t* to = codes + (at + 2 * h) * lanes + lane;
                hn::StoreU(hn::BitCast(d8, hn::InterleaveLower(d64, low, high)), d8, to);
                hn::StoreU(hn::BitCast(d8, hn::InterleaveUpper(d64, low, high)), d8, to + lanes);
            }
        }
    }
    return !hn::AllTrue(d8, hn::Lt(any, hn::Set(d8, std::uint8_t{4})));
}

template <class Lane>
LaneKernel<Lane> kernel(void (*fill_lanes)(const LaneMatrix<Lane>&)) {
    return {static_cast<std::ptrdiff_t>(hn::Lanes(hn::ScalableTag<Lane>())), fill_lanes, pick<Lane>};
}

} // namespace

LaneKernels kernels() {
    return {kernel<std::int8_t>(fill8), kernel<std::int16_t>(fill16), kernel<std::int32_t>(fill32), pack};
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
