#include "align/band.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace spillway {

namespace {

/// Lanes that may be read or written past either end of a row: one register's.
constexpr std::ptrdiff_t border = 32;

/// Less than any sum of a path, and far enough from the type's end that each score can once be taken from it.
template <class Lane>
constexpr Lane minus_infinity = sizeof(Lane) == 2 ? Lane{-28000} : static_cast<Lane>(-(1 << 30));

// What the traceback needs to know of a cell, as bits.
constexpr int step_diagonal = 0, step_deletion = 1, step_mask = 3; // else an insertion
constexpr int closes_deletion = 4;                                 // the deletion that ends here is one base long
constexpr int closes_insertion = 8;
constexpr int stops = 16; // local: the best is to begin here

constexpr std::ptrdiff_t half_up(std::ptrdiff_t x) {
    return (x + 1) >> 1;
}

} // namespace

bool fits_16_bits(std::size_t query, std::size_t target, const Scores& scores) noexcept {
    const std::int64_t largest = std::max({scores.match, -scores.mismatch, -scores.unknown, scores.gap_open});
    const auto shorter = static_cast<std::int64_t>(std::min(query, target));
    const auto both = static_cast<std::int64_t>(query + target);
    // Lowest sum: everything inserted, then one more step; antidiagonals are counted in lanes as well.
    return largest <= 2000 && both <= 32000 && shorter * scores.match <= 28000 &&
           static_cast<std::int64_t>(query) * scores.gap_extend + 3 * largest <= 24000 - scores.match;
}

template <class Lane>
std::ptrdiff_t BandAligner<Lane>::Sweep::first_row(std::ptrdiff_t antidiagonal) const noexcept {
    return std::max({std::ptrdiff_t{0}, antidiagonal - target_size, half_up(antidiagonal - band.high)});
}

template <class Lane>
std::ptrdiff_t BandAligner<Lane>::Sweep::last_row(std::ptrdiff_t antidiagonal) const noexcept {
    return std::min({query_size, antidiagonal, (antidiagonal - band.low) >> 1});
}

namespace {

// Cells of one antidiagonal depend on the two before it only, so a register takes as many as it has lanes. Rows are
// kept by i: the cell above is at [i - 1], the one to the left at [i], both one antidiagonal ago, the diagonal one at
// [i - 1] two ago, where the new cell goes. Registers are taken from the last row to the first, so that none overwrites
// what the next one reads. What lies past the ends of an antidiagonal is set to minus infinity; no later one reads
// further than that.
//
// Vectors never pass through a function's arguments: without the ISA that has them that would change with the flags.
template <class Lane, std::size_t bytes, Span span, bool with_unknown>
[[gnu::always_inline]] inline void sweep_band(typename BandAligner<Lane>::Sweep& s) {
    typedef Lane Vector __attribute__((vector_size(bytes)));
    typedef std::make_unsigned_t<Lane> Unsigned __attribute__((vector_size(bytes)));
    constexpr std::ptrdiff_t lanes = bytes / sizeof(Lane);
    const auto load = [](Vector & v, const Lane* from) __attribute__((always_inline)) {
        std::memcpy(&v, from, bytes);
    };
    const auto store = [](const Vector& v, Lane* to) __attribute__((always_inline)) {
        std::memcpy(to, &v, bytes);
    };
    // Lanes past the ends of an antidiagonal wrap around, which signed sums may not.
    const auto add = [](Vector & v, const Vector& by) __attribute__((always_inline)) {
        v = (Vector)((Unsigned)v + (Unsigned)by);
    };

    const Vector zero = {};
    const Vector match = zero + s.match, mismatch = zero + s.mismatch, unknown = zero + s.unknown;
    const Vector opening = zero - s.gap_open, extending = zero - s.gap_extend;
    Vector lane_number = {};
    for (std::ptrdiff_t lane = 0; lane < lanes; ++lane) lane_number[lane] = static_cast<Lane>(lane);

    s.query_best = minus_infinity<Lane>;
    Lane* before = s.any[0];
    Lane* now = s.any[1];
    std::size_t filled = 0;
    for (std::ptrdiff_t at = s.begin; at <= s.end; ++at) {
        const std::ptrdiff_t first = s.first_row(at), last = s.last_row(at);
        s.row[at - s.begin] = filled;
        std::swap(before, now); // now holds two antidiagonals ago, and will hold this one
        const std::ptrdiff_t registers = last < first ? 0 : (last - first) / lanes + 1;
        Lane* steps = s.steps + filled;
        filled += static_cast<std::size_t>(registers * lanes);
        for (std::ptrdiff_t k = registers - 1; k >= 0; --k) {
            const std::ptrdiff_t i = first + k * lanes;
            Vector q, t, diagonal, above, left, deletion, insertion;
            load(q, s.query + i - 1);
            load(t, s.target + (s.target_size - at + i));
            load(diagonal, now + i - 1);
            load(above, before + i - 1);
            load(left, before + i);
            load(deletion, s.deletion + i);
            load(insertion, s.insertion + i - 1);
            Vector pair = q == t ? match : mismatch;
            if constexpr (with_unknown) pair = (q | t) > 3 ? unknown : pair;
            add(diagonal, pair);
            add(left, opening);
            add(above, opening);
            add(deletion, extending);
            add(insertion, extending);
            const Vector deletion_closes = left >= deletion;
            const Vector insertion_closes = above >= insertion;
            deletion = left > deletion ? left : deletion;
            insertion = above > insertion ? above : insertion;
            const Vector gap = insertion > deletion ? insertion : deletion;
            Vector any = gap > diagonal ? gap : diagonal;
            Vector step = (gap > diagonal) & (step_deletion + ((insertion > deletion) & 1));
            step |= (deletion_closes & closes_deletion) | (insertion_closes & closes_insertion);
            if constexpr (span == Span::local) {
                any = any > zero ? any : zero;
                step |= (any == zero) & stops;
                Vector best, best_at;
                load(best, s.best + i);
                load(best_at, s.best_at + i);
                const Vector better = (any > best) & (lane_number <= static_cast<Lane>(std::min(last - i, lanes)));
                best = better ? any : best;
                best_at = better ? zero + static_cast<Lane>(at) : best_at;
                store(best, s.best + i);
                store(best_at, s.best_at + i);
            }
            store(any, now + i);
            store(deletion, s.deletion + i);
            store(insertion, s.insertion + i);
            store(step, steps + k * lanes);
        }
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

template <class Lane, std::size_t bytes>
[[gnu::always_inline]] inline void sweep_any(typename BandAligner<Lane>::Sweep& s, Span span, bool with_unknown) {
    if (span == Span::query) {
        if (with_unknown)
            sweep_band<Lane, bytes, Span::query, true>(s);
        else
            sweep_band<Lane, bytes, Span::query, false>(s);
    } else {
        if (with_unknown)
            sweep_band<Lane, bytes, Span::local, true>(s);
        else
            sweep_band<Lane, bytes, Span::local, false>(s);
    }
}

#if defined(__x86_64__)
template <class Lane>
[[gnu::target("avx2")]] void sweep_avx2(typename BandAligner<Lane>::Sweep& s, Span span, bool with_unknown) {
    sweep_any<Lane, 32>(s, span, with_unknown);
}
#endif

template <class Lane>
void sweep(typename BandAligner<Lane>::Sweep& s, Span span, bool with_unknown) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return sweep_avx2<Lane>(s, span, with_unknown);
#endif
    sweep_any<Lane, 16>(s, span, with_unknown);
}

} // namespace

template <class Lane>
void BandAligner<Lane>::set_target(const CodedBases& target) {
    target_size_ = static_cast<std::ptrdiff_t>(target.size());
    target_has_unknown_ = target.has_unknown();
    target_.assign(target.size() + 2 * border, Lane{8});
    std::reverse_copy(target.at(0), target.at(target_size_), target_.begin() + border);
}

template <class Lane>
void BandAligner<Lane>::set_query(const CodedBases& query) {
    query_size_ = static_cast<std::ptrdiff_t>(query.size());
    has_unknown_ = query.has_unknown() || target_has_unknown_;
    query_.assign(query.size() + 2 * border, Lane{4});
    std::copy(query.at(0), query.at(query_size_), query_.begin() + border);
}

template <class Lane>
void BandAligner<Lane>::align(Band band, Alignment& best) {
    band.low = std::max(band.low, -query_size_);
    band.high = std::min(band.high, target_size_);
    // A path over the whole query begins in row 0, on a diagonal that is not negative.
    if (band.low > band.high || (span_ == Span::query && band.high < 0)) return;

    const auto row_size = static_cast<std::size_t>(query_size_ + 2 * border);
    rows_.assign(6 * row_size, minus_infinity<Lane>);
    const auto row = [&](std::size_t number) { return rows_.data() + number * row_size + border; };
    if (span_ == Span::local) std::fill_n(row(4) - border, 2 * row_size, Lane{0});

    Sweep s{};
    s.query = query_.data() + border;
    s.target = target_.data() + border;
    s.query_size = query_size_;
    s.target_size = target_size_;
    s.band = band;
    s.begin = std::max({std::ptrdiff_t{0}, band.low, -band.high});
    s.end = std::min(query_size_ + target_size_, 2 * query_size_ + band.high);
    s.any[0] = row(0);
    s.any[1] = row(1);
    s.deletion = row(2);
    s.insertion = row(3);
    s.best = row(4);
    s.best_at = row(5);
    s.match = static_cast<Lane>(scores_.match);
    s.mismatch = static_cast<Lane>(scores_.mismatch);
    s.unknown = static_cast<Lane>(scores_.unknown);
    s.gap_open = static_cast<Lane>(scores_.gap_open);
    s.gap_extend = static_cast<Lane>(scores_.gap_extend);

    const auto antidiagonals = static_cast<std::size_t>(s.end - s.begin + 1);
    row_.resize(antidiagonals);
    s.row = row_.data();
    const std::ptrdiff_t widest = std::min({query_size_, target_size_, (band.high - band.low) / 2}) + 1;
    const std::size_t room = antidiagonals * static_cast<std::size_t>(widest + border);
    if (steps_.size() < room) steps_.resize(room);
    s.steps = steps_.data();
    sweep<Lane>(s, span_, has_unknown_ && scores_.unknown != scores_.mismatch);

    Alignment end;
    if (span_ == Span::query) {
        end.score = s.query_best;
        end.query_end = static_cast<std::int32_t>(query_size_);
        end.target_end = static_cast<std::int32_t>(s.query_best_at - query_size_);
        if (s.query_best == minus_infinity<Lane>) return;
    } else {
        for (std::ptrdiff_t i = 1; i <= query_size_; ++i) {
            Alignment here;
            here.score = s.best[i];
            here.query_end = static_cast<std::int32_t>(i);
            here.target_end = static_cast<std::int32_t>(s.best_at[i] - i);
            if (here.score > 0 && (end.score == 0 || ends_better(here, end))) end = here;
        }
    }
    if (!ends_better(end, best)) return;
    best.score = end.score;
    best.query_end = end.query_end;
    best.target_end = end.target_end;
    trace(s, end.query_end, end.target_end, best);
}

template <class Lane>
void BandAligner<Lane>::trace(const Sweep& s, std::ptrdiff_t i, std::ptrdiff_t j, Alignment& result) {
    int state = step_diagonal;
    while (i > 0) {
        const std::ptrdiff_t at = i + j;
        const auto cell = s.row[at - s.begin] + static_cast<std::size_t>(i - s.first_row(at));
        const int step = s.steps[cell];
        if (state == step_diagonal) {
            if ((step & stops) != 0) break;
            state = step & step_mask;
            if (state == step_diagonal) {
                path_.add(CigarOperation::match);
                --i, --j;
                continue;
            }
        }
        if (state == step_deletion) {
            path_.add(CigarOperation::deletion);
            --j;
            if ((step & closes_deletion) != 0) state = step_diagonal;
        } else {
            path_.add(CigarOperation::insertion);
            --i;
            if ((step & closes_insertion) != 0) state = step_diagonal;
        }
    }
    result.query_begin = static_cast<std::int32_t>(i);
    result.target_begin = static_cast<std::int32_t>(j);
    path_.finish(result.cigar);
}

template class BandAligner<std::int16_t>;
template class BandAligner<std::int32_t>;

} // namespace spillway
