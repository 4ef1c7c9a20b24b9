// Devices, loads and steps of both that the router is tried on, by the tests and by the bench.
//
//     for (const Curve& curve : curves) simulate(world_of(with(curve), 20000), Policy::router);
//     for (const auto& [name, phases] : step_cases()) simulate(world_of(phases, 20000), Policy::router);
#pragma once

#include "simulation.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace simulation {

struct Curve {
    std::string name;
    double fixed, tile; // ms
};

// A tile takes one of eight workers 5 ms to make and 10 ms to align.
inline const std::vector<Curve> curves = {
    {"a twentieth of a worker", 5, 200},
    {"a quarter of a worker", 5, 40},
    {"one worker", 1, 10},
    {"four workers", 1, 2.5},
    {"twenty workers", 1, 0.5},
    {"a hundred workers", 1, 0.1},
    {"a hundred workers, slow to start", 20, 0.1},
};

inline World world_of(const Conditions& conditions, std::size_t tiles) {
    World world;
    world.tiles = tiles;
    world.at = [conditions](double) { return conditions; };
    return world;
}

inline Conditions with(const Curve& curve) {
    Conditions conditions;
    conditions.device_fixed = curve.fixed;
    conditions.device_tile = curve.tile;
    return conditions;
}

/// Phases follow each other, and begin anew after the last.
struct Phase {
    double seconds;
    Conditions conditions;
};

inline Conditions at(const std::vector<Phase>& phases, double second) {
    double cycle = 0;
    for (const Phase& phase : phases) cycle += phase.seconds;
    second -= cycle * static_cast<double>(static_cast<long>(second / cycle));
    for (const Phase& phase : phases) {
        if (second < phase.seconds) return phase.conditions;
        second -= phase.seconds;
    }
    return phases.back().conditions;
}

// No schedule can do better: both sides always busy with the best split of the work, full batches, nothing ever waits.
inline double seconds_of_oracle(const std::vector<Phase>& phases, double tiles, double staging_tiles) {
    constexpr double step = 0.001;
    double arrived = 0, done = 0, second = 0;
    for (; done < tiles; second += step) {
        const Conditions c = at(phases, second);
        const auto workers = static_cast<double>(c.workers);
        const double device = 1 / (c.device_fixed / staging_tiles + c.device_tile);
        const double rate = 1000 * std::min(workers / c.make, (workers + device * c.align) / (c.make + c.align));
        arrived = c.interval > 0 ? std::min(tiles, arrived + 1000 / c.interval * step) : tiles;
        done = std::min(arrived, done + rate * step);
    }
    return second;
}

inline Conditions conditions(std::size_t workers, double make, double align, double fixed, double tile,
                             double interval = 0) {
    return {workers, make, align, interval, fixed, tile, 1};
}

/// Of what the CPUs can do, at and beside the router's thresholds and far from them; 0: all of it is there from the
/// start.
inline const std::vector<double> loads = {0.3, 0.5, 0.6, 0.65, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0, 1.2, 2.0, 5.0, 0.0};

/// Loads that the CPUs can bear come in bursts: what comes tile by tile finds a worker idle, and no device is asked.
inline Conditions with(const Curve& curve, double load) {
    Conditions constant = with(curve);
    if (load == 0) return constant;
    constant.interval = (constant.make + constant.align) / static_cast<double>(constant.workers) / load;
    constant.burst = load <= 1 ? 64 : 1;
    return constant;
}

/// Several feeders for a device, and devices of different speed.
struct Shared {
    std::string name;
    std::vector<double> devices;
    std::size_t feeders;
};
inline const std::vector<Shared> shared = {
    {"4 feeders", {1}, 4},
    {"2 devices, 1 and 4 times, 4 feeders", {1, 4}, 4},
    {"2 devices, 1 and 20 times, 2 feeders", {1, 20}, 2},
};

inline World world_of(std::vector<Phase> phases, std::size_t tiles) {
    World world;
    world.tiles = tiles;
    world.at = [steps = std::move(phases)](double second) { return at(steps, second); };
    return world;
}

/// The least that any fixed choice takes.
inline double best_fixed(const World& world) {
    double best = simulate(world, Policy::cpu_alone).seconds;
    for (const Policy policy : {Policy::device_alone, Policy::both})
        best = std::min(best, simulate(world, policy).seconds);
    return best;
}

inline std::vector<std::pair<std::string, std::vector<Phase>>> step_cases() {
    const auto device_steps = [](double seconds, double times) {
        return std::vector<Phase>{{seconds, conditions(8, 5, 10, 1, 0.5)},
                                  {seconds, conditions(8, 5, 10, times, 0.5 * times)}};
    };
    return {
        {"device 4 times slower", device_steps(4, 4)},
        {"device 20 times slower", device_steps(4, 20)},
        {"device 50 times slower", device_steps(4, 50)},
        {"device 5 times slower, every second", device_steps(1, 5)},
        {"device slow first", {{4, conditions(8, 5, 10, 20, 10)}, {4, conditions(8, 5, 10, 1, 0.5)}}},
        {"workers 8 and 2", {{3, conditions(8, 5, 10, 1, 2.5)}, {3, conditions(2, 5, 10, 1, 2.5)}}},
        {"workers 8 and 2, fast device", {{3, conditions(8, 5, 10, 1, 0.5)}, {3, conditions(2, 5, 10, 1, 0.5)}}},
        {"alignment 1 and 40 ms", {{3, conditions(8, 5, 1, 1, 1)}, {3, conditions(8, 5, 40, 1, 4)}}},
        {"making 0.5 and 20 ms", {{3, conditions(8, 0.5, 10, 1, 1)}, {3, conditions(8, 20, 10, 1, 1)}}},
        {"load 0.3 and 5", {{3, conditions(8, 5, 10, 1, 1, 6.25)}, {3, conditions(8, 5, 10, 1, 1, 0.375)}}},
        {"load 0.3 and 2, every second",
         {{1, conditions(8, 5, 10, 1, 1, 6.25)}, {1, conditions(8, 5, 10, 1, 1, 0.9375)}}},
    };
}

} // namespace simulation
