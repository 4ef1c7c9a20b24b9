#include "align/batch.hpp"

#include <algorithm>

#include "align/ungapped.hpp"

namespace spillway {

namespace {

/// Runs shorter than this say little about where a query lies.
constexpr std::ptrdiff_t telling_run = 12;

/// Diagonals that one register holds, or two: a band this wide costs what a narrower one does.
constexpr std::ptrdiff_t cheap_width = 32;

/// A likely band wider than this is no better than the whole matrix.
constexpr std::ptrdiff_t likely_width = 128;

void reset(Alignment& alignment) {
    alignment.score = std::numeric_limits<std::int32_t>::min();
    alignment.query_begin = alignment.query_end = alignment.target_begin = alignment.target_end = 0;
    alignment.cigar.clear();
}

} // namespace

BatchAligner::BatchAligner(std::string_view target, const Scores& scores, Span span) : scores_(scores), span_(span) {
    target_.assign(target);
    index_.build(target_);
}

void BatchAligner::align(std::string_view query, Alignment& result) {
    reset(result);
    query_.assign(query);
    narrow_has_query_ = wide_has_query_ = false;
    if (query.empty()) {
        result.score = 0;
        return;
    }
    if (const auto at = find_whole(query_, target_, index_)) {
        align_ungapped(query_, target_, *at, scores_, span_, result);
        return;
    }
    if (find_runs(query_, target_, index_, runs_) && align_certified(result)) return;
    reset(result);
    align_in_band({-static_cast<std::ptrdiff_t>(query_.size()), static_cast<std::ptrdiff_t>(target_.size())}, result);
}

bool BatchAligner::align_certified(Alignment& result) {
    if (runs_.empty()) return false;
    const Certificate certificate(scores_, span_, query_.size(), query_.unknown());
    const auto longest = std::max_element(runs_.begin(), runs_.end(),
                                          [](const ExactRun& a, const ExactRun& b) { return a.length < b.length; });
    reset(trial_);
    Freedom freedom;
    if (!align_ungapped(query_, target_, longest->diagonal, scores_, span_, trial_) ||
        !certified_bands(freedom = certificate.freedom(trial_.score))) {
        const std::optional<Band> likely = likely_band();
        if (!likely) return false;
        align_in_band(*likely, result);
        if (!certified_bands(freedom = certificate.freedom(result.score))) return false;
        if (bands_.size() == 1 && bands_[0].low >= likely->low && bands_[0].high <= likely->high) return true;
        reset(result);
    }
    for (const Band& band : bands_) {
        if (freedom.gaps) {
            align_in_band(band, result);
        } else if (align_ungapped(query_, target_, band.low, scores_, span_, trial_) && ends_better(trial_, result)) {
            std::swap(result, trial_);
        }
    }
    return true;
}

/// Makes bands_ the bands that hold every alignment so free. False if they are not worth it, or not proven.
bool BatchAligner::certified_bands(const Freedom& freedom) {
    if (freedom.longest_run < surely_found) return false;
    bands_.clear();
    for (const ExactRun& run : runs_) {
        if (run.length < freedom.longest_run) continue;
        bands_.push_back({.low = run.diagonal - freedom.drift, .high = run.diagonal + freedom.drift});
    }
    std::sort(bands_.begin(), bands_.end(), [](const Band& a, const Band& b) { return a.low < b.low; });
    std::size_t kept = 0;
    std::ptrdiff_t width = 0;
    for (const Band& band : bands_) {
        // Bands without drift stay apart: each is one diagonal.
        if (kept > 0 && (freedom.gaps ? band.low <= bands_[kept - 1].high + 1 : band.low == bands_[kept - 1].low)) {
            width += band.high - bands_[kept - 1].high;
            bands_[kept - 1].high = band.high;
        } else {
            width += band.high - band.low + 1;
            bands_[kept++] = band;
        }
    }
    bands_.resize(kept);
    return width <= static_cast<std::ptrdiff_t>(query_.size() + target_.size()) / 2;
}

/// Where the query seems to lie: around its longest run and what is near that, as wide as costs nothing more.
std::optional<Band> BatchAligner::likely_band() const {
    const auto longest = std::max_element(runs_.begin(), runs_.end(),
                                          [](const ExactRun& a, const ExactRun& b) { return a.length < b.length; });
    Band band{longest->diagonal, longest->diagonal};
    for (const ExactRun& run : runs_) {
        if (run.length < telling_run || std::abs(run.diagonal - longest->diagonal) > likely_width / 2) continue;
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

template <class Lane>
void BatchAligner::align_in_band(std::optional<BandAligner<Lane>>& aligner, bool& has_query, Band band,
                                 Alignment& best) {
    if (!aligner) {
        aligner.emplace(scores_, span_);
        aligner->set_target(target_);
    }
    if (!has_query) aligner->set_query(query_);
    has_query = true;
    aligner->align(band, best);
}

void BatchAligner::align_in_band(Band band, Alignment& best) {
    if (fits_16_bits(query_.size(), target_.size(), scores_))
        align_in_band(narrow_, narrow_has_query_, band, best);
    else
        align_in_band(wide_, wide_has_query_, band, best);
}

} // namespace spillway
