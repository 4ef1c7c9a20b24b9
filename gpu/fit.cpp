#include "gpu/fit.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace spillway::gpu {
namespace {

/// What is added to each score in the table; see sweep.hpp.
std::int32_t raise(const ReducedScores& scores, bool local) {
    return local ? scores.gap_open : 2 * scores.gap_extend;
}

/// Instructions of a cell of two pairs, and of a row beside its cells: of sm_90, both spans alike.
constexpr double cell_cost = 8, row_cost = 20;

/// Time of one pair of this many rows, up to a factor that is the same for all.
double cost_of(const Shape& shape, std::uint32_t threads) {
    const double pairs = (shape.packed ? 2.0 : 1.0) * static_cast<double>(warp_size / threads);
    return (cell_cost * static_cast<double>(shape.columns) + row_cost) / pairs;
}

} // namespace

Fit::Fit(const Scores& scores, Span span) : local_(span == Span::local) {
    int divisor = scores.match;
    for (const int other : {scores.mismatch, scores.unknown, scores.gap_open, scores.gap_extend}) {
        divisor = std::gcd(divisor, other);
    }
    bytes_ = scores.gap_extend > 0; // else columns would all be as tall as the first
    scores_ = {scores.match / divisor,    scores.mismatch / divisor,   scores.unknown / divisor,
               scores.gap_open / divisor, scores.gap_extend / divisor, divisor};
    constexpr std::int32_t most = std::numeric_limits<std::int8_t>::max();
    constexpr std::int32_t least = std::numeric_limits<std::int8_t>::min();
    for (const std::int32_t size : {scores_.match, -scores_.mismatch, -scores_.unknown, scores_.gap_open}) {
        bytes_ = bytes_ && size <= most;
    }
    if (!bytes_) return;
    const std::int32_t up = raise(scores_, local_);
    // The least of all is for `beyond`, and must be worse than a gap.
    bytes_ = scores_.match + up <= most && up <= most && std::min(scores_.mismatch, scores_.unknown) + up > least;
}

bool Fit::packs(const Shape& shape, std::uint32_t threads, std::size_t query, std::size_t target) const {
    const std::int64_t highest = std::int64_t{scores_.match} * static_cast<std::int64_t>(std::min(query, target));
    if (local_) {
        const std::int64_t scale = shape.columns <= 16 ? 16 : 32;
        return (highest + 1) * scale - 1 <= std::numeric_limits<std::int16_t>::max();
    }
    // Taller by extend * (row + column), and lower by as much in columns before the query; what one cell adds or takes.
    const std::int64_t cells =
        static_cast<std::int64_t>(target) + std::int64_t{2} * warp_size + std::int64_t{shape.columns} * threads;
    return highest + scores_.gap_extend * cells + 512 <= -packed_minus_infinity;
}

std::optional<Tiling> Fit::of(std::size_t query, std::size_t target) const {
    if (!bytes_ || query == 0 || target == 0 || query > longest_query || target > longest_target) return std::nullopt;
    std::optional<Tiling> best;
    double least = 0;
    for (std::uint32_t shape = 0; shape < shape_count; ++shape) {
        const std::size_t columns = shapes[shape].columns;
        const auto threads = static_cast<std::uint32_t>(std::max<std::size_t>(2, (query + columns - 1) / columns));
        if (threads > warp_size || (shapes[shape].packed && !packs(shapes[shape], threads, query, target))) continue;
        const double cost = cost_of(shapes[shape], threads);
        if (!best || cost < least) {
            best = Tiling{shape, threads};
            least = cost;
        }
    }
    return best;
}

void Fit::write_rows(std::uint32_t (&rows)[8][2]) const {
    constexpr std::int32_t worst = std::numeric_limits<std::int8_t>::min();
    const std::int32_t up = raise(scores_, local_);
    for (std::uint32_t target = 0; target < 8; ++target) {
        std::uint8_t bytes[8] = {};
        for (std::uint32_t query = 0; query < 8; ++query) {
            std::int32_t score = worst;
            if (query < beyond && target < beyond) {
                const bool known = query < unknown_base && target < unknown_base;
                score = up + (!known ? scores_.unknown : query == target ? scores_.match : scores_.mismatch);
            } else if (!local_ && query == beyond) {
                // Columns before the query score 0: taller by two steps in the target's rows, by one where no row is.
                score = target < beyond ? 2 * scores_.gap_extend : scores_.gap_extend;
            }
            bytes[query] = static_cast<std::uint8_t>(score);
        }
        for (unsigned half = 0; half < 2; ++half) {
            rows[target][half] = 0;
            for (unsigned i = 0; i < 4; ++i) {
                rows[target][half] |= std::uint32_t{bytes[4 * half + i]} << (8 * i);
            }
        }
    }
}

} // namespace spillway::gpu
