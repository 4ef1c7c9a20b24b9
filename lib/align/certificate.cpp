#include "align/certificate.hpp"

#include <algorithm>

#include "align/limits.hpp"

namespace spillway {

Certificate::Certificate(const Scores& scores, Span span, std::size_t query_size, std::size_t unknown)
    : query_size_(static_cast<std::int64_t>(query_size)), unknown_(static_cast<std::int64_t>(unknown)),
      match_(scores.match), open_(scores.gap_open), extend_(scores.gap_extend),
      worst_pair_(match_ - std::min(scores.mismatch, scores.unknown)), clips_(span == Span::local),
      holds_(certifiable(scores)) {
    const std::int64_t best_pair = match_ - std::max(scores.mismatch, scores.unknown);
    perfect_ = match_ * (query_size_ - unknown_);
    least_gap_ = open_;
    least_event_ = std::min(open_, best_pair);
    least_unmatched_ = std::min(match_ + extend_, best_pair);
    if (span == Span::local) {
        least_unmatched_ = std::min(least_unmatched_, match_); // clipped
    } else if (unknown_ > 0) {
        // At best an unknown base is aligned or lengthens a gap; a gap of nothing else then loses only its opening.
        perfect_ += unknown_ * std::max(static_cast<std::int64_t>(scores.unknown), -extend_);
        least_gap_ = open_ - extend_;
    }
}

Freedom Certificate::freedom(std::int64_t score) const noexcept {
    const std::int64_t loss = perfect_ - score;
    Freedom freedom;
    if (!holds_) {
        freedom.deleted = static_cast<std::ptrdiff_t>(max_cells); // longer than any sequence
        freedom.inserted = freedom.clipped = static_cast<std::ptrdiff_t>(query_size_);
        return freedom;
    }
    freedom.gaps = loss >= least_gap_;
    if (freedom.gaps) {
        if (loss >= open_) freedom.deleted = (loss - open_) / extend_ + 1;
        freedom.inserted = unknown_;
        if (loss >= open_ + match_) freedom.inserted += (loss - open_ - match_) / (extend_ + match_) + 1;
        if (clips_) freedom.clipped = unknown_ + (loss - least_gap_) / match_;
    }
    // The bases that match lie in runs, and what lies between two runs is an event or an unknown base.
    const std::int64_t matching = query_size_ - unknown_ - loss / least_unmatched_;
    const std::int64_t runs = loss / least_event_ + unknown_ + 1;
    freedom.longest_run = matching <= 0 ? 0 : (matching + runs - 1) / runs;
    return freedom;
}

Band Certificate::diagonals(std::int64_t score, std::size_t target_size) const noexcept {
    // On diagonal d >= 0 an alignment pairs at most target - d bases, on one below 0 at most query - |d|.
    const std::int64_t loss = match_ * query_size_ - score;
    std::int64_t unpaired = loss / match_;
    if (!clips_ && holds_) unpaired = loss < open_ + match_ ? 0 : (loss - open_ - match_) / (extend_ + match_) + 1;
    unpaired = std::clamp<std::int64_t>(unpaired, 0, query_size_);
    const std::int64_t paired = query_size_ - unpaired;
    return {.low = static_cast<std::ptrdiff_t>(-unpaired),
            .high = static_cast<std::ptrdiff_t>(static_cast<std::int64_t>(target_size) - paired)};
}

} // namespace spillway
