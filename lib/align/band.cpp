#include "align/band.hpp"

#include <algorithm>
#include <utility>

#include "align/sweep.hpp"

namespace spillway {

bool fits_16_bits(std::size_t query, std::size_t target, const Scores& scores) noexcept {
    const std::int64_t largest =
        std::max({scores.match, -scores.mismatch, -scores.unknown, scores.gap_open, scores.gap_extend});
    const auto shorter = static_cast<std::int64_t>(std::min(query, target));
    const auto both = static_cast<std::int64_t>(query + target);
    // Lowest sum: everything inserted, then one more step. Antidiagonals are counted in lanes as well.
    return largest <= 2000 && both <= 32000 && shorter * scores.match <= 28000 &&
           static_cast<std::int64_t>(query) * scores.gap_extend + 3 * largest <= 24000 - scores.match;
}

namespace {

template <class Lane, std::size_t bytes, Span span, bool with_unknown>
[[gnu::always_inline]] inline void sweep_either(Sweep<Lane>& s) {
    // Half a register, where it is enough, costs less: its lanes are shifted in one step instead of three.
    const std::ptrdiff_t width = s.band.high - s.band.low;
    if (bytes == 32 && width < 2 * Registers<Lane, 16>::lanes) {
        sweep_narrow<Lane, 16, 1, span, with_unknown>(s);
    } else if (width < 2 * Registers<Lane, bytes>::lanes) {
        sweep_narrow<Lane, bytes, 1, span, with_unknown>(s);
    } else if (width < 4 * Registers<Lane, bytes>::lanes) {
        sweep_narrow<Lane, bytes, 2, span, with_unknown>(s);
    } else {
        sweep_wide<Lane, bytes, span, with_unknown>(s);
    }
}

template <class Lane, std::size_t bytes>
[[gnu::always_inline]] inline void sweep_any(Sweep<Lane>& s, Span span, bool with_unknown) {
    if (span == Span::query && with_unknown) return sweep_either<Lane, bytes, Span::query, true>(s);
    if (span == Span::query) return sweep_either<Lane, bytes, Span::query, false>(s);
    if (with_unknown) return sweep_either<Lane, bytes, Span::local, true>(s);
    return sweep_either<Lane, bytes, Span::local, false>(s);
}

#if defined(__x86_64__)
template <class Lane>
[[gnu::target("avx2")]] void sweep_avx2(Sweep<Lane>& s, Span span, bool with_unknown) {
    sweep_any<Lane, 32>(s, span, with_unknown);
}
#endif

std::ptrdiff_t register_bytes([[maybe_unused]] Instructions instructions) {
#if defined(__x86_64__)
    if (instructions == Instructions::widest && __builtin_cpu_supports("avx2")) return 32;
#endif
    return 16;
}

template <class Lane>
void sweep(Sweep<Lane>& s, Span span, bool with_unknown, [[maybe_unused]] Instructions instructions) {
#if defined(__x86_64__)
    if (register_bytes(instructions) == 32) return sweep_avx2<Lane>(s, span, with_unknown);
#endif
    sweep_any<Lane, 16>(s, span, with_unknown);
}

/// Where a local path ends best; score 0 if nowhere. Each sweep leaves one candidate for each place in best.
template <class Lane>
Alignment best_local_end(const Sweep<Lane>& s) {
    Alignment end;
    const auto consider = [&](std::ptrdiff_t place, std::ptrdiff_t i) {
        if (s.best[place] <= 0 || s.best[place] < end.score) return;
        Alignment here;
        here.score = s.best[place];
        here.query_end = static_cast<std::int32_t>(i);
        here.target_end = static_cast<std::int32_t>(s.best_at[place] - i);
        if (ends_better(here, end)) end = std::move(here);
    };
    if (s.best_by_lane) {
        for (std::ptrdiff_t lane = 0; lane < s.border / 2; ++lane) {
            consider(lane, top_row(s.best_at[lane], s.band) + lane);
        }
    } else {
        for (std::ptrdiff_t i = 1; i <= s.query_size; ++i) consider(i, i);
    }
    return end;
}

} // namespace

template <class Lane>
void BandAligner<Lane>::set_target(const CodedBases& target) {
    constexpr std::ptrdiff_t border = Sweep<Lane>::border;
    target_size_ = static_cast<std::ptrdiff_t>(target.size());
    target_has_unknown_ = target.has_unknown();
    target_.assign(target.size() + 2 * border, static_cast<Lane>(CodedBases::Side::target));
    std::reverse_copy(target.at(0), target.at(target_size_), target_.begin() + border);
}

template <class Lane>
void BandAligner<Lane>::set_query(const CodedBases& query) {
    constexpr std::ptrdiff_t border = Sweep<Lane>::border;
    query_size_ = static_cast<std::ptrdiff_t>(query.size());
    has_unknown_ = query.has_unknown() || target_has_unknown_;
    query_.assign(query.size() + 2 * border, static_cast<Lane>(CodedBases::Side::query));
    std::copy(query.at(0), query.at(query_size_), query_.begin() + border);
}

template <class Lane>
void BandAligner<Lane>::align(Band band, Alignment& best) {
    constexpr std::ptrdiff_t border = Sweep<Lane>::border;
    band.high = std::min(band.high, target_size_);
    // What fits into one register, or two, is aligned up to all of its lanes.
    const std::ptrdiff_t widest_register = register_bytes(instructions_);
    for (const std::ptrdiff_t bytes : {std::ptrdiff_t{16}, widest_register, 2 * widest_register}) {
        const auto diagonals = 2 * bytes / static_cast<std::ptrdiff_t>(sizeof(Lane));
        if (band.high - band.low >= diagonals || band.low > band.high) continue;
        band.low = band.high - diagonals + 1;
        break;
    }
    band.low = std::max(band.low, -query_size_);
    // A path over the whole query begins in row 0, on a diagonal that is not negative.
    if (band.low > band.high || (span_ == Span::query && band.high < 0)) return;

    // What registers hold needs no rows: what is left in them at last fits into the rows' borders.
    const bool narrow = band.high - band.low < 4 * widest_register / static_cast<std::ptrdiff_t>(sizeof(Lane));
    const auto row_size = static_cast<std::size_t>((narrow ? 0 : query_size_) + 2 * border);
    rows_.assign(6 * row_size, minus_infinity<Lane>);
    const auto row = [&](std::size_t number) { return rows_.data() + number * row_size + border; };
    if (span_ == Span::local) std::fill_n(row(4) - border, 2 * row_size, Lane{0});

    Sweep<Lane> s;
    s.query = query_.data() + border;
    s.target = target_.data() + border;
    s.query_size = query_size_;
    s.target_size = target_size_;
    s.band = band;
    s.begin = std::max({std::ptrdiff_t{0}, band.low, -band.high});
    s.end = std::min({query_size_ + target_size_, 2 * query_size_ + band.high, 2 * target_size_ - band.low});
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
    const std::ptrdiff_t widest = std::min({query_size_, target_size_, (band.high - band.low) / 2}) + 1;
    // Each antidiagonal takes whole registers.
    const auto cells = static_cast<std::size_t>((query_size_ + 1) * (target_size_ + 1));
    const std::size_t room =
        std::min(antidiagonals * static_cast<std::size_t>(widest), cells) + antidiagonals * (border / 2);
    if (row_.size() < antidiagonals) row_.resize(antidiagonals);
    if (steps_size_ < room) {
        steps_ = std::make_unique_for_overwrite<std::uint8_t[]>(room);
        steps_size_ = room;
    }
    s.row = row_.data();
    s.steps = steps_.get();
    sweep<Lane>(s, span_, has_unknown_ && scores_.unknown != scores_.mismatch, instructions_);

    Alignment end;
    if (span_ == Span::query) {
        if (s.query_best == minus_infinity<Lane>) return;
        end.score = s.query_best;
        end.query_end = static_cast<std::int32_t>(query_size_);
        end.target_end = static_cast<std::int32_t>(s.query_best_at - query_size_);
    } else {
        end = best_local_end(s);
    }
    if (!ends_better(end, best)) return;
    best.score = end.score;
    best.query_end = end.query_end;
    best.target_end = end.target_end;
    trace(s, best);
}

template <class Lane>
void BandAligner<Lane>::trace(const Sweep<Lane>& s, Alignment& result) {
    std::ptrdiff_t i = result.query_end, j = result.target_end;
    int state = step::diagonal;
    while (i > 0) {
        int bits = s.steps[s.row[i + j - s.begin] + i];
        if (state == step::diagonal) {
            const std::ptrdiff_t last = i;
            while ((bits & (step::mask | step::stops)) == step::diagonal) {
                --i, --j;
                if (i == 0) break;
                bits = s.steps[s.row[i + j - s.begin] + i];
            }
            if (i < last) path_.add(CigarOperation::match, static_cast<std::uint32_t>(last - i));
            if (i == 0 || (bits & step::stops) != 0) break;
            state = bits & step::mask;
        }
        if (state == step::deletion) {
            path_.add(CigarOperation::deletion);
            --j;
            if ((bits & step::closes_deletion) != 0) state = step::diagonal;
        } else {
            path_.add(CigarOperation::insertion);
            --i;
            if ((bits & step::closes_insertion) != 0) state = step::diagonal;
        }
    }
    result.query_begin = static_cast<std::int32_t>(i);
    result.target_begin = static_cast<std::int32_t>(j);
    path_.finish(result.cigar);
}

template class BandAligner<std::int16_t>;
template class BandAligner<std::int32_t>;

} // namespace spillway
