#include "align/wavefronts.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace spillway {

namespace {

/// Not reached. Each step adds at most one for each unit of loss, so it stays negative.
template <class Lane>
constexpr Lane nowhere = sizeof(Lane) == 2 ? Lane{-31'000} : static_cast<Lane>(-(1 << 30));

/// Lanes before a row's first that may be read, and past its last, where a register may end.
constexpr std::ptrdiff_t before = 8, after = 24;

/// Lanes whose rows are followed along matches in one go: their mask has a byte's bit for each byte of a lane.
template <class Lane>
constexpr auto group = static_cast<std::ptrdiff_t>(64 / sizeof(Lane));

/// The lowest bit of each lane that is all ones, others being 0.
template <class Lane, std::size_t bytes, class Vector>
[[gnu::always_inline]] inline std::uint64_t lane_mask(const Vector& lanes) {
    constexpr std::uint64_t lowest = sizeof(Lane) == 2 ? 0x5555'5555'5555'5555U : 0x1111'1111'1111'1111U;
    std::uint64_t mask = 0;
#if defined(__x86_64__)
    __m128i halves[bytes / 16];
    std::memcpy(halves, &lanes, bytes);
    for (std::size_t h = 0; h < bytes / 16; ++h) {
        mask |= static_cast<std::uint64_t>(static_cast<unsigned>(_mm_movemask_epi8(halves[h]))) << (16 * h);
    }
#else
    for (std::size_t lane = 0; lane < bytes / sizeof(Lane); ++lane) {
        mask |= static_cast<std::uint64_t>(lanes[lane] != 0) << (sizeof(Lane) * lane);
    }
#endif
    return mask & lowest;
}

/// A group of rows, without the matches that follow them, from lane `at` on. Returns which are further than any of a
/// smaller loss.
template <class Lane, std::size_t bytes>
[[gnu::always_inline]] inline std::uint64_t make_rows(const WaveStep<Lane>& s, std::ptrdiff_t at) {
    typedef Lane Vector __attribute__((vector_size(bytes)));
    constexpr auto lanes = static_cast<std::ptrdiff_t>(bytes / sizeof(Lane));
    const auto load = [](Vector & v, const Lane* from) __attribute__((always_inline)) {
        std::memcpy(&v, from, bytes);
    };
    const auto store = [](const Vector& v, Lane* to) __attribute__((always_inline)) {
        std::memcpy(to, &v, bytes);
    };
    const Vector start = Vector{} + s.start;
    std::uint64_t further = 0;
    const std::ptrdiff_t end = std::min(s.last + 1, at + group<Lane>);
    for (std::ptrdiff_t k = at; k < end; k += lanes) {
        Vector deletion, deletion_extended, insertion, insertion_extended, any, most, furthest;
        load(deletion, s.deletion_opened + k - 1);
        load(deletion_extended, s.deletion_extended + k - 1);
        deletion = deletion > deletion_extended ? deletion : deletion_extended;
        store(deletion, s.deletion + k);
        load(insertion, s.insertion_opened + k + 1);
        load(insertion_extended, s.insertion_extended + k + 1);
        insertion = (insertion > insertion_extended ? insertion : insertion_extended) + 1;
        store(insertion, s.insertion + k);
        load(any, s.mismatched + k);
        any = any + 1;
        any = any > deletion ? any : deletion;
        any = any > insertion ? any : insertion;
        if (s.start >= 0) {
            Vector least;
            load(least, s.least + k);
            const Vector begun = start >= least ? start : any;
            any = any > begun ? any : begun;
        }
        load(most, s.most + k);
        any = any < most ? any : most;
        store(any, s.any + k);
        load(furthest, s.furthest_rows + k);
        const Vector more = any > furthest;
        further |= lane_mask<Lane, bytes, Vector>(more) << (static_cast<std::size_t>(k - at) * sizeof(Lane));
    }
    return further;
}

/// Only rows that are further than those of smaller losses need it: at the others there was a mismatch before, and no
/// best path comes there. Eight bases at a time: beside the path that matters a diagonal nearly always differs there.
template <class Lane, std::size_t bytes>
[[gnu::always_inline]] inline void step_any(WaveStep<Lane>& step) {
    WaveStep<Lane> s = step; // a copy that stores of lanes cannot change
    std::ptrdiff_t furthest = -1;
    for (std::ptrdiff_t at = s.first; at <= s.last; at += group<Lane>) {
        std::uint64_t further = make_rows<Lane, bytes>(s, at);
        for (; further != 0; further &= further - 1) {
            const std::ptrdiff_t k = at + std::countr_zero(further) / static_cast<int>(sizeof(Lane));
            const std::ptrdiff_t i = s.any[k];
            if (i < 0 || k > s.last) continue;
            const std::ptrdiff_t j = i + k + s.low;
            const std::uint64_t differ = eight_bases(s.query + i) ^ eight_bases(s.target + j);
            const std::ptrdiff_t end = differ != 0 ? i + std::countr_zero(differ) / 8
                                                   : i + 8 + equal_after(s.query + (i + 8), s.target + (j + 8));
            s.any[k] = s.furthest_rows[k] = static_cast<Lane>(end);
            furthest = std::max(furthest, end);
        }
    }
    step.furthest = furthest;
}

#if defined(__x86_64__)
template <class Lane>
[[gnu::target("avx2,bmi")]] void step_avx2(WaveStep<Lane>& s) {
    step_any<Lane, 32>(s);
}
#endif

template <class Lane>
void step(WaveStep<Lane>& s, [[maybe_unused]] Instructions instructions) {
#if defined(__x86_64__)
    if (instructions == Instructions::widest && __builtin_cpu_supports("avx2")) return step_avx2<Lane>(s);
#endif
    step_any<Lane, 16>(s);
}

void include(Band& band, const Band& other, std::ptrdiff_t shift) {
    if (other.low > other.high) return;
    band.low = std::min(band.low, other.low + shift);
    band.high = std::max(band.high, other.high + shift);
}

} // namespace

template <class Lane>
Wavefronts<Lane>::Wavefronts(const Losses& losses, Instructions instructions)
    : losses_(losses), instructions_(instructions),
      ring_(std::bit_ceil(static_cast<std::uint32_t>(losses.largest()) + 1)) {}

template <class Lane>
std::ptrdiff_t Wavefronts<Lane>::row(Kind kind, std::int32_t loss) const noexcept {
    const std::size_t number = loss < 0 ? 0 : 4 + kind * ring_ + place(loss);
    return static_cast<std::ptrdiff_t>(number) * stride_ + before;
}

template <class Lane>
void Wavefronts<Lane>::begin(const CodedBases& query, const CodedBases& target, Band band, WaveStart start) {
    query_ = &query;
    target_ = &target;
    whole_ = band;
    start_ = start;
    loss_ = 0;
    least_ = 0;
    stride_ = band.high - band.low + 1 + before + after;
    lanes_.assign((4 + 3 * ring_) * static_cast<std::size_t>(stride_), nowhere<Lane>);
    bands_.assign(ring_, {.low = 1, .high = 0});
    const auto query_size = static_cast<std::ptrdiff_t>(query.size());
    const auto target_size = static_cast<std::ptrdiff_t>(target.size());
    // Diagonal k has rows max(0, -k) to min(query_size, target_size - k): straight lines between two level ones.
    const std::ptrdiff_t first = band.low - before;
    const auto line = [&](std::size_t row, std::ptrdiff_t zero, std::ptrdiff_t low, std::ptrdiff_t high) {
        Lane* lanes = lanes_.data() + static_cast<std::ptrdiff_t>(row) * stride_;
        const std::ptrdiff_t falls = std::clamp<std::ptrdiff_t>(zero - high - first, 0, stride_);
        const std::ptrdiff_t level = std::clamp<std::ptrdiff_t>(zero - low - first, 0, stride_);
        std::fill(lanes, lanes + falls, static_cast<Lane>(high));
        for (std::ptrdiff_t at = falls; at < level; ++at) lanes[at] = static_cast<Lane>(zero - first - at);
        std::fill(lanes + level, lanes + stride_, static_cast<Lane>(low));
    };
    line(1, 0, 0, query_size + 1);
    line(2, target_size, -1, query_size);
    make_wave();
    if (!start.inserting) return;
    Lane* inserted = lanes_.data() + row(insertion, 0);
    for (std::ptrdiff_t k = this->band().low; k <= this->band().high; ++k) {
        if (at(k) >= 0) inserted[k - whole_.low] = static_cast<Lane>(start.row);
    }
}

template <class Lane>
void Wavefronts<Lane>::advance() {
    ++loss_;
    make_wave();
}

template <class Lane>
Band Wavefronts<Lane>::next_band(std::ptrdiff_t start_row) const noexcept {
    Band band{.low = whole_.high + 1, .high = whole_.low - 1};
    const auto from = [&](std::int32_t lost, std::ptrdiff_t shift) {
        if (lost <= loss_) include(band, bands_[place(loss_ - lost)], shift);
    };
    from(losses_.mismatch, 0);
    from(losses_.deletion_open, 1);
    from(losses_.deletion_extend, 1);
    from(losses_.insertion_open, -1);
    from(losses_.insertion_extend, -1);
    if (start_row >= std::max<std::ptrdiff_t>(least_, 0))
        include(band, {.low = std::max(whole_.low, -start_row), .high = start_.highest}, 0);
    return {.low = std::max(band.low, whole_.low), .high = std::min(band.high, whole_.high)};
}

template <class Lane>
void Wavefronts<Lane>::make_wave() {
    std::ptrdiff_t start = -1;
    if (loss_ == 0 || start_.anywhere) start = start_.row + loss_ / losses_.clip;
    const Band band = next_band(start);
    WaveStep<Lane> s;
    s.mismatched = lanes_.data() + row(any, loss_ - losses_.mismatch);
    s.deletion_opened = lanes_.data() + row(any, loss_ - losses_.deletion_open);
    s.deletion_extended = lanes_.data() + row(deletion, loss_ - losses_.deletion_extend);
    s.insertion_opened = lanes_.data() + row(any, loss_ - losses_.insertion_open);
    s.insertion_extended = lanes_.data() + row(insertion, loss_ - losses_.insertion_extend);
    s.least = lanes_.data() + stride_ + before;
    s.most = s.least + stride_;
    s.furthest_rows = lanes_.data() + 3 * stride_ + before;
    s.any = lanes_.data() + row(any, loss_);
    s.deletion = lanes_.data() + row(deletion, loss_);
    s.insertion = lanes_.data() + row(insertion, loss_);
    s.query = query_->at(0);
    s.target = target_->at(0);
    s.low = whole_.low;
    s.first = band.low - whole_.low;
    s.last = band.high - whole_.low;
    s.start = static_cast<Lane>(start);
    bands_[place(loss_)] = band;
    step(s, instructions_);
    furthest_ = s.furthest;
}

template <class Lane>
void Wavefronts<Lane>::trim(std::ptrdiff_t least) {
    least_ = least;
    Band& band = bands_[place(loss_)];
    while (band.low <= band.high && at(band.low) < least) ++band.low;
    while (band.low <= band.high && at(band.high) < least) --band.high;
}

template class Wavefronts<std::int16_t>;
template class Wavefronts<std::int32_t>;

} // namespace spillway
