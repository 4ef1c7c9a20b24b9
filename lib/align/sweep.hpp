// The inner loops of band.hpp: every cell of a band, one antidiagonal (cells of equal i + j) after the other.
//
//     Sweep<std::int16_t> sweep = ...;
//     sweep_any<std::int16_t, 16>(sweep, Span::query, with_unknown);     // 16: the bytes of a register
//
// Cells of one antidiagonal depend on the two before it only, so a register takes as many as it has lanes. Lanes are
// numbered by i: the cell above is i - 1, the one to the left i, both one antidiagonal ago, the diagonal one i - 1 two
// ago.
//
// Vectors never pass by value: between functions built for different ISAs that would not be one convention.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "align/band.hpp"
#include "spillway/align.hpp"

namespace spillway {

/// Less than any sum of a path, and far enough from the type's end that each score can once be taken from it.
template <class Lane>
inline constexpr Lane minus_infinity = sizeof(Lane) == 2 ? Lane{-28000} : static_cast<Lane>(-(1 << 30));

/// What the traceback needs to know of a cell, as bits.
namespace step {
inline constexpr int diagonal = 0, deletion = 1, mask = 3; // else an insertion
inline constexpr int closes_deletion = 4;                  // the deletion that ends here is one base long
inline constexpr int closes_insertion = 8;
inline constexpr int stops = 16; // local: it is best to begin here
} // namespace step

/// What a sweep reads and writes. Each pointer into a row may be used from -border to the row's size + border.
template <class Lane>
struct Sweep {
    /// Lanes past either end of a row: two registers' worth.
    static constexpr std::ptrdiff_t border = 64;

    const Lane* query = nullptr;  ///< Base i - 1 at [i - 1].
    const Lane* target = nullptr; ///< Backwards: base j - 1 at [target_size - j].
    std::ptrdiff_t query_size = 0, target_size = 0;
    Band band;
    std::ptrdiff_t begin = 0, end = 0; ///< First and last antidiagonal.

    Lane* any[2] = {}; ///< By i, of the last two antidiagonals.
    Lane* deletion = nullptr;
    Lane* insertion = nullptr;
    Lane* best = nullptr;      ///< Local, by i, or by lane if best_by_lane: the best sum,
    Lane* best_at = nullptr;   ///< and the first antidiagonal that has it.
    bool best_by_lane = false; ///< Out.

    std::uint8_t* steps = nullptr; ///< Bits of step, for the traceback:
    std::ptrdiff_t* row = nullptr; ///< those of cell i on antidiagonal `at` are steps[row[at - begin] + i].

    Lane query_best = minus_infinity<Lane>; ///< Span::query: the best sum in the last row, and where it is first.
    std::ptrdiff_t query_best_at = 0;

    Lane match = 0, mismatch = 0, unknown = 0, gap_open = 0, gap_extend = 0;
};

/// Antidiagonal `at` crosses `band.high`, or passes above it, at this row.
[[gnu::always_inline]] inline std::ptrdiff_t top_row(std::ptrdiff_t at, const Band& band) noexcept {
    return (at - band.high + 1) >> 1;
}

template <class Lane, std::size_t bytes>
struct Registers {
    typedef Lane Vector __attribute__((vector_size(bytes)));
    typedef std::make_unsigned_t<Lane> Unsigned __attribute__((vector_size(bytes)));
    static constexpr std::ptrdiff_t lanes = bytes / sizeof(Lane);
    typedef std::uint8_t Bytes __attribute__((vector_size(bytes / sizeof(Lane))));

    [[gnu::always_inline]] static void load(Vector& v, const Lane* from) { std::memcpy(&v, from, bytes); }
    [[gnu::always_inline]] static void store(const Vector& v, Lane* to) { std::memcpy(to, &v, bytes); }

    /// The low byte of each lane.
    [[gnu::always_inline]] static void store_bytes(const Vector& v, std::uint8_t* to) {
        const Bytes low = __builtin_convertvector(v, Bytes);
        std::memcpy(to, &low, sizeof low);
    }

    /// Lanes outside the matrix wrap around, which signed sums may not.
    [[gnu::always_inline]] static void add(Vector& v, const Vector& by) { v = (Vector)((Unsigned)v + (Unsigned)by); }

    [[gnu::always_inline]] static void fill(Vector& v, Lane value) { v = Vector{} + value; }

    [[gnu::always_inline]] static void number(Vector& v) {
        [&]<std::size_t... lane>(std::index_sequence<lane...>) __attribute__((always_inline)) {
            v = Vector{static_cast<Lane>(lane)...};
        }
        (std::make_index_sequence<static_cast<std::size_t>(lanes)>());
    }

    /// Each lane takes its right neighbour's value, the last one `in`'s.
    [[gnu::always_inline]] static void shift_down(Vector& to, const Vector& from, const Vector& in) {
        [&]<std::size_t... lane>(std::index_sequence<lane...>) __attribute__((always_inline)) {
            to = __builtin_shufflevector(from, in, (lane + 1)...);
        }
        (std::make_index_sequence<static_cast<std::size_t>(lanes)>());
    }

    /// Each lane takes its left neighbour's value, the first one `in`'s.
    [[gnu::always_inline]] static void shift_up(Vector& to, const Vector& from, const Vector& in) {
        [&]<std::size_t... lane>(std::index_sequence<lane...>) __attribute__((always_inline)) {
            to = __builtin_shufflevector(in, from, (lane + lanes - 1)...);
        }
        (std::make_index_sequence<static_cast<std::size_t>(lanes)>());
    }
};

/// The recurrence, for one register of cells.
template <class Lane, std::size_t bytes, Span span, bool with_unknown>
struct Recurrence {
    using In = Registers<Lane, bytes>;
    using Vector = typename In::Vector;

    Vector match, mismatch, unknown, opening, extending;

    [[gnu::always_inline]] explicit Recurrence(const Sweep<Lane>& s) {
        In::fill(match, s.match);
        In::fill(mismatch, s.mismatch);
        In::fill(unknown, s.unknown);
        In::fill(opening, static_cast<Lane>(-s.gap_open));
        In::fill(extending, static_cast<Lane>(-s.gap_extend));
    }

    /// In: the best sums of the cells before, `diagonal`, `left` and `above` in any way, `deletion` of left with one,
    /// `insertion` of above with one. Out: those of these cells, `diagonal` in any way, and how they came about.
    [[gnu::always_inline]] void operator()(const Vector& q, const Vector& t, Vector& diagonal, Vector& left,
                                           Vector& above, Vector& deletion, Vector& insertion, Vector& steps) const {
        Vector pair = q == t ? match : mismatch;
        if constexpr (with_unknown) pair = (q | t) > 3 ? unknown : pair;
        In::add(diagonal, pair);
        In::add(left, opening);
        In::add(above, opening);
        In::add(deletion, extending);
        In::add(insertion, extending);
        const Vector deletion_closes = left >= deletion;
        const Vector insertion_closes = above >= insertion;
        deletion = left > deletion ? left : deletion;
        insertion = above > insertion ? above : insertion;
        const Vector inserts = insertion > deletion;
        const Vector gap = inserts ? insertion : deletion;
        const Vector gapped = gap > diagonal;
        diagonal = gapped ? gap : diagonal;
        steps = gapped & (step::deletion + (inserts & 1));
        steps |= (deletion_closes & step::closes_deletion) | (insertion_closes & step::closes_insertion);
        if constexpr (span == Span::local) {
            const Vector zero = {};
            diagonal = diagonal > zero ? diagonal : zero;
            steps |= (diagonal == zero) & step::stops;
        }
    }
};

/// A band of any width: rows in memory. Registers are taken from the last row to the first, so that none overwrites
/// what the next one reads. What lies just past the ends of an antidiagonal is set to minus infinity; no later one
/// reads further.
template <class Lane, std::size_t bytes, Span span, bool with_unknown>
[[gnu::always_inline]] inline void sweep_wide(Sweep<Lane>& s) {
    using In = Registers<Lane, bytes>;
    using Vector = typename In::Vector;
    const Recurrence<Lane, bytes, span, with_unknown> recur(s);
    Vector lane_number;
    In::number(lane_number);

    Lane* before = s.any[0];
    Lane* now = s.any[1];
    std::ptrdiff_t filled = 0;
    for (std::ptrdiff_t at = s.begin; at <= s.end; ++at) {
        const std::ptrdiff_t first = std::max({std::ptrdiff_t{0}, at - s.target_size, top_row(at, s.band)});
        const std::ptrdiff_t last = std::min({s.query_size, at, (at - s.band.low) >> 1});
        s.row[at - s.begin] = filled - first;
        std::swap(before, now); // now holds two antidiagonals ago, and will hold this one
        const std::ptrdiff_t registers = last < first ? 0 : (last - first) / In::lanes + 1;
        for (std::ptrdiff_t k = registers - 1; k >= 0; --k) {
            const std::ptrdiff_t i = first + k * In::lanes;
            Vector q, t, any, above, left, deletion, insertion, steps;
            In::load(q, s.query + (i - 1));
            In::load(t, s.target + (s.target_size - at + i));
            In::load(any, now + (i - 1));
            In::load(above, before + (i - 1));
            In::load(left, before + i);
            In::load(deletion, s.deletion + i);
            In::load(insertion, s.insertion + (i - 1));
            recur(q, t, any, left, above, deletion, insertion, steps);
            In::store(any, now + i);
            In::store(deletion, s.deletion + i);
            In::store(insertion, s.insertion + i);
            In::store_bytes(steps, s.steps + (filled + k * In::lanes));
            if constexpr (span == Span::local) {
                Vector best, best_at;
                In::load(best, s.best + i);
                In::load(best_at, s.best_at + i);
                const std::ptrdiff_t inside = last - i < In::lanes ? last - i : In::lanes;
                const Vector better = (any > best) & (lane_number <= static_cast<Lane>(inside));
                best = better ? any : best;
                best_at = better ? Vector{} + static_cast<Lane>(at) : best_at;
                In::store(best, s.best + i);
                In::store(best_at, s.best_at + i);
            }
        }
        filled += registers * In::lanes;
        for (const std::ptrdiff_t outside : {first - 1, last + 1}) {
            now[outside] = s.deletion[outside] = s.insertion[outside] = minus_infinity<Lane>;
        }
        if (first == 0 && last >= 0) {
            now[0] = 0;
            s.deletion[0] = s.insertion[0] = minus_infinity<Lane>;
        }
        if (span == Span::query && last == s.query_size && first <= last && now[last] > s.query_best) {
            s.query_best = now[last];
            s.query_best_at = at;
        }
    }
}

/// A band of at most 2 * lanes diagonals, lanes those of `count` registers: they hold all of an antidiagonal, from
/// top_row on. A band of fewer must end at the matrix's first column: lanes that are past its end but inside the matrix
/// would not be reached from its begin.
template <class Lane, std::size_t bytes, std::size_t count, Span span, bool with_unknown>
[[gnu::always_inline]] inline void sweep_narrow(Sweep<Lane>& s) {
    using In = Registers<Lane, bytes>;
    using Vector = typename In::Vector;
    constexpr std::ptrdiff_t lanes = In::lanes * static_cast<std::ptrdiff_t>(count);
    const Recurrence<Lane, bytes, span, with_unknown> recur(s);
    const Vector zero = {};
    Vector outside, lane_number[count];
    In::fill(outside, minus_infinity<Lane>);

    Vector any[count], before[count], deletion[count], insertion[count], best[count], best_at[count];
    for (std::size_t k = 0; k < count; ++k) {
        In::number(lane_number[k]);
        lane_number[k] += static_cast<Lane>(static_cast<std::ptrdiff_t>(k) * In::lanes);
        any[k] = before[k] = deletion[k] = insertion[k] = outside;
        best[k] = best_at[k] = zero;
    }
    // Copied, since a byte that is stored might change a member, as far as the compiler knows.
    const Lane *const query = s.query, *const target = s.target;
    const std::ptrdiff_t begin = s.begin, end = s.end, query_size = s.query_size, target_size = s.target_size;
    const Band band = s.band;
    std::uint8_t* steps_at = s.steps;
    std::ptrdiff_t* const row = s.row;
    for (std::ptrdiff_t at = begin; at <= end; ++at, steps_at += lanes) {
        const std::ptrdiff_t top = top_row(at, band);
        Vector left[count], above[count];
        if (((at - band.high) & 1) != 0) { // top has just moved down by a row
            for (std::size_t k = 0; k < count; ++k) {
                In::shift_down(left[k], any[k], k + 1 < count ? any[k + 1] : outside);
                In::shift_down(deletion[k], Vector(deletion[k]), k + 1 < count ? deletion[k + 1] : outside);
                above[k] = any[k];
            }
        } else {
            for (std::size_t k = count; k-- > 0;) {
                left[k] = any[k];
                In::shift_up(above[k], any[k], k > 0 ? any[k - 1] : outside);
                In::shift_up(insertion[k], Vector(insertion[k]), k > 0 ? insertion[k - 1] : outside);
            }
        }
        const bool at_edge = top <= 0 || at - top < lanes; // lanes in row 0, in column 0, or before them
        for (std::size_t k = 0; k < count; ++k) {
            const std::ptrdiff_t first = top + static_cast<std::ptrdiff_t>(k) * In::lanes;
            Vector q, t, steps;
            In::load(q, query + (first - 1));
            In::load(t, target + (target_size - at + first));
            Vector now = before[k];
            before[k] = any[k];
            recur(q, t, now, left[k], above[k], deletion[k], insertion[k], steps);
            if (at_edge) {
                const Vector i = lane_number[k] + static_cast<Lane>(top);
                const Vector j = static_cast<Lane>(at) - i;
                const Vector edge = span == Span::local ? (i <= 0) | (j <= 0) : (i <= 0) | (j < 0);
                now = edge ? zero : now;
                if (span == Span::query) now = j < 0 ? outside : now;
                deletion[k] = edge ? outside : deletion[k];
                insertion[k] = edge ? outside : insertion[k];
            }
            any[k] = now;
            In::store_bytes(steps, steps_at + static_cast<std::ptrdiff_t>(k) * In::lanes);
            if constexpr (span == Span::local) {
                // Sums outside the matrix are in no lane above those inside, so they never replace the best one.
                const Vector better = now > best[k];
                best[k] = better ? now : best[k];
                best_at[k] = better ? zero + static_cast<Lane>(at) : best_at[k];
            }
        }
        row[at - begin] = (at - begin) * lanes - top;
        if (span == Span::query && query_size >= top && query_size < top + lanes && at >= query_size &&
            at <= query_size + target_size) {
            for (std::size_t k = 0; k < count; ++k) {
                In::store(any[k], s.any[0] + static_cast<std::ptrdiff_t>(k) * In::lanes);
            }
            const Lane sum = s.any[0][query_size - top];
            if (sum > s.query_best) {
                s.query_best = sum;
                s.query_best_at = at;
            }
        }
    }
    for (std::size_t k = 0; k < count; ++k) {
        In::store(best[k], s.best + static_cast<std::ptrdiff_t>(k) * In::lanes);
        In::store(best_at[k], s.best_at + static_cast<std::ptrdiff_t>(k) * In::lanes);
    }
    s.best_by_lane = true;
}

} // namespace spillway
