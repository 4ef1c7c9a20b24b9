#include "align/limits.hpp"

#include <algorithm>
#include <string>

#include "spillway/error.hpp"

namespace spillway {

namespace {

[[noreturn]] void refuse(std::string where, std::string detail) {
    throw Error(ErrorCode::usage, "aligning", std::move(where), std::move(detail));
}

} // namespace

void check_scores(const Scores& scores) {
    if (scores.match <= 0) refuse("match " + std::to_string(scores.match), "must be greater than 0");
    if (scores.mismatch > 0) refuse("mismatch " + std::to_string(scores.mismatch), "must be 0 or less");
    if (scores.unknown > 0) refuse("unknown " + std::to_string(scores.unknown), "must be 0 or less");
    if (scores.gap_open < 0) refuse("gap_open " + std::to_string(scores.gap_open), "must be 0 or more");
    if (scores.gap_extend < 0) refuse("gap_extend " + std::to_string(scores.gap_extend), "must be 0 or more");
}

Scores with_cheapest_extension(Scores scores) noexcept {
    scores.gap_extend = std::min(scores.gap_extend, scores.gap_open);
    return scores;
}

void check_lengths(std::size_t query, std::size_t target, const Scores& scores) {
    const auto pair = [&] { return std::to_string(query) + " x " + std::to_string(target) + " bases"; };
    if (query >= max_cells || target >= max_cells || (query + margin) * (target + margin) > max_cells) {
        refuse(pair(), "too long: (query + 32) * (target + 32) may be at most 2^28; align a window of the target");
    }
    const std::int64_t largest =
        std::max({std::int64_t{scores.match}, -std::int64_t{scores.mismatch}, -std::int64_t{scores.unknown},
                  std::int64_t{scores.gap_open}, std::int64_t{scores.gap_extend}});
    if (static_cast<std::int64_t>(query + target + 2) > max_sum / largest) {
        refuse(pair(), "scores up to " + std::to_string(largest) + " could sum past 2^29; divide the scores");
    }
}

} // namespace spillway
