#include "spillway/error.hpp"
#include "spillway/router.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

using namespace spillway;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

// Tiles of 100 cells at 1000 ns a cell on a CPU: one tile takes a worker 100 us.
constexpr std::size_t tile = 100;
constexpr auto cpu_tile = 100us;

RouterOptions options_with_tiles() {
    RouterOptions options;
    options.tile_cells = tile;
    return options;
}

void measure_cpu(Router& router) {
    for (int i = 0; i < 10; ++i) router.record_cpu(tile, cpu_tile);
}

void measure_device(Router& router, nanoseconds a_tile, std::size_t cells = tile, int times = 10) {
    for (int i = 0; i < times; ++i) router.record_device(cells, {.run = a_tile * static_cast<int>(cells / tile)});
}

// One tile on four workers, 100 tiles known to remain: 2.5 ms for the CPUs.
Load load_of(double busy, std::size_t remaining = 100 * tile) {
    Load load;
    load.busy = busy;
    load.batch_cells = tile;
    load.workers = 4;
    load.cells_remaining = remaining;
    return load;
}

constexpr Choice cpu(Why why) {
    return {Side::cpu, why};
}
constexpr Choice device(Why why) {
    return {Side::device, why};
}

// A router whose device is in use, `decisions` after the switch.
void put_on_device(Router& router, nanoseconds a_tile, int decisions = 0) {
    measure_cpu(router);
    measure_device(router, a_tile);
    REQUIRE(router.decide(load_of(0.9)) == device(Why::switched));
    for (int i = 0; i < decisions; ++i) router.decide(load_of(0.9));
}

} // namespace

namespace spillway {
std::ostream& operator<<(std::ostream& out, const Choice& choice) {
    return out << (choice.side == Side::cpu ? "cpu, " : "device, ") << to_string(choice.why);
}
} // namespace spillway

TEST_CASE("below the low threshold the CPU does it alone, however fast the device is") {
    Router router(options_with_tiles());
    measure_cpu(router);
    measure_device(router, 1us);
    CHECK(router.decide(load_of(0.0)) == cpu(Why::low_load));
    CHECK(router.decide(load_of(0.59)) == cpu(Why::low_load));
}

TEST_CASE("between the thresholds the side stays as it is") {
    Router on_cpu(options_with_tiles());
    measure_cpu(on_cpu);
    measure_device(on_cpu, 1us);
    CHECK(on_cpu.decide(load_of(0.61)) == cpu(Why::kept));
    CHECK(on_cpu.decide(load_of(0.85)) == cpu(Why::kept));
    Router on_device(options_with_tiles());
    put_on_device(on_device, 1us, 64);
    CHECK(on_device.decide(load_of(0.61)) == device(Why::kept));
    CHECK(on_device.decide(load_of(0.85)) == device(Why::kept));
}

TEST_CASE("above the high threshold the device takes over where it costs less than 0.8 of the CPUs' time for all") {
    Router dear(options_with_tiles());
    measure_cpu(dear);
    measure_device(dear, 2010us); // 0.8 of 2500 us is 2000 us
    CHECK(dear.decide(load_of(0.86)) == cpu(Why::kept));
    CHECK(dear.side() == Side::cpu);
    Router cheap(options_with_tiles());
    measure_cpu(cheap);
    measure_device(cheap, 1990us);
    CHECK(cheap.decide(load_of(0.86)) == device(Why::switched));
    CHECK(cheap.side() == Side::device);
}

TEST_CASE("what is in flight on the device counts against it") {
    Router router(options_with_tiles());
    measure_cpu(router);
    measure_device(router, 600us);
    Load load = load_of(0.9);
    load.cells_in_flight = 3 * tile;
    CHECK(router.decide(load) == cpu(Why::kept)); // 4 times 600 us
    load.cells_in_flight = 1 * tile;
    load.cells_of_others = 2 * tile;
    CHECK(router.decide(load) == cpu(Why::kept)); // whoever gave it
    load.cells_of_others = 1 * tile;
    CHECK(router.decide(load) == device(Why::switched)); // 3 times
}

TEST_CASE("one that shares a device with others is measured while they keep it busy") {
    Router router(options_with_tiles());
    measure_cpu(router);
    Load load = load_of(0.9);
    load.cells_of_others = 50 * tile;
    CHECK(router.decide(load) == device(Why::trial));
}

TEST_CASE("the parts of a device's time are added up") {
    Router router(options_with_tiles());
    router.record_device(tile, {.pack = 1us, .copy = 20us, .run = 300us, .unpack = 4000us});
    CHECK(router.expected_on_device(tile) == 4321us);
    CHECK(router.expected_on_device(2 * tile) == 8642us);
    CHECK_FALSE(router.expected_on_cpu(tile));
    measure_cpu(router);
    CHECK(router.expected_on_cpu(3 * tile) == 3 * cpu_tile);
}

TEST_CASE("one tile does not occupy all workers") {
    Router router(options_with_tiles());
    measure_cpu(router);
    measure_device(router, 70us);
    // Alone it takes a worker 100 us, not a quarter of it: 70 us is below 0.8 of it.
    CHECK(router.decide(load_of(0.9, tile)) == device(Why::switched));
}

TEST_CASE("a switch holds for 64 decisions, whatever the load does") {
    Router router(options_with_tiles());
    put_on_device(router, 60us);
    for (int i = 1; i < 64; ++i) {
        CAPTURE(i);
        // Two tiles on idle CPUs: 100 us for both against 60 us and what is in flight.
        Load load = load_of(0.1);
        load.cells_in_flight = 4 * tile;
        REQUIRE(router.decide(load) == device(Why::kept));
    }
    Load load = load_of(0.1);
    load.cells_in_flight = 4 * tile;
    CHECK(router.decide(load) == cpu(Why::switched));
    for (int i = 1; i < 64; ++i) REQUIRE(router.decide(load_of(0.9)).why != Why::switched);
    CHECK(router.decide(load_of(0.9)) == device(Why::switched));
    CHECK(router.report().devices[0].switches == 3);
}

TEST_CASE("at low load the device keeps what it does unless the CPU is cheaper by a fifth") {
    Router router(options_with_tiles());
    put_on_device(router, 120us, 64);
    CHECK(router.decide(load_of(0.1)) == device(Why::kept)); // 100 against 0.8 of 120
    measure_device(router, 130us, tile, 100);
    CHECK(router.decide(load_of(0.1)) == cpu(Why::switched)); // 0.8 of 130 is 104
}

TEST_CASE("at low load the CPUs would have to do what is ahead as well") {
    Router router(options_with_tiles());
    put_on_device(router, 490us, 64);
    Load load = load_of(0.1);
    load.cells_ahead = 15 * tile; // 400 us for four workers, against 0.8 of 490
    CHECK(router.decide(load) == device(Why::kept));
    load.cells_ahead = 14 * tile; // 375 us
    CHECK(router.decide(load) == cpu(Why::switched));
}

TEST_CASE("near the end of all work a slow device is refused, and stays so for the rest of the hold") {
    Router router(options_with_tiles());
    put_on_device(router, 1500us);
    CHECK(router.decide(load_of(0.9, 50 * tile)) == device(Why::kept)); // 1250 us is not below 0.8 of 1500
    CHECK(router.decide(load_of(0.9, 40 * tile)) == cpu(Why::last_cells));
    CHECK(router.side() == Side::device);
    for (int i = 3; i < 64; ++i) REQUIRE(router.decide(load_of(0.9)) == cpu(Why::last_cells));
    CHECK(router.decide(load_of(0.9)) == cpu(Why::switched));
}

TEST_CASE("a device that was never measured is tried under load only, one batch at a time, first with one tile") {
    Router router(options_with_tiles());
    measure_cpu(router);
    CHECK(router.decide(load_of(0.7)) == cpu(Why::unknown));
    CHECK(router.batch_cells(64 * tile) == tile);
    CHECK(router.decide(load_of(0.9)) == device(Why::trial));
    Load another = load_of(0.9);
    another.cells_in_flight = tile;
    CHECK(router.decide(another) == cpu(Why::unknown));
}

TEST_CASE("batches grow as larger ones have been measured") {
    Router router(options_with_tiles());
    measure_device(router, 10us, tile, 1);
    CHECK(router.batch_cells(64 * tile) == 256); // 100 cells lie in 64 to 127
    measure_device(router, 10us, 2 * tile, 1);
    CHECK(router.batch_cells(64 * tile) == 512);
    measure_device(router, 10us, 64 * tile, 1);
    CHECK(router.batch_cells(64 * tile) == 64 * tile);
}

TEST_CASE("the side does not change by a size of which fewer than ten batches were measured") {
    Router router(options_with_tiles());
    measure_cpu(router);
    measure_device(router, 10us, tile, 9);
    CHECK(router.decide(load_of(0.9)) == device(Why::trial));
    CHECK(router.side() == Side::cpu);
    measure_device(router, 10us, tile, 1);
    CHECK(router.decide(load_of(0.9)) == device(Why::switched));
}

TEST_CASE("without a measured CPU form there is nothing to compare with") {
    Router router(options_with_tiles());
    measure_device(router, 10us);
    CHECK(router.decide(load_of(1)) == cpu(Why::unknown));
}

TEST_CASE("a device that is not in use is explored with one decision in fifty, where it cannot keep others waiting") {
    Router router(options_with_tiles());
    measure_cpu(router);
    measure_device(router, 2200us);
    std::vector<int> explored;
    for (int i = 1; i <= 500; ++i) {
        if (router.decide(load_of(0.9)).why == Why::exploration) explored.push_back(i);
    }
    CHECK(explored == std::vector<int>{50, 100, 150, 200, 250, 300, 350, 400, 450, 500});
    for (int i = 0; i < 500; ++i) REQUIRE(router.decide(load_of(0.9, 80 * tile)).side == Side::cpu); // 2000 us remain
    Load working = load_of(0.9, 1000 * tile);
    working.busy = 0.8;
    working.cells_in_flight = tile;
    CHECK(router.decide(working) == cpu(Why::kept)); // due, but one batch at a time
    working.cells_in_flight = 0;
    CHECK(router.decide(working) == device(Why::exploration));
    RouterOptions never = options_with_tiles();
    never.exploration = 0;
    Router without(never);
    measure_cpu(without);
    measure_device(without, 2200us);
    for (int i = 0; i < 500; ++i) REQUIRE(without.decide(load_of(0.9)).side == Side::cpu);
}

TEST_CASE("an average that was wrong is found out by exploring") {
    Router router(options_with_tiles());
    measure_cpu(router);
    measure_device(router, 2200us);
    int decisions = 0;
    while (router.side() == Side::cpu && decisions < 10000) {
        ++decisions;
        if (router.decide(load_of(0.9)).side == Side::device) measure_device(router, 100us, tile, 1);
    }
    CHECK(decisions == 251); // each sample counts as 2/3 of the average: the fifth, at 250, brings 2200 to 1980
}

TEST_CASE("off means off") {
    RouterOptions options = options_with_tiles();
    options.gpu = Gpu::off;
    Router router(options);
    measure_cpu(router);
    measure_device(router, 1us);
    CHECK(router.decide(load_of(1)) == cpu(Why::off));
    Router none(options_with_tiles(), 0);
    CHECK(none.decide(load_of(1)) == cpu(Why::off));
    CHECK(none.down());
    CHECK(none.cells_worker_may_take({1000, 500, 0}, false) == 1000);
}

TEST_CASE("each failure halves the batch down to one tile, and successes in a row undo it") {
    Router router(options_with_tiles());
    measure_device(router, 10us, 64 * tile, 1);
    measure_cpu(router);
    Load load = load_of(0.9);
    std::vector<std::size_t> sizes;
    for (int i = 0; i < 7; ++i) {
        load.batch_cells = router.batch_cells(64 * tile);
        router.decide(load);
        router.device_failed(DeviceFault::out_of_memory, 0ns);
        sizes.push_back(router.batch_cells(64 * tile));
    }
    CHECK(sizes[0] == 32 * tile);
    CHECK(sizes[1] == 16 * tile);
    CHECK(sizes[5] == tile);
    CHECK(sizes[6] == tile);
    CHECK_FALSE(router.down()); // once with one tile
    for (int i = 0; i < 15; ++i) router.device_ok();
    CHECK(router.batch_cells(64 * tile) == tile);
    router.device_failed(DeviceFault::launch_failed, 0ns); // begins anew
    for (int i = 0; i < 15; ++i) router.device_ok();
    CHECK(router.batch_cells(64 * tile) == tile);
    router.device_ok();
    CHECK(router.batch_cells(64 * tile) == 2 * tile);
    for (int i = 0; i < 16 * 64; ++i) router.device_ok();
    CHECK(router.batch_cells(64 * tile) == 64 * tile);
    CHECK(router.report().devices[0].failures[static_cast<std::size_t>(DeviceFault::out_of_memory)] == 7);
}

TEST_CASE("running out of memory with the smallest batch takes the device down at the third time") {
    Router router(options_with_tiles());
    measure_cpu(router);
    for (int i = 0; i < 3; ++i) {
        CHECK_FALSE(router.down());
        CHECK(router.decide(load_of(0.9)) == device(Why::trial));
        router.device_failed(DeviceFault::out_of_memory, 0ns);
    }
    CHECK(router.down());
}

TEST_CASE("a lost device is down at once, then half-open with one batch at a time, then up") {
    Router router(options_with_tiles());
    put_on_device(router, 10us);
    router.device_failed(DeviceFault::lost, 5s);
    CHECK(router.down());
    CHECK(router.side() == Side::cpu);
    Load load = load_of(0.9);
    load.now = 5999ms;
    CHECK(router.decide(load) == cpu(Why::down));
    load.now = 6s;
    CHECK(router.decide(load) == device(Why::half_open));
    load.cells_in_flight = tile;
    CHECK(router.decide(load) == cpu(Why::down));
    router.device_ok();
    load.cells_in_flight = 0;
    CHECK(router.decide(load) == device(Why::switched)); // its rates are known
    CHECK(router.report().devices[0].times_down == 1);
}

TEST_CASE("retries come at doubled distances up to the longest, and at the first again when all is well") {
    Router router(options_with_tiles());
    put_on_device(router, 10us);
    nanoseconds now = 0ns;
    router.device_failed(DeviceFault::lost, now);
    for (const nanoseconds wait : {1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s}) {
        Load load = load_of(0.9);
        load.now = now + wait - 1ns;
        REQUIRE(router.decide(load) == cpu(Why::down));
        load.now = now + wait;
        REQUIRE(router.decide(load) == device(Why::half_open));
        now = load.now;
        router.device_failed(DeviceFault::launch_failed, now); // one is enough when half-open
    }
    Load load = load_of(0.9);
    load.now = now + 60s;
    REQUIRE(router.decide(load) == device(Why::half_open));
    for (int i = 0; i < 16; ++i) router.device_ok();
    router.device_failed(DeviceFault::lost, load.now);
    load.now += 1s;
    CHECK(router.decide(load) == device(Why::half_open));
}

TEST_CASE("three failed launches in a row take the device down, one among successes does not") {
    Router router(options_with_tiles());
    put_on_device(router, 10us);
    for (int i = 0; i < 10; ++i) {
        router.device_failed(DeviceFault::launch_failed, 0ns);
        router.device_failed(DeviceFault::launch_failed, 0ns);
        router.device_ok();
        REQUIRE_FALSE(router.down());
    }
    for (int i = 0; i < 3; ++i) router.device_failed(DeviceFault::launch_failed, 0ns);
    CHECK(router.down());
}

TEST_CASE("without a driver there is no retry") {
    Router router(options_with_tiles());
    put_on_device(router, 10us);
    router.device_failed(DeviceFault::no_driver, 0ns);
    Load load = load_of(0.9);
    load.now = std::chrono::hours(1000);
    CHECK(router.decide(load) == cpu(Why::down));
    CHECK(router.report().devices[0].down);
}

TEST_CASE("the feeder leaves a tile for each worker that has nothing else") {
    Router router(options_with_tiles());
    measure_cpu(router);
    measure_device(router, 1us, 64 * tile, 1);
    CHECK(router.cells_device_may_take({64 * tile, 16 * tile, 0}) == 16 * tile);
    CHECK(router.cells_device_may_take({10 * tile, 16 * tile, 0}) == 10 * tile);
    CHECK(router.cells_device_may_take({10 * tile, 16 * tile, 4}) == 6 * tile);
    CHECK(router.cells_device_may_take({4 * tile, 16 * tile, 4}) == 0);
    CHECK(router.cells_device_may_take({4 * tile + 50, 16 * tile, 4}) == 50);
    CHECK(router.cells_device_may_take({3 * tile, 16 * tile, 4}) == 0);
    CHECK(router.cells_device_may_take({SIZE_MAX, 16 * tile, SIZE_MAX}) == 0);
    Load load = load_of(0.9);
    load.batch_cells = 16 * tile;
    REQUIRE(router.decide(load).side == Side::device);
    router.device_failed(DeviceFault::out_of_memory, 0ns);
    CHECK(router.cells_device_may_take({64 * tile, 16 * tile, 0}) == 8 * tile);
}

TEST_CASE("workers take all while no device does, and else whole tiles beyond what staging holds") {
    Router router(options_with_tiles());
    CHECK(router.cells_worker_may_take({1050, 400, 0}, false) == 1050);
    put_on_device(router, 10us);
    CHECK(router.cells_worker_may_take({1050, 400, 0}, false) == 600);
    CHECK(router.cells_worker_may_take({400, 400, 0}, false) == 0);
    CHECK(router.cells_worker_may_take({300, 400, 0}, false) == 0);
    CHECK(router.cells_worker_may_take({300, 400, 0}, true) == tile);
    CHECK(router.cells_worker_may_take({30, 400, 0}, true) == 30);
    CHECK(router.cells_worker_may_take({1050, 400, 0}, true) == 600);
    router.device_failed(DeviceFault::lost, 0ns);
    CHECK(router.cells_worker_may_take({300, 400, 0}, false) == 300);
}

TEST_CASE("while there is a tile and a worker with nothing else, feeder and worker do not both leave it") {
    Router router(options_with_tiles());
    put_on_device(router, 10us);
    for (std::size_t tiles = 1; tiles < 40; ++tiles) {
        for (std::size_t idle = 0; idle < 10; ++idle) {
            const Waiting waiting{tiles * tile, 16 * tile, idle};
            const std::size_t of_device = router.cells_device_may_take(waiting);
            const std::size_t of_worker = idle > 0 ? router.cells_worker_may_take(waiting, true) : 0;
            REQUIRE(of_device + of_worker > 0);
            REQUIRE(of_device + std::min(idle, tiles) * tile <= waiting.cells);
        }
    }
}

TEST_CASE("several devices are measured and taken down each on its own") {
    Router router(options_with_tiles(), 2);
    measure_cpu(router);
    for (int i = 0; i < 10; ++i) router.record_device(tile, {.run = 10us}, 1);
    CHECK(router.decide(load_of(0.9), 0) == device(Why::trial));
    CHECK(router.decide(load_of(0.9), 1) == device(Why::switched));
    router.device_failed(DeviceFault::lost, 0ns, 0);
    CHECK(router.down(0));
    CHECK_FALSE(router.down(1));
    CHECK(router.cells_worker_may_take({300, 400, 0}, false) == 0);
}

TEST_CASE("an option outside its range is a usage error that names it") {
    const auto message = [](auto change) -> std::string {
        RouterOptions options;
        change(options);
        try {
            Router router(options);
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::usage);
            return error.where();
        }
        return "";
    };
    CHECK(message([](RouterOptions&) {}).empty());
    CHECK(message([](RouterOptions& o) { o.low = -0.1; }) == "low");
    CHECK(message([](RouterOptions& o) { o.high = 0.5; }) == "high");
    CHECK(message([](RouterOptions& o) { o.high = 1.1; }) == "high");
    CHECK(message([](RouterOptions& o) { o.switch_cost = 0; }) == "switch_cost");
    CHECK(message([](RouterOptions& o) { o.hold = 0; }) == "hold");
    CHECK(message([](RouterOptions& o) { o.exploration = 0.6; }) == "exploration");
    CHECK(message([](RouterOptions& o) { o.tile_cells = 0; }) == "tile_cells");
    CHECK(message([](RouterOptions& o) { o.failures_to_down = 0; }) == "failures_to_down");
    CHECK(message([](RouterOptions& o) { o.successes_to_grow = 0; }) == "successes_to_grow");
    CHECK(message([](RouterOptions& o) { o.retry = 0s; }) == "retry");
    CHECK(message([](RouterOptions& o) { o.longest_retry = 1ms; }) == "longest_retry");
    CHECK(message([](RouterOptions& o) { o.low = std::nan(""); }) == "low");
}

TEST_CASE("odd loads get an answer: no cells, no workers, as many cells as can be counted") {
    Router router(options_with_tiles());
    measure_cpu(router);
    measure_device(router, 10us);
    Load load = load_of(0.9);
    load.batch_cells = 0;
    CHECK(router.decide(load) == cpu(Why::unknown));
    load = load_of(0.9);
    load.workers = 0;
    load.cells_ahead = SIZE_MAX;
    load.cells_remaining = SIZE_MAX;
    CHECK(router.decide(load) == device(Why::switched));
    load.cells_in_flight = SIZE_MAX;
    CHECK(router.decide(load) == device(Why::kept));
    load.cells_ahead = load.cells_remaining = 0;
    CHECK(router.decide(load) == cpu(Why::last_cells));
}

TEST_CASE("the load is averaged over a tenth of a second of time, not of updates") {
    LoadAverage load;
    CHECK(load.value() == 0);
    load.update(1h, 8, 8);
    CHECK(load.value() == 0); // busy from now on
    load.update(1h + 100ms, 8, 8);
    CHECK(load.value() == Approx(1 - std::exp(-1)));
    LoadAverage often;
    often.update(1h, 8, 8);
    for (int i = 1; i <= 100; ++i) often.update(1h + i * 1ms, 8, 8);
    CHECK(often.value() == Approx(load.value()));
    load.update(1h + 10s, 2, 8);
    CHECK(load.value() == Approx(1));
    load.update(1h + 20s, 9, 8);
    CHECK(load.value() == Approx(0.25));
    load.update(1h + 19s, 0, 0); // a clock that went back
    CHECK(load.value() == Approx(0.25));
    load.update(1h + 40s, 0, 0);
    CHECK(load.value() == Approx(0).margin(1e-9));
}

TEST_CASE("workers record and ask while the feeder decides") {
    Router router(options_with_tiles());
    constexpr int rounds = 3000;
    std::atomic<bool> over{false};
    std::vector<std::thread> workers;
    for (int i = 0; i < 3; ++i) {
        workers.emplace_back([&] {
            for (int round = 0; round < rounds; ++round) {
                router.record_cpu(tile, cpu_tile);
                const std::size_t may = router.cells_worker_may_take({10 * tile, 4 * tile, 0}, true);
                if (may != 10 * tile && may != 6 * tile) std::abort();
            }
        });
    }
    std::thread reporter([&] {
        std::uint64_t decisions = 0;
        while (!over.load()) {
            const RouterReport report = router.report();
            if (report.devices[0].decisions < decisions) std::abort();
            decisions = report.devices[0].decisions;
        }
    });
    for (int round = 0; round < rounds; ++round) {
        Load load = load_of(0.9);
        load.now = round * 1ms;
        if (router.decide(load).side == Side::cpu) continue;
        if (round % 97 == 0) {
            router.device_failed(DeviceFault::launch_failed, load.now);
        } else {
            router.record_device(tile, {.run = 10us});
            router.device_ok();
        }
    }
    for (std::thread& worker : workers) worker.join();
    over.store(true);
    reporter.join();
    const RouterReport report = router.report();
    CHECK(report.cpu_cells == 3 * rounds * tile);
    CHECK(report.devices[0].decisions == rounds);
    std::uint64_t reasons = 0;
    for (const std::uint64_t count : report.devices[0].by_why) reasons += count;
    CHECK(reasons == rounds);
}

TEST_CASE("the report names what was measured and why") {
    Router router(options_with_tiles());
    put_on_device(router, 10us, 3);
    router.device_failed(DeviceFault::launch_failed, 0ns);
    const std::string text = to_string(router.report());
    CHECK(text.find("CPU: 1000 cells (50.0%) in 10 batches; cells a second: 1e+06 in 2^6 (10)\n") != std::string::npos);
    CHECK(text.find("device 0: 1000 cells (50.0%) in 10 batches; pack 0.000, copy 0.000, run 0.000, unpack 0.000 s; "
                    "cells a second: 1e+07 in 2^6 (10)\n") != std::string::npos);
    CHECK(text.find("4 decisions, 4 for it (") != std::string::npos);
    CHECK(text.find("1 switches, 0 times down; failures: launch failed 1\n") != std::string::npos);
}
