// What lies in staging for the kernels, and what they are told beside it.
//
// A pack is what one group of threads aligns at once: one or two queries and their target. A tile is what one warp
// does: as many groups of equally many threads as it has room for. Bases are numbers, each target followed by a
// `beyond`. All of it is plain, so that it can be passed to a device as it is, and C++17, for older nvcc.
#pragma once

#include <cstdint>

namespace spillway::gpu {

inline constexpr std::uint32_t warp_size = 32;

// Bases: A, C, G and T are 0 to 3.
inline constexpr std::uint32_t unknown_base = 4;
inline constexpr std::uint32_t beyond = 5; ///< None: before a query, after a target.

struct Pack {
    std::uint32_t target_at = 0; ///< Into the bases.
    std::uint32_t target_size = 0;
    std::uint32_t query_at[2] = {};   ///< Into the bases.
    std::uint32_t query_size[2] = {}; ///< 0: there is no second query.
    std::uint32_t end[2] = {};        ///< Into the ends.
};

struct Tile {
    std::uint32_t first_pack = 0;
    std::uint32_t packs = 0;   ///< At most warp_size / threads.
    std::uint32_t threads = 2; ///< Of one pack: 2 to 32.
    std::uint32_t rows = 0;    ///< The longest target of its packs.
};

/// Where a pair's bases are. Pairs are numbered as their ends.
struct Pair {
    std::uint32_t query_at = 0;
    std::uint32_t target_at = 0;
};

/// What the kernels find for a pair; in a local alignment of score 0 all of it is 0.
struct End {
    std::int32_t score = 0; ///< Of reduced scores.
    std::int32_t query_end = 0;
    std::int32_t target_end = 0;
    std::int32_t target_begin = 0; ///< Of the path if it has no gap; -1: it has one.
};

/// Scores divided by their greatest common divisor.
struct ReducedScores {
    std::int32_t match = 0, mismatch = 0, unknown = 0, gap_open = 0, gap_extend = 0;
    std::int32_t divisor = 1;
};

/// All that a kernel is told.
struct Work {
    const std::uint8_t* bases = nullptr;
    const Pack* packs = nullptr;
    const Tile* tiles = nullptr;
    const Pair* pairs = nullptr;
    End* ends = nullptr;
    std::uint32_t count = 0; ///< Tiles of the sweep, pairs of the walk.
    /// 2 to the power of column_bits (sweep.hpp). A constant that the compiler must not know, or it would shift, and
    /// shifts use the pipe that limits the kernel, as multiplications do not.
    std::uint32_t rank_scale = 0;
    ReducedScores scores;
    /// What a cell adds to its diagonal, by the target's base: bytes by the query's base.
    std::uint32_t rows[8][2] = {};
};

} // namespace spillway::gpu
