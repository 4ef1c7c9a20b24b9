// Shows what the router decides: in virtual time, against the best fixed choice at constant load, against an oracle
// under steps, and with a device that fails. The scenarios are the tests', which hold the router to the limits printed
// here.
//
//     spillway-bench-router            exit 1 where a limit is broken
#include "scenarios.hpp"
#include "simulation.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace simulation;

constexpr std::size_t tiles = 20000;

/// Shares over time are shown in so many slices of the run.
constexpr std::size_t slices = 8;

bool broken = false;

const char* verdict(bool holds) {
    if (!holds) broken = true;
    return holds ? "" : "  <- BROKEN";
}

/// "0 13 50 .." : per cent of the tiles that the device did, by slices of the run.
std::string shares(const Outcome& outcome) {
    std::string text;
    const std::size_t seconds = outcome.shares.size();
    const std::size_t shown = std::min(slices, seconds);
    for (std::size_t slice = 0; slice < shown; ++slice) {
        Share sum;
        for (std::size_t i = slice * seconds / shown; i < (slice + 1) * seconds / shown; ++i) {
            sum.cpu += outcome.shares[i].cpu;
            sum.device += outcome.shares[i].device;
        }
        const std::size_t all = sum.cpu + sum.device;
        char cell[8];
        std::snprintf(cell, sizeof cell, "%4zu", all == 0 ? 0 : (100 * sum.device + all / 2) / all);
        text += cell;
    }
    return text;
}

std::uint64_t most_flips_in_64(const Outcome& outcome) {
    std::uint64_t most = 0;
    for (const Changes& changes : outcome.changes) most = std::max(most, changes.most_flips_in_64);
    return most;
}

bool steady(const Outcome& outcome) {
    return std::all_of(outcome.changes.begin(), outcome.changes.end(), [](const Changes& changes) {
        return changes.most_switches_in_64 <= 1 && changes.most_flips_in_64 <= 2;
    });
}

bool each_once(const Outcome& outcome) {
    return std::all_of(outcome.times_done.begin(), outcome.times_done.end(), [](auto times) { return times == 1; });
}

void print_row(std::string_view name, std::string_view load, double other, double limit, const Outcome& outcome) {
    const spillway::DeviceReport device = spillway::joined(outcome.report.devices);
    const double ratio = outcome.seconds / other;
    std::printf("%-34.*s %5.*s %9.2f %9.2f %6.3f %7llu %8llu %6llu  %-*s%s%s%s\n", static_cast<int>(name.size()),
                name.data(), static_cast<int>(load.size()), load.data(), other, outcome.seconds, ratio,
                static_cast<unsigned long long>(device.decisions), static_cast<unsigned long long>(device.switches),
                static_cast<unsigned long long>(most_flips_in_64(outcome)), static_cast<int>(4 * slices),
                shares(outcome).c_str(), verdict(ratio <= limit), verdict(steady(outcome)),
                verdict(each_once(outcome)));
}

void print_head(const char* title, const char* other) {
    std::printf("\n%s\n%-34s %5s %9s %9s %6s %7s %8s %6s  %s\n", title, "device", "load", other, "router s", "ratio",
                "choices", "switches", "in 64", "device's share of the tiles over the run, %");
}

std::string text(double load) {
    if (load == 0) return "all";
    char number[8];
    std::snprintf(number, sizeof number, "%.2f", load);
    return number;
}

} // namespace

int main() {
    std::printf(
        "%zu tiles; 8 workers take 5 ms to make and 10 ms to align one; load is arrivals over what the CPUs can "
        "do, in bursts of 64 up to 1.\n\"in 64\": most changes of side in any 64 choices, a refusal at the end of "
        "known work counted.\n",
        tiles);

    print_head("Constant load: within 5% of the best fixed choice (CPUs, device, or both)", "fixed s");
    for (const Curve& curve : curves) {
        for (const double load : loads) {
            const World world = world_of(with(curve, load), tiles);
            print_row(curve.name, text(load), best_fixed(world), 1.05, simulate(world, Policy::router));
        }
    }

    for (const Shared& each : shared) {
        print_head(("The same with " + each.name).c_str(), "fixed s");
        for (const Curve& curve : curves) {
            for (const double load : {0.85, 1.2, 5.0, 0.0}) {
                World world = world_of(with(curve, load), tiles);
                world.devices = each.devices;
                world.feeders = each.feeders;
                print_row(curve.name, text(load), best_fixed(world), 1.05, simulate(world, Policy::router));
            }
        }
    }

    print_head("Steps: within 10% of an oracle that splits the work best at every moment", "oracle s");
    for (const auto& [name, phases] : step_cases()) {
        const World world = world_of(phases, tiles);
        const double oracle =
            seconds_of_oracle(phases, static_cast<double>(tiles), static_cast<double>(world.staging_tiles));
        print_row(name, "", oracle, 1.10, simulate(world, Policy::router));
    }

    print_head("Failures at every k-th batch: within 2% of the CPUs alone, or better", "CPUs s");
    const Curve even{"", 1, 1};
    for (const spillway::DeviceFault fault :
         {spillway::DeviceFault::out_of_memory, spillway::DeviceFault::launch_failed, spillway::DeviceFault::lost,
          spillway::DeviceFault::no_driver}) {
        for (const std::uint64_t k : {1U, 3U, 16U, 40U}) {
            World world = world_of(with(even), tiles);
            const double alone = simulate(world, Policy::cpu_alone).seconds;
            world.fault = [=](std::uint64_t n) { return n % k == 0 ? std::optional(fault) : std::nullopt; };
            print_row(std::string(to_string(fault)) + ", k = " + std::to_string(k), "all", alone, 1.02,
                      simulate(world, Policy::router));
        }
    }

    print_head("Workers with nothing else to do, a long queue: neither side starves in any second", "CPUs s");
    for (const Curve& curve : {Curve{"fast", 1, 0.5}, Curve{"even", 1, 1.25}, Curve{"slow", 1, 10}}) {
        Conditions constant = with(curve);
        constant.make = 0.05;
        const World world = world_of(constant, tiles);
        const Outcome outcome = simulate(world, Policy::router);
        print_row(curve.name, "all", simulate(world, Policy::cpu_alone).seconds, 1.0, outcome);
        for (std::size_t second = 1; second + 2 < outcome.shares.size(); ++second) {
            const Share& share = outcome.shares[second];
            if (share.cpu > 700 && share.device > 0) continue;
            std::printf("    second %zu: CPUs %zu of 800, device %zu%s\n", second, share.cpu, share.device,
                        verdict(false));
        }
    }
    std::printf("\n%s\n", broken ? "BROKEN: see above" : "all limits hold");
    return broken ? 1 : 0;
}
