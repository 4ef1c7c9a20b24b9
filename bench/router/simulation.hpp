// A pipeline in virtual time: workers that make tiles and align them, and devices that take tiles through staging.
//
//     World world;
//     world.tiles = 20000;
//     world.at = [](double second) { return Conditions{.workers = second < 10 ? 8U : 2U}; };
//     Outcome outcome = simulate(world, Policy::router);
//
// It stands for the core where it calls the router: a feeder asks when tiles were published or staging came free, and
// takes what is there; workers take downstream first. No clock and no threads, so equal worlds have equal outcomes.
#pragma once

#include "spillway/router.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace simulation {

enum class Policy { cpu_alone, device_alone, both, router };

/// What may change over time. Times in ms.
struct Conditions {
    std::size_t workers = 8;
    double make = 5;         ///< Of a worker, to make one tile.
    double align = 10;       ///< Of a worker, to align one tile.
    double interval = 0;     ///< Between arrivals of what a tile is made of; 0: all of it is there.
    double device_fixed = 1; ///< Of each run on the device.
    double device_tile = 1;  ///< Of each tile in a run.
    std::size_t burst = 1;   ///< Tiles' worth that arrives at once, after as many intervals.
};

struct World {
    std::size_t tiles = 10000;
    std::function<Conditions(double second)> at = [](double) { return Conditions{}; };
    double pack = 0.02, copy = 0.02, unpack = 0.02; ///< ms a tile.
    std::vector<double> devices = {1};              ///< Of each, how many times device_fixed and device_tile it takes.
    std::size_t feeders = 1;  ///< Of each device. Each packs and unpacks, and asks the router, on its own.
    std::size_t stagings = 3; ///< Of each feeder.
    std::size_t staging_tiles = 64;
    std::size_t window = 256; ///< Tiles made and not yet aligned, at most.
    /// The fault of the n-th batch (from 1), if it has one.
    std::function<std::optional<spillway::DeviceFault>(std::uint64_t)> fault = {};
    spillway::RouterOptions options = {};
};

/// Tiles done by each side in one slice of time.
struct Share {
    std::size_t cpu = 0, device = 0;
};

/// How often one feeder's decisions change.
struct Changes {
    std::uint64_t flips = 0; ///< Decisions with another side than the one before, exceptions (trials, ...) left out.
    std::uint64_t most_flips_in_64 = 0, most_switches_in_64 = 0; ///< Of any 64 consecutive decisions.
};

struct Outcome {
    double seconds = 0;
    std::vector<std::uint8_t> times_done; ///< By tile.
    std::vector<Share> shares;            ///< By second.
    std::size_t on_cpu = 0, on_device = 0;
    std::vector<Changes> changes;  ///< By feeder, the first device's first.
    spillway::RouterReport report; ///< Its devices are the feeders, in the same order.
};

inline constexpr std::size_t tile_cells = 1024;

Outcome simulate(const World& world, Policy policy);

} // namespace simulation
