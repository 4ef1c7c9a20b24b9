// The kernel: score and end of every pair of a tile, by the tie rule. Written once for CUDA and lockstep lanes.
//
//     sweep<CudaLanes, Packed<CudaLanes>, 20, true>(work, tile, table, 0);       // 20 columns a thread, local
//
// A group of threads aligns a pack. Each thread keeps `columns` bases of the query in registers, the threads of a group
// side by side; the query is right-aligned in them, so that it ends in the last column of the last thread. The target
// comes in from the left, a base a step: a thread does its columns' row, then the next one takes the base and the row's
// last cell by a shuffle. So thread p is p rows behind the first; before its first row and after its last it sees
// `beyond`, whose scores leave the columns before the target as they are and make no cell better than the target's own.
//
// A cell costs, for the two pairs of a pack at once:
//
//   local: G = H - open is kept, not H; the table's scores have the open added, so that G + s is H + s.
//       D = max(D - extend, G above, 0)    I = max(I - extend, G left)    H = max(max(G diagonal + s, D), I)
//       G = H - open
//       best = max(best, H * scale + (scale - 1 - column)): of equal scores in a row the first column is the greatest
//     The 0 in D makes H local: a D below it is in no alignment that is better than none.
//   query: H, D and I are kept taller by extend * (row + column), so that going on with a gap costs nothing, and the
//     table's scores by two of them, for the step down the diagonal.
//       D = max(H above - first, D)    I = max(H left - first, I)    H = max(max(H diagonal + s, D), I)
//     with first = open - extend. Columns before the query score 0 and so are row 0 of the matrix.
//
// The scores of a row are bytes in two registers: the query's base, kept as a selector, picks one by a permute.
#pragma once

#include "gpu/kernels.hpp"
#include "gpu/lanes.hpp"
#include "gpu/numbers.hpp"
#include "gpu/work.hpp"

#include <cstdint>

namespace spillway::gpu {

/// The better of what each thread of a group has, to the group's first thread: highest score, then smallest target end,
/// then smallest query end.
template <class Lanes>
SPILLWAY_ON_DEVICE void best_of_group(std::uint32_t threads, const typename Lanes::Word& place,
                                      typename Lanes::Word& score, typename Lanes::Word& target_end,
                                      typename Lanes::Word& query_end) {
    using Word = typename Lanes::Word;
    for (std::uint32_t offset = 1; offset < threads; offset *= 2) {
        const Word other = Lanes::lane() + offset;
        const Word its_score = Lanes::from(score, other);
        const Word its_target = Lanes::from(target_end, other);
        const Word its_query = Lanes::from(query_end, other);
        const auto sooner =
            Lanes::either(Lanes::less(its_target, target_end),
                          Lanes::both(Lanes::equal(its_target, target_end), Lanes::less(its_query, query_end)));
        const auto better =
            Lanes::either(Lanes::less(score, its_score), Lanes::both(Lanes::equal(score, its_score), sooner));
        const auto take = Lanes::both(better, Lanes::less(place + offset, threads));
        score = Lanes::select(take, its_score, score);
        target_end = Lanes::select(take, its_target, target_end);
        query_end = Lanes::select(take, its_query, query_end);
    }
}

/// `first_pair` is 0, or 1 where Numbers hold one pair and this is for the second of a pack.
template <class Lanes, class Numbers, std::uint32_t columns, bool local>
SPILLWAY_ON_DEVICE void sweep(const Work& work, const Tile& tile, typename Lanes::Table table, unsigned first_pair) {
    using Word = typename Lanes::Word;
    using Mask = typename Lanes::Mask;
    constexpr unsigned pairs = Numbers::pairs;
    constexpr std::int32_t scale = 1 << column_bits<columns>;
    constexpr std::int32_t low_bits = local ? scale - 1 : 0;
    static_assert(columns % 2 == 0 && columns <= 1U << column_bits<columns>);

    const std::int32_t extend = work.scores.gap_extend;
    const std::int32_t first_gap = extend - work.scores.gap_open;
    const std::uint32_t minus_extend = Numbers::spread(-extend);
    const std::uint32_t minus_open = Numbers::spread(-work.scores.gap_open);
    const std::uint32_t minus_infinity = Numbers::spread(Numbers::minus_infinity);
    const std::uint32_t gap = Numbers::spread(first_gap);

    const std::uint32_t threads = tile.threads;
    const Word place = Lanes::lane() % threads;
    const Word group = Lanes::lane() / threads;
    const Mask first = Lanes::equal(place, 0U);
    const Mask working = Lanes::less(group, tile.packs);
    const Word pack = Lanes::select(working, group, 0U) + tile.first_pack;
    const Word target_at = Lanes::load(work.packs, pack, 0);
    const Word target_size = Lanes::load(work.packs, pack, 1);

    // A column's number in the query, from 0; less than 0 before it.
    Word query_at[pairs], query_size[pairs], column_0[pairs];
    SPILLWAY_UNROLL
    for (unsigned k = 0; k < pairs; ++k) {
        query_at[k] = Lanes::load(work.packs, pack, 2 + first_pair + k);
        query_size[k] = Lanes::load(work.packs, pack, 4 + first_pair + k);
        column_0[k] = place * columns + query_size[k] - threads * columns;
    }

    // Shifted in from the right, two columns at a time: loads of all columns at once would need more registers than the
    // rest of the kernel.
    Word selector[columns];
    SPILLWAY_UNROLL
    for (Word& of : selector) of = Lanes::all(0);
    SPILLWAY_NO_UNROLL
    for (std::uint32_t c = 0; c < columns; c += 2) {
        SPILLWAY_UNROLL
        for (std::uint32_t to = 0; to + 2 < columns; ++to) selector[to] = selector[to + 2];
        SPILLWAY_UNROLL
        for (std::uint32_t next = 0; next < 2; ++next) {
            Word base[pairs];
            SPILLWAY_UNROLL
            for (unsigned k = 0; k < pairs; ++k) {
                const Word column = column_0[k] + (c + next);
                const Mask outside = Lanes::less(column, 0U);
                const Word at = query_at[k] + Lanes::select(outside, 0U, column);
                base[k] = Lanes::select(outside, beyond, Lanes::load8(work.bases, at));
            }
            selector[columns - 2 + next] = Numbers::selector(base);
        }
    }

    Word above[columns], deletion[columns];
    Word insertion, before[pairs], edge[pairs];
    SPILLWAY_UNROLL
    for (std::uint32_t c = 0; c < columns; ++c) {
        Word start[pairs], gone[pairs];
        SPILLWAY_UNROLL
        for (unsigned k = 0; k < pairs; ++k) {
            const Word column = column_0[k] + c;
            const Mask outside = Lanes::less(column, 0U);
            start[k] = Lanes::select(outside, (column + 1U) * static_cast<std::uint32_t>(extend),
                                     static_cast<std::uint32_t>(first_gap));
            gone[k] = Lanes::select(outside, static_cast<std::uint32_t>(Numbers::minus_infinity),
                                    static_cast<std::uint32_t>(first_gap));
        }
        above[c] = local ? Lanes::all(minus_open) : Numbers::join(start);
        deletion[c] = Lanes::all(local ? 0U : minus_infinity);
        insertion = local ? Lanes::all(minus_open) : Numbers::join(gone);
    }
    SPILLWAY_UNROLL
    for (unsigned k = 0; k < pairs; ++k) {
        before[k] = Lanes::select(Lanes::less(0U, column_0[k]), static_cast<std::uint32_t>(first_gap),
                                  column_0[k] * static_cast<std::uint32_t>(extend));
        edge[k] = (column_0[k] + 1U) * static_cast<std::uint32_t>(extend);
    }
    Word left_before = local ? Lanes::all(minus_open) : Numbers::join(before);
    Word left_edge = local ? Lanes::all(minus_open) : Numbers::join(edge); // of the first thread
    Word base = Lanes::all(beyond);
    Word row = 1U - place; // from 1 in the target
    Word descent[pairs];   // what the best cell so far is less tall by: extend * row
    SPILLWAY_UNROLL
    for (unsigned k = 0; k < pairs; ++k) descent[k] = (place - 1U) * static_cast<std::uint32_t>(extend);
    Word taller = Numbers::join(descent);
    typename Numbers::Best best(local ? 0 : first_gap, low_bits);

    SPILLWAY_NO_UNROLL
    for (std::uint32_t step = 0; step < tile.rows + threads - 1; ++step) {
        const Word at = Lanes::select(Lanes::less(target_size, step), target_size, step);
        base = Lanes::select(first, Lanes::load8(work.bases, target_at + at), Lanes::shift_up(base));
        Word row_low, row_high;
        Lanes::row_of(table, base, row_low, row_high);
        Word left = Lanes::select(first, left_edge, Lanes::shift_up(above[columns - 1]));
        insertion = Lanes::select(first, minus_infinity, Lanes::shift_up(insertion));
        Word diagonal = left_before;
        left_before = left;
        Word row_best = Lanes::all(0), key;
        SPILLWAY_UNROLL
        for (std::uint32_t c = 0; c < columns; ++c) {
            const Word score = Lanes::permute(row_low, row_high, selector[c]);
            if constexpr (local) {
                deletion[c] = Numbers::add_max_0(deletion[c], minus_extend, above[c]);
                insertion = Numbers::add_max(insertion, minus_extend, left);
            } else {
                deletion[c] = Numbers::add_max(above[c], gap, deletion[c]);
                insertion = Numbers::add_max(left, gap, insertion);
            }
            const Word any = Numbers::max(Numbers::add_max(diagonal, score, deletion[c]), insertion);
            diagonal = above[c];
            above[c] = local ? Numbers::add(any, minus_open) : any;
            left = above[c];
            if constexpr (local) {
                // H is at least 0 and its halves have room for the bits, so one multiplication does both.
                const Word ranked =
                    Lanes::multiply_add(any, work.rank_scale, Numbers::spread(low_bits - static_cast<std::int32_t>(c)));
                if (c % 2 != 0) row_best = Numbers::max(row_best, key, ranked);
                key = ranked;
            }
        }
        if constexpr (!local) {
            const Mask inside = Lanes::none_of(Lanes::equal(base, beyond));
            row_best = Lanes::select(inside, Numbers::add(above[columns - 1], taller), minus_infinity);
            left_edge = Numbers::add(left_edge, Numbers::spread(extend));
            taller = Numbers::add(taller, minus_extend);
        }
        best.note(row_best, row, low_bits);
        row = row + 1U;
    }

    SPILLWAY_UNROLL
    for (unsigned k = 0; k < pairs; ++k) {
        Word score = Lanes::shift_right_signed(best.value(k), local ? column_bits<columns> : 0);
        Word target_end = best.row(k);
        Word query_end = query_size[k];
        if constexpr (local) {
            query_end = column_0[k] + static_cast<std::uint32_t>(scale) -
                        (best.value(k) & static_cast<std::uint32_t>(scale - 1));
            best_of_group<Lanes>(threads, place, score, target_end, query_end);
            const Mask empty = Lanes::equal(score, 0U);
            target_end = Lanes::select(empty, 0U, target_end);
            query_end = Lanes::select(empty, 0U, query_end);
        } else {
            score = score - query_size[k] * static_cast<std::uint32_t>(extend);
        }
        const Mask last = Lanes::equal(place, threads - 1);
        const Mask writes = Lanes::both(Lanes::both(local ? first : last, working), Lanes::less(0U, query_size[k]));
        const Word end = Lanes::load(work.packs, pack, 6 + first_pair + k);
        Lanes::store(work.ends, end, 0, score, writes);
        Lanes::store(work.ends, end, 1, query_end, writes);
        Lanes::store(work.ends, end, 2, target_end, writes);
    }
}

/// All pairs of a tile.
template <class Lanes, PackForm form, std::uint32_t columns, bool packed, bool local>
SPILLWAY_ON_DEVICE void sweep_tile(const Work& work, const Tile& tile, typename Lanes::Table table) {
    if constexpr (packed && form == PackForm::together) {
        sweep<Lanes, Packed<Lanes>, columns, local>(work, tile, table, 0);
    } else {
        for (unsigned pair = 0; pair < (packed ? 2U : 1U); ++pair) {
            sweep<Lanes, Wide<Lanes>, columns, local>(work, tile, table, pair);
        }
    }
}

} // namespace spillway::gpu
