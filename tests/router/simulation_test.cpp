#include "router/simulation.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

using namespace simulation;
using spillway::DeviceFault;

namespace {

struct Curve {
    std::string name;
    double fixed, tile; // ms
};

// A tile takes one of eight workers 5 ms to make and 10 ms to align.
const std::vector<Curve> curves = {
    {"a twentieth of a worker", 5, 200},
    {"a quarter of a worker", 5, 40},
    {"one worker", 1, 10},
    {"four workers", 1, 2.5},
    {"twenty workers", 1, 0.5},
    {"a hundred workers", 1, 0.1},
    {"a hundred workers, slow to start", 20, 0.1},
};

World world_of(const Conditions& conditions, std::size_t tiles) {
    World world;
    world.tiles = tiles;
    world.at = [conditions](double) { return conditions; };
    return world;
}

Conditions with(const Curve& curve) {
    Conditions conditions;
    conditions.device_fixed = curve.fixed;
    conditions.device_tile = curve.tile;
    return conditions;
}

bool each_once(const Outcome& outcome) {
    return std::all_of(outcome.times_done.begin(), outcome.times_done.end(), [](auto times) { return times == 1; });
}

std::uint64_t count(const Outcome& outcome, spillway::Why why) {
    return outcome.report.devices[0].by_why[static_cast<std::size_t>(why)];
}

void check_steady(const Outcome& outcome) {
    const spillway::DeviceReport& device = outcome.report.devices[0];
    CHECK(device.switches <= device.decisions / 64 + 1);
    // Of choices seen from outside: a refusal near the end of known work may follow a switch within the hold, and is
    // paid for with the rest of it.
    CHECK(outcome.flips <= device.decisions / 64 + 2);
    CHECK(outcome.most_flips_in_64 <= 2);
    CHECK(count(outcome, spillway::Why::exploration) * 50 <= device.decisions);
    CHECK(count(outcome, spillway::Why::trial) <= 10 * 8); // ten for each size from 1 to 64 tiles, and some overlap
}

struct Phase {
    double seconds;
    Conditions conditions;
};

Conditions at(const std::vector<Phase>& phases, double second) {
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
double seconds_of_oracle(const std::vector<Phase>& phases, double tiles, double staging_tiles) {
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

Conditions conditions(std::size_t workers, double make, double align, double fixed, double tile, double interval = 0) {
    return {workers, make, align, interval, fixed, tile};
}

} // namespace

TEST_CASE("the simulation's fixed choices take the time that arithmetic says") {
    const World world = world_of(with({"", 1, 1}), 8000);
    CHECK(simulate(world, Policy::cpu_alone).seconds == Approx(8000 * 15.0 / 8 / 1000).epsilon(0.01));
    CHECK(simulate(world, Policy::device_alone).seconds == Approx(8000 * (1 + 1.0 / 64) / 1000).epsilon(0.02));
    CHECK(each_once(simulate(world, Policy::both)));
}

TEST_CASE("at every constant load and with every device the router is within 5% of the best fixed choice, and steady") {
    for (const Curve& curve : curves) {
        for (const double load : {0.3, 0.7, 0.95, 1.2, 2.0, 5.0, 0.0}) { // of what the CPUs can do; 0: all is there
            CAPTURE(curve.name, load);
            Conditions constant = with(curve);
            constant.interval = load == 0 ? 0 : (constant.make + constant.align) / 8 / load;
            const World world = world_of(constant, 20000);
            double best = simulate(world, Policy::cpu_alone).seconds;
            for (const Policy policy : {Policy::device_alone, Policy::both})
                best = std::min(best, simulate(world, policy).seconds);
            const Outcome outcome = simulate(world, Policy::router);
            CHECK(outcome.seconds <= 1.05 * best);
            CHECK(each_once(outcome));
            check_steady(outcome);
        }
    }
}

TEST_CASE("at low load nothing goes to the device") {
    for (const Curve& curve : curves) {
        Conditions constant = with(curve);
        constant.interval = (constant.make + constant.align) / 8 / 0.5;
        CHECK(simulate(world_of(constant, 5000), Policy::router).on_device == 0);
    }
}

TEST_CASE("under steps of load and speed the router is within 10% of an oracle, and steady") {
    const auto device_steps = [](double seconds, double times) {
        return std::vector<Phase>{{seconds, conditions(8, 5, 10, 1, 0.5)},
                                  {seconds, conditions(8, 5, 10, times, 0.5 * times)}};
    };
    const std::vector<std::pair<std::string, std::vector<Phase>>> cases = {
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
    for (const auto& [name, phases] : cases) {
        CAPTURE(name);
        World world;
        world.tiles = 20000;
        world.at = [&, &steps = phases](double second) { return at(steps, second); };
        const Outcome outcome = simulate(world, Policy::router);
        CHECK(outcome.seconds <= 1.10 * seconds_of_oracle(phases, 20000, static_cast<double>(world.staging_tiles)));
        CHECK(each_once(outcome));
        check_steady(outcome);
    }
}

TEST_CASE("with a device failing at every k-th batch all tiles are done once, in the time the CPUs would need") {
    const double alone = simulate(world_of(with({"", 1, 1}), 4000), Policy::cpu_alone).seconds;
    for (const DeviceFault fault :
         {DeviceFault::out_of_memory, DeviceFault::launch_failed, DeviceFault::lost, DeviceFault::no_driver}) {
        for (const std::uint64_t k : {1U, 2U, 3U, 5U, 7U, 16U, 17U, 40U}) {
            CAPTURE(to_string(fault), k);
            World world = world_of(with({"", 1, 1}), 4000);
            world.fault = [=](std::uint64_t n) { return n % k == 0 ? std::optional(fault) : std::nullopt; };
            const Outcome outcome = simulate(world, Policy::router);
            CHECK(each_once(outcome));
            CHECK(outcome.on_cpu + outcome.on_device == 4000);
            CHECK(outcome.seconds <= 1.02 * alone);
            CHECK(outcome.report.devices[0].failures[static_cast<std::size_t>(fault)] > 0);
            if (k == 1) CHECK(outcome.on_device == 0);
        }
    }
}

TEST_CASE("a device that comes back is used again") {
    World world = world_of(with({"", 1, 0.5}), 20000);
    world.fault = [](std::uint64_t n) { return n == 100 ? std::optional(DeviceFault::lost) : std::nullopt; };
    const Outcome outcome = simulate(world, Policy::router);
    CHECK(each_once(outcome));
    CHECK(outcome.report.devices[0].times_down == 1);
    CHECK(outcome.on_device > 15000);
}

TEST_CASE("with saturated CPUs, a long queue and a fast or slow device neither side starves in any second") {
    for (const Curve& curve : {Curve{"fast", 1, 0.5}, Curve{"even", 1, 1.25}, Curve{"slow", 1, 10}}) {
        CAPTURE(curve.name);
        Conditions constant = with(curve);
        constant.make = 0.05; // workers have next to nothing else to do
        const Outcome outcome = simulate(world_of(constant, 30000), Policy::router);
        REQUIRE(outcome.shares.size() > 5);
        for (std::size_t second = 1; second + 2 < outcome.shares.size(); ++second) {
            CAPTURE(second);
            CHECK(outcome.shares[second].cpu > 700); // of the 800 that eight workers can do
            CHECK(outcome.shares[second].device > 0);
        }
        const double full_speed = 1000 / (curve.tile + curve.fixed / 64);
        CHECK(static_cast<double>(outcome.on_device) > 0.9 * full_speed * outcome.seconds);
    }
}

TEST_CASE("equal worlds have equal outcomes") {
    const World world = world_of(with(curves[4]), 3000);
    const Outcome a = simulate(world, Policy::router), b = simulate(world, Policy::router);
    CHECK(a.seconds == b.seconds);
    CHECK(a.on_device == b.on_device);
    CHECK(to_string(a.report) == to_string(b.report));
}
