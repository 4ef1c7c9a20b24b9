// A batch of pairs in staging, as the kernels take it.
//
//     Packing packing(fit);
//     for (...) if (!packing.add(query, target)) ...              // that one is for the CPU
//     const Layout layout = packing.write(staging.host());
//     ... layout.launch(staging.device()), then of(staging.host()) ...
//
//     | Layout | bases | packs | tiles | pairs | ends |
//
// The Layout lies in the staging itself, so that whoever unpacks needs nothing else. Ends are in the order of add().
#pragma once

#include "gpu/fit.hpp"
#include "gpu/kernels.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace spillway::gpu {

struct Layout {
    std::uint64_t packs_at = 0, tiles_at = 0, pairs_at = 0, ends_at = 0, size = 0; ///< Bytes from the begin.
    std::uint64_t cells = 0;                                                       ///< Of the matrices of all pairs.
    Launch launch;                                                                 ///< Its addresses are to be set.

    /// The launch for this layout at `memory`.
    [[nodiscard]] Launch at(std::byte* memory) const;
    [[nodiscard]] std::span<const End> ends(std::span<const std::byte> host) const;
    [[nodiscard]] static const Layout& of(std::span<const std::byte> host);
};

class Packing {
public:
    explicit Packing(const Fit& fit) : fit_(fit) {}

    /// Staging that a batch takes beside its pairs, that a target takes, and that a pair takes, at most.
    [[nodiscard]] static std::size_t header_bytes() noexcept;
    [[nodiscard]] static std::size_t bytes_of_target(std::size_t size) noexcept;
    [[nodiscard]] static std::size_t bytes_of_pair(std::size_t query_size) noexcept;

    /// What follows is added to this one. A target that was there before, in the same memory, is the same one. The views
    /// must live until write().
    void next_target(std::string_view target);
    /// Whether the pair is for the device. After a next_target().
    bool add(std::string_view query);
    /// Throws Error(usage) where `host` is too small: header_bytes and the sum of what was added would have been
    /// enough.
    const Layout& write(std::span<std::byte> host);

private:
    struct Target {
        std::string_view bases;
        std::uint32_t at = 0;
        bool used = false;
    };
    struct Query {
        std::string_view bases;
        std::uint32_t at = 0;
        std::uint32_t target = 0;
    };
    /// Up to two queries of one target and tiling.
    struct Group {
        std::uint64_t order; ///< Shape, threads, rows: those of one tile lie together.
        std::uint32_t first, second;
    };
    static constexpr std::uint32_t none = 0xFFFFFFFF;

    void flush();
    std::uint32_t& number_of(std::string_view target);
    void grow_numbers();

    const Fit& fit_;
    std::vector<Target> targets_;
    std::uint32_t present_ = 0; // in targets_
    /// A hash table of targets, by where they lie: to compare bases would cost as much as to write them. Its size is a
    /// power of two, and half of it at most is in use.
    std::vector<std::uint32_t> numbers_;
    std::vector<Query> queries_;
    std::vector<Group> groups_;
    /// Of the present target: the query that waits for a second, by shape and threads.
    std::vector<std::uint32_t> waiting_ = std::vector<std::uint32_t>(shape_count * (warp_size + 1), none);
    std::vector<std::uint32_t> waiting_used_;
    std::uint64_t bases_ = 0, cells_ = 0;
};

} // namespace spillway::gpu
