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

/// A likely band wider than this is no better than a score pass.
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
    if (align_proven(query, Effort::any_band, result)) return;
    reset(result);
    band_.align({-static_cast<std::ptrdiff_t>(query_.size()), static_cast<std::ptrdiff_t>(target_.size())}, result);
}

bool BatchAligner::align_cheaply(std::string_view query, Alignment& result) {
    return align_proven(query, Effort::narrow_band, result);
}

bool BatchAligner::claim(std::string_view query, Alignment& result) {
    return align_proven(query, Effort::no_matrix, result);
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

bool BatchAligner::align_proven(std::string_view query, Effort effort, Alignment& result) {
    reset(result);
    query_.assign(query);
    band_.set_query(query_);
    if (query.empty()) {
        result.score = 0;
        return true;
    }
    if (!certifiable(scores_)) return false;
    if (const auto at = find_whole_query()) {
        return align_ungapped(query_, target_, *at, scores_, span_, result);
    }
    if (query_.size() >= long_query) {
        if (effort == Effort::no_matrix) return false;
        if (align_long(result)) return true;
        reset(result);
    }
    return find_runs(query_, target_, index_, runs_) && align_certified(effort, result);
}

bool BatchAligner::align_long(Alignment& result) {
    if (static_cast<std::ptrdiff_t>(query_.size()) <= Wavefronts<std::int16_t>::most_rows) {
        if (!long_) long_.emplace(scores_, span_, instructions_);
        return long_->align(query_, target_, index_, result);
    }
    if (!longest_) longest_.emplace(scores_, span_, instructions_);
    return longest_->align(query_, target_, index_, result);
}

bool BatchAligner::align_certified(Effort effort, Alignment& result) {
    if (runs_.empty()) return false;
    const Certificate certificate(scores_, span_, query_.size(), query_.unknown());
    const std::ptrdiff_t diagonal = longest_run().diagonal;
    if (align_ungapped(query_, target_, diagonal, scores_, span_, result) &&
        certified_bands(certificate, result.score, widest(effort))) {
        const Freedom freedom = certificate.freedom(result.score);
        if (freedom.gaps && only_on(diagonal, freedom) && lies_inside(diagonal) && !query_.has_unknown() &&
            detours_excluded(query_, target_, diagonal, certificate, freedom)) {
            return true;
        }
        if (freedom.gaps && effort == Effort::no_matrix) return false;
        return align_in_bands(freedom.gaps, result);
    }
    if (effort == Effort::no_matrix) return false;
    for (Band likely = likely_band();;) {
        const std::ptrdiff_t width = likely.high - likely.low + 1;
        if (effort == Effort::narrow_band && width > likely_width) return false;
        reset(result);
        band_.align(likely, result);
        if (certified_bands(certificate, result.score, widest(effort))) {
            if (bands_.size() == 1 && bands_[0].low >= likely.low && bands_[0].high <= likely.high) return true;
            return align_in_bands(certificate.freedom(result.score).gaps, result);
        }
        if (effort == Effort::narrow_band || 4 * width > widest(effort)) return false;
        likely.low -= width / 2;
        likely.high += width / 2;
    }
}

/// In bands_, which hold every best path; these have no gaps unless `gaps` says so.
bool BatchAligner::align_in_bands(bool gaps, Alignment& result) {
    reset(result);
    for (const Band& band : bands_) {
        if (gaps) {
            band_.align(band, result);
            continue;
        }
        for (std::ptrdiff_t diagonal = band.low; diagonal <= band.high; ++diagonal) {
            if (align_ungapped(query_, target_, diagonal, scores_, span_, trial_) && ends_better(trial_, result)) {
                std::swap(result, trial_);
            }
        }
    }
    return true;
}

/// Diagonals that bands may have in all. The whole matrix costs what as many do as its longer side has bases; half of
/// that is what bands are worth, and the tries to find them, of which the last is the widest, together the other half.
std::ptrdiff_t BatchAligner::widest(Effort effort) const {
    const auto longer = static_cast<std::ptrdiff_t>(std::max(query_.size(), target_.size()));
    return effort == Effort::any_band ? std::max(longer / 2, 2 * cheap_width) : 2 * cheap_width;
}

const ExactRun& BatchAligner::longest_run() const {
    return *std::max_element(runs_.begin(), runs_.end(),
                             [](const ExactRun& a, const ExactRun& b) { return a.length < b.length; });
}

bool BatchAligner::only_on(std::ptrdiff_t diagonal, const Freedom& freedom) const {
    return freedom.longest_run >= surely_found && std::all_of(runs_.begin(), runs_.end(), [&](const ExactRun& run) {
               return run.diagonal == diagonal || run.length < freedom.longest_run;
           });
}

bool BatchAligner::lies_inside(std::ptrdiff_t diagonal) const {
    return diagonal >= 0 &&
           diagonal + static_cast<std::ptrdiff_t>(query_.size()) <= static_cast<std::ptrdiff_t>(target_.size());
}

/// Makes bands_ the bands that hold every alignment of this score or more. False if they have more than `widest`
/// diagonals, or nothing is proven.
bool BatchAligner::certified_bands(const Certificate& certificate, std::int64_t score, std::ptrdiff_t widest) {
    const Freedom freedom = certificate.freedom(score);
    const Band possible = certificate.diagonals(score, target_.size());
    bands_.clear();
    if (freedom.longest_run < surely_found) {
        bands_.push_back(possible);
        return possible.high - possible.low < widest;
    }
    for (const ExactRun& run : runs_) {
        if (run.length < freedom.longest_run) continue;
        // A best path that is on the run anywhere is on it as far as the run goes, if that is to the query's end:
        // leaving it for a gap would lose, and there is nothing to gain. So it drifts on the run's other side only.
        const bool before = run.query_begin > 0;
        const bool after = run.query_begin + run.length < static_cast<std::ptrdiff_t>(query_.size());
        const auto most = [&](std::ptrdiff_t a, std::ptrdiff_t b) { return std::max(before ? a : 0, after ? b : 0); };
        const Band band{.low = std::max(possible.low, run.diagonal - most(freedom.deleted, freedom.inserted)),
                        .high = std::min(possible.high, run.diagonal + most(freedom.inserted, freedom.deleted))};
        if (band.low <= band.high) bands_.push_back(band);
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
Band BatchAligner::likely_band() const {
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
    return band;
}

} // namespace spillway
