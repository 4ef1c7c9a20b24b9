#include "align/wavefront.hpp"

#include <algorithm>
#include <cstring>

#include "align/certificate.hpp"

namespace spillway {

namespace {

/// Rows that a diagonal may be behind the leading one in the first search.
constexpr std::ptrdiff_t behind = 160;

/// Diagonals beside the likely ones that the first search may use.
constexpr std::ptrdiff_t beside = 256;

/// A row costs as much as so many cells of the matrix, which is what it competes with.
constexpr std::size_t cells_per_row = 2;

constexpr std::size_t least_budget = std::size_t{1} << 18;
constexpr std::size_t most_stored = std::size_t{1} << 26;

/// The loss of an alignment that was not found.
constexpr std::int64_t nothing = std::int64_t{1} << 40;

/// Lanes that are taken from the heap at once.
constexpr std::size_t chunk_size = std::size_t{1} << 15;

constexpr std::int32_t largest_step = 128;

} // namespace

template <class Lane>
WavefrontAligner<Lane>::WavefrontAligner(const Scores& scores, Span span, Instructions instructions)
    : scores_(scores), span_(span), losses_(scores), waves_(losses_, instructions),
      blocks_(losses_, span, instructions) {}

template <class Lane>
bool WavefrontAligner<Lane>::suits(const CodedBases& query, const CodedBases& target) const {
    if (!certifiable(scores_) || losses_.largest() > largest_step) return false;
    if (scores_.unknown != scores_.mismatch && (query.has_unknown() || target.has_unknown())) return false;
    return static_cast<std::ptrdiff_t>(query.size()) <= Wavefronts<Lane>::most_rows;
}

template <class Lane>
bool WavefrontAligner<Lane>::align(const CodedBases& query, const CodedBases& target, const TargetIndex& index,
                                   Alignment& result) {
    if (!suits(query, target)) return false;
    query_ = &query;
    target_ = &target;
    query_size_ = static_cast<std::ptrdiff_t>(query.size());
    target_size_ = static_cast<std::ptrdiff_t>(target.size());
    budget_ = query.size() * target.size() / cells_per_row + least_budget;
    blocks_.measure(query, target, index);

    const End near = search_near_the_lead();
    const std::int64_t least = blocks_.total();
    const bool telling = 2 * least <= blocks_.most();
    std::int64_t limit = near.loss;
    if (near.loss > least + least / 4 + 64) {
        if (!telling && near.loss == nothing) return false;
        if (telling) { // behind the lead may be the end of a long gap
            const std::int64_t guess = blocks_.guess();
            limit = std::min(limit, guess + guess / 16 + 16);
        }
    }
    for (;;) {
        // Mostly at least as many rows as there will be.
        if (2 * limit * (limit - least) > static_cast<std::int64_t>(budget_)) return false;
        End end{};
        if (!search(limit, end)) return false;
        if (end.loss <= limit) return trace(end, result);
        limit = std::min(limit + (limit - least) / 2 + 64, end.loss);
    }
}

/// The alignment that it finds is one of the best, or not.
template <class Lane>
typename WavefrontAligner<Lane>::End WavefrontAligner<Lane>::search_near_the_lead() {
    End best{.loss = nothing};
    const Band& likely = blocks_.likely();
    if (likely.low > likely.high) return best;
    const std::int64_t limit = 2 * blocks_.total() + 256;
    const Band band{.low = std::max(-query_size_, likely.low - beside),
                    .high = std::min(target_size_, likely.high + beside)};
    waves_.begin(*query_, *target_, band, {.highest = band.high, .anywhere = span_ == Span::local});
    for (std::ptrdiff_t lead = 0;;) {
        consider_ends(best);
        if (waves_.loss() >= std::min({limit, best.loss, std::int64_t{Wavefronts<Lane>::most_loss}})) return best;
        lead = std::max(lead, waves_.furthest());
        waves_.trim(lead - behind);
        waves_.advance();
    }
}

/// Of all alignments that lose at most `limit`, the one that ends best. False if the budget does not last.
template <class Lane>
bool WavefrontAligner<Lane>::search(std::int64_t limit, End& end) {
    end = {.loss = span_ == Span::local ? std::int64_t{losses_.clip} * query_size_ : nothing};
    limit = std::min(limit, end.loss);
    if (limit >= Wavefronts<Lane>::most_loss) return false;
    const Band band = blocks_.diagonals(limit);
    waves_.begin(*query_, *target_, band, {.highest = blocks_.highest_start(limit), .anywhere = span_ == Span::local});
    kept_.clear();
    chunk_ = chunk_used_ = 0;
    std::size_t block = 0, stored = 0;
    for (;;) {
        consider_ends(end);
        limit = std::min(limit, end.loss);
        waves_.trim(blocks_.first_row(limit - waves_.loss(), block));
        const auto size =
            static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, waves_.band().high - waves_.band().low + 1));
        if (size > budget_ || size > most_stored - stored) return false;
        budget_ -= size;
        stored += size;
        store_wave();
        if (waves_.loss() >= limit) return true;
        waves_.advance();
    }
}

template <class Lane>
std::ptrdiff_t WavefrontAligner<Lane>::first_diagonal_at(std::ptrdiff_t row) const {
    std::ptrdiff_t k = waves_.band().low;
    while (waves_.at(k) < row) ++k;
    return k;
}

/// The ends of this wave: the furthest row, on the lowest diagonal, which is the smallest target end. Less far ones
/// score less.
template <class Lane>
void WavefrontAligner<Lane>::consider_ends(End& best) const {
    const std::ptrdiff_t row = waves_.furthest();
    if (row < 0 || (span_ == Span::query && row < query_size_)) return;
    const std::int64_t loss = waves_.loss() + std::int64_t{losses_.clip} * (query_size_ - row);
    if (loss > best.loss) return;
    const std::ptrdiff_t diagonal = first_diagonal_at(row);
    const std::ptrdiff_t target_end = row + diagonal, best_target_end = best.row + best.diagonal;
    if (loss == best.loss && (target_end > best_target_end || (target_end == best_target_end && row >= best.row)))
        return;
    best = {.loss = loss, .reached_with = waves_.loss(), .row = row, .diagonal = diagonal};
}

template <class Lane>
void WavefrontAligner<Lane>::store_wave() {
    const Band& band = waves_.band();
    const auto size = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, band.high - band.low + 1));
    while (chunk_ < chunks_.size() && chunks_[chunk_].size - chunk_used_ < size) {
        ++chunk_;
        chunk_used_ = 0;
    }
    if (chunk_ == chunks_.size()) {
        const std::size_t room = std::max(size, chunk_size);
        chunks_.push_back({.lanes = std::make_unique_for_overwrite<Lane[]>(room), .size = room});
    }
    Lane* lanes = chunks_[chunk_].lanes.get() + chunk_used_;
    if (size > 0) std::memcpy(lanes, waves_.rows(band.low), size * sizeof(Lane));
    chunk_used_ += size;
    kept_.push_back({.lanes = lanes, .band = band});
}

template <class Lane>
bool WavefrontAligner<Lane>::reaches(std::int64_t loss, std::ptrdiff_t diagonal, std::ptrdiff_t row) const {
    if (loss < 0) return false;
    const Wave& wave = kept_[static_cast<std::size_t>(loss)];
    return diagonal >= wave.band.low && diagonal <= wave.band.high && wave.lanes[diagonal - wave.band.low] >= row;
}

template <class Lane>
bool WavefrontAligner<Lane>::trace(const End& end, Alignment& result) {
    std::ptrdiff_t lowest = end.diagonal, highest = end.diagonal;
    for (const Wave& wave : kept_) {
        lowest = std::min(lowest, wave.band.low);
        highest = std::max(highest, wave.band.high);
    }
    std::ptrdiff_t i = end.row, k = end.diagonal;
    std::int64_t loss = end.reached_with;
    const auto match = [&](std::ptrdiff_t length) {
        if (length > 0) path_.add(CigarOperation::match, static_cast<std::uint32_t>(length));
        i -= length;
    };
    const auto deletes = [&] {
        std::int64_t before = loss - losses_.deletion_open;
        for (std::ptrdiff_t g = 1; before >= 0 && k - g >= lowest && i + k >= g;
             ++g, before -= losses_.deletion_extend) {
            if (!reaches(before, k - g, i)) continue;
            path_.add(CigarOperation::deletion, static_cast<std::uint32_t>(g));
            k -= g;
            loss = before;
            return true;
        }
        return false;
    };
    const auto inserts = [&] {
        std::int64_t before = loss - losses_.insertion_open;
        for (std::ptrdiff_t g = 1; before >= 0 && k + g <= highest && i >= g; ++g, before -= losses_.insertion_extend) {
            if (!reaches(before, k + g, i - g)) continue;
            path_.add(CigarOperation::insertion, static_cast<std::uint32_t>(g));
            k += g;
            i -= g;
            loss = before;
            return true;
        }
        return false;
    };
    for (;;) {
        const std::ptrdiff_t equal = equal_before(query_->at(i), target_->at(i + k));
        if (span_ == Span::local && loss % losses_.clip == 0 && loss / losses_.clip >= i - equal) {
            match(i - static_cast<std::ptrdiff_t>(loss / losses_.clip));
            break;
        }
        match(equal);
        if (i == 0) break;
        if (i + k > 0 && reaches(loss - losses_.mismatch, k, i - 1)) {
            match(1);
            loss -= losses_.mismatch;
        } else if (!deletes() && !inserts()) {
            return false;
        }
    }
    result.score = static_cast<std::int32_t>(std::int64_t{scores_.match} * query_size_ - end.loss * losses_.unit);
    result.query_begin = static_cast<std::int32_t>(i);
    result.query_end = static_cast<std::int32_t>(end.row);
    result.target_begin = static_cast<std::int32_t>(i + k);
    result.target_end = static_cast<std::int32_t>(end.row + end.diagonal);
    path_.finish(result.cigar);
    return true;
}

template class WavefrontAligner<std::int16_t>;
template class WavefrontAligner<std::int32_t>;

} // namespace spillway
