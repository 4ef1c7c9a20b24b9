// Which pairs the kernels take, and in which shape.
//
//     const Fit fit(scores, Span::local);
//     if (std::optional<Tiling> tiling = fit.of(query.size(), target.size())) ...       // else it is for the CPU
#pragma once

#include "gpu/kernels.hpp"
#include "spillway/align.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace spillway::gpu {

/// The longest query is that of a warp's threads with the most columns; of the target's rows 16 bits are kept.
inline constexpr std::size_t longest_query = 32 * warp_size;
inline constexpr std::size_t longest_target = 32768;

struct Tiling {
    std::uint32_t shape = 0; ///< Of shapes.
    std::uint32_t threads = 2;
    friend bool operator==(const Tiling&, const Tiling&) = default;
};

class Fit {
public:
    /// Scores must have passed check_scores.
    Fit(const Scores& scores, Span span);

    /// None: the pair is empty, too long, or its scores do not fit. 16 bits where match * min(query, target) fits them,
    /// what is beside it in the registers added; else 32. Of the shapes that take it the one with the fewest idle
    /// columns and threads.
    [[nodiscard]] std::optional<Tiling> of(std::size_t query, std::size_t target) const;

    [[nodiscard]] const ReducedScores& scores() const noexcept { return scores_; }
    [[nodiscard]] bool local() const noexcept { return local_; }
    /// Writes the score table.
    void write_rows(std::uint32_t (&rows)[8][2]) const;

private:
    [[nodiscard]] bool packs(const Shape& shape, std::uint32_t threads, std::size_t query, std::size_t target) const;

    ReducedScores scores_;
    bool local_;
    bool bytes_ = true; ///< The table holds these scores.
};

} // namespace spillway::gpu
