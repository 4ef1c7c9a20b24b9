#include "align/batch.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "align/detours.hpp"
#include "align/ungapped.hpp"

namespace spillway {

namespace {

/// Runs shorter than this say little about where a query lies.
constexpr std::ptrdiff_t telling_run = 12;

/// Diagonals that one register holds, or two: a band this wide costs what a narrower one does.
constexpr std::ptrdiff_t cheap_width = 32;

/// A likely band wider than this is no better than the whole matrix.
constexpr std::ptrdiff_t likely_width = 128;

/// Shorter queries lose so little that a band costs less than waves.
constexpr std::size_t long_query = 500;

void reset(Alignment& alignment) {
    alignment.score = std::numeric_limits<std::int32_t>::min();
    alignment.query_begin = alignment.query_end = alignment.target_begin = alignment.target_end = 0;
    alignment.cigar.clear();
}

} // namespace

void BatchAligner::set_target(std::string_view target) {
    target_.assign(target);
    band_.set_target(target_);
    has_index_ = may_need_index_ = false;
}

void BatchAligner::align(std::string_view query, Alignment& result) {
    const auto both = static_cast<std::ptrdiff_t>(query.size() + target_.size());
    if (align_proven(query, both / 2, result)) return;
    reset(result);
    band_.align({-static_cast<std::ptrdiff_t>(query_.size()), static_cast<std::ptrdiff_t>(target_.size())}, result);
}

bool BatchAligner::align_cheaply(std::string_view query, Alignment& result) {
    return align_proven(query, 2 * cheap_width, result);
}

std::optional<std::ptrdiff_t> BatchAligner::find_whole_query() {
    // One query is found faster by looking everywhere; where there are more, the index pays.
    if (!may_need_index_) {
        may_need_index_ = true;
        if (const auto at = find_whole(query_, target_)) return at;
    }
    if (!has_index_) index_.build(target_);
    has_index_ = true;
    return find_whole(query_, target_, index_);
}

bool BatchAligner::align_proven(std::string_view query, std::ptrdiff_t widest, Alignment& result) {
    reset(result);
    query_.assign(query);
    band_.set_query(query_);
    if (query.empty()) {
        result.score = 0;
        return true;
    }
    if (const auto at = find_whole_query()) {
        return align_ungapped(query_, target_, *at, scores_, span_, result);
    }
    if (query_.size() >= long_query && align_long(result)) return true;
    reset(result);
    return find_runs(query_, target_, index_, runs_) && align_certified(widest, result);
}

bool BatchAligner::align_long(Alignment& result) {
    if (static_cast<std::ptrdiff_t>(query_.size()) <= Wavefronts<std::int16_t>::most_rows) {
        if (!long_) long_.emplace(scores_, span_, instructions_);
        return long_->align(query_, target_, index_, result);
    }
    if (!longest_) longest_.emplace(scores_, span_, instructions_);
    return longest_->align(query_, target_, index_, result);
}

bool BatchAligner::align_certified(std::ptrdiff_t widest, Alignment& result) {
    if (runs_.empty()) return false;
    const Certificate certificate(scores_, span_, query_.size(), query_.unknown());
    const std::ptrdiff_t diagonal = longest_run().diagonal;
    Freedom freedom;
    if (align_ungapped(query_, target_, diagonal, scores_, span_, result) &&
        certified_bands(freedom = certificate.freedom(result.score), widest)) {
        if (freedom.gaps && only_on(diagonal, freedom) && lies_inside(diagonal) && !query_.has_unknown() &&
            detours_excluded(query_, target_, diagonal, certificate, freedom)) {
            return true;
        }
    } else {
        const std::optional<Band> likely = likely_band();
        if (!likely) return false;
        reset(result);
        band_.align(*likely, result);
        if (!certified_bands(freedom = certificate.freedom(result.score), widest)) return false;
        if (bands_.size() == 1 && bands_[0].low >= likely->low && bands_[0].high <= likely->high) return true;
    }
    reset(result);
    for (const Band& band : bands_) {
        if (freedom.gaps) {
            band_.align(band, result);
        } else if (align_ungapped(query_, target_, band.low, scores_, span_, trial_) && ends_better(trial_, result)) {
            std::swap(result, trial_);
        }
    }
    return true;
}

const ExactRun& BatchAligner::longest_run() const {
    return *std::max_element(runs_.begin(), runs_.end(),
                             [](const ExactRun& a, const ExactRun& b) { return a.length < b.length; });
}

bool BatchAligner::only_on(std::ptrdiff_t diagonal, const Freedom& freedom) const {
    return std::all_of(runs_.begin(), runs_.end(), [&](const ExactRun& run) {
        return run.diagonal == diagonal || run.length < freedom.longest_run;
    });
}

bool BatchAligner::lies_inside(std::ptrdiff_t diagonal) const {
    return diagonal >= 0 &&
           diagonal + static_cast<std::ptrdiff_t>(query_.size()) <= static_cast<std::ptrdiff_t>(target_.size());
}

/// Makes bands_ the bands that hold every best alignment, if each is so free. False if they have more than `widest`
/// diagonals, or nothing is proven.
bool BatchAligner::certified_bands(const Freedom& freedom, std::ptrdiff_t widest) {
    if (freedom.longest_run < surely_found) return false;
    bands_.clear();
    for (const ExactRun& run : runs_) {
        if (run.length < freedom.longest_run) continue;
        // A best path that is on the run anywhere is on it as far as the run goes, if that is to the query's end:
        // leaving it for a gap would lose, and there is nothing to gain. So it drifts on the run's other side only.
        const bool before = run.query_begin > 0;
        const bool after = run.query_begin + run.length < static_cast<std::ptrdiff_t>(query_.size());
        const auto most = [&](std::ptrdiff_t a, std::ptrdiff_t b) { return std::max(before ? a : 0, after ? b : 0); };
        bands_.push_back({.low = run.diagonal - most(freedom.deleted, freedom.inserted),
                          .high = run.diagonal + most(freedom.inserted, freedom.deleted)});
    }
    std::sort(bands_.begin(), bands_.end(), [](const Band& a, const Band& b) { return a.low < b.low; });
    std::size_t kept = 0;
    std::ptrdiff_t width = 0;
    for (const Band& band : bands_) {
        if (kept > 0 && band.low <= bands_[kept - 1].high) {
            bands_[kept - 1].high = std::max(bands_[kept - 1].high, band.high);
        } else {
            bands_[kept++] = band;
        }
    }
    bands_.resize(kept);
    for (const Band& band : bands_) width += band.high - band.low + 1;
    return width <= widest;
}

/// Where the query seems to lie: around its longest run and what is near that, as wide as costs nothing more.
std::optional<Band> BatchAligner::likely_band() const {
    const ExactRun& longest = longest_run();
    Band band{longest.diagonal, longest.diagonal};
    for (const ExactRun& run : runs_) {
        if (run.length < telling_run || std::abs(run.diagonal - longest.diagonal) > likely_width / 2) continue;
        band.low = std::min(band.low, run.diagonal);
        band.high = std::max(band.high, run.diagonal);
    }
    const std::ptrdiff_t width = band.high - band.low + 1;
    const std::ptrdiff_t wanted = (width + cheap_width / 2 + cheap_width - 1) / cheap_width * cheap_width;
    band.low -= (wanted - width) / 2;
    band.high = band.low + wanted - 1;
    if (wanted > likely_width) return std::nullopt;
    return band;
}

} // namespace spillway
