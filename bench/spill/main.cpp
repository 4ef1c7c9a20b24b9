// Does a run whose candidates do not fit the memory take longer than one with memory for all of them?
//
// Candidates of 155 KB (tensors of 100 x 221 x 7) are made faster than a rate-limited stage, a stand-in for a device,
// takes them. Three runs, each in a process of its own so that its peak is its own: with a handful of candidates (the
// process's floor), with memory for all, and with a tenth of that. Prints time, peak resident memory and what was
// spilled. Then how fast payloads are written and read back, beside dd in the same directory, taking turns. Exits 1 on a
// wrong result, or where a goal is missed.
//
//     spillway-bench-spill [CANDIDATES=2000] [CANDIDATES_A_SECOND=500] [DIRECTORY=/var/tmp] [MEBIBYTES=512]
#include "disk_speed.hpp"

#include <spillway/pipeline.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ranges>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t tensor_bytes = std::size_t{100} * 221 * 7;

constexpr std::uint32_t damaged = ~std::uint32_t{0};

struct Tensor {
    std::uint32_t number = 0;
    std::vector<std::uint8_t> values;
};

struct Outcome {
    double seconds = 0;
    double peak_mib = 0;
    std::uint64_t spilled_bytes = 0;
    std::uint64_t memory_peak = 0;
    int right = 0;
};

Outcome run(std::uint32_t candidates, double rate, std::uint64_t memory, const std::string& directory) {
    std::uint32_t next = 0;
    bool right = true;
    auto due = Clock::now();
    const auto step = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1 / rate));
    auto spilling =
        spillway::pipeline<std::uint32_t>("spill")
            .source(std::views::iota(std::uint32_t{0}, candidates))
            .map("make",
                 [](std::uint32_t number) {
                     Tensor tensor{number, std::vector<std::uint8_t>(tensor_bytes)};
                     for (std::size_t i = 0; i < tensor_bytes; ++i) {
                         tensor.values[i] = static_cast<std::uint8_t>((number + i * 2654435761U) >> 13U);
                     }
                     return tensor;
                 })
            .map("device",
                 [&](const Tensor& tensor) {
                     due = std::max(due + step, Clock::now() - step);
                     std::this_thread::sleep_until(due);
                     bool good = tensor.values.size() == tensor_bytes;
                     for (std::size_t i = 0; good && i < tensor_bytes; i += 97) {
                         good = tensor.values[i] == static_cast<std::uint8_t>((tensor.number + i * 2654435761U) >> 13U);
                     }
                     return good ? tensor.number : damaged;
                 })
            .limit(1)
            .in_order("check", [&](std::uint32_t number) { right = right && number == next++; });
    const auto start = Clock::now();
    const spillway::Report report =
        spilling.run({.memory = memory, .threads = 2, .spill = spillway::SpillOptions{.directory = directory}});
    Outcome outcome;
    outcome.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    outcome.peak_mib = static_cast<double>(usage.ru_maxrss) / 1024;
    outcome.spilled_bytes = report.spilled_bytes;
    outcome.memory_peak = report.memory_peak;
    outcome.right = right && next == candidates ? 1 : 0;
    return outcome;
}

/// In a child process, whose peak is its own.
Outcome run_apart(std::uint32_t candidates, double rate, std::uint64_t memory, const std::string& directory) {
    int ends[2];
    if (::pipe(ends) != 0) return {};
    const pid_t child = ::fork();
    if (child == 0) {
        Outcome outcome;
        try {
            outcome = run(candidates, rate, memory, directory);
        } catch (const spillway::Error& error) {
            std::fprintf(stderr, "%s\n", error.what());
        }
        const bool told = ::write(ends[1], &outcome, sizeof outcome) == sizeof outcome;
        ::_exit(told ? 0 : 1);
    }
    ::close(ends[1]);
    Outcome outcome;
    if (::read(ends[0], &outcome, sizeof outcome) != sizeof outcome) outcome = {};
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    return outcome;
}

void print(const char* name, const Outcome& outcome) {
    std::printf("%-22s %8.2f s  peak RSS %8.1f MiB  spilled %8.1f MiB  %s\n", name, outcome.seconds, outcome.peak_mib,
                static_cast<double>(outcome.spilled_bytes) / 1048576, outcome.right == 1 ? "right" : "WRONG");
}

/// False: spilling is slower than it should be.
bool print_disk_speed(unsigned mebibytes, const std::string& directory) {
    constexpr std::size_t rounds = 5;
    std::array<double, rounds> write{}, read{};
    for (std::size_t round = 0; round < rounds; ++round) {
        const bool first = round % 2 == 0;
        bench::Speed spill = first ? bench::spill_speed(mebibytes, directory) : bench::Speed{};
        const bench::Speed dd = bench::dd_speed(mebibytes, directory);
        if (!first) spill = bench::spill_speed(mebibytes, directory);
        if (dd.write == 0) {
            std::printf("no dd: the disk cannot be told apart from the spilling\n");
            return true;
        }
        write[round] = spill.write / dd.write;
        read[round] = spill.read / dd.read;
        std::printf("MiB/s written: spill %6.0f, dd %6.0f, ratio %.2f; read: spill %6.0f, dd %6.0f, ratio %.2f\n",
                    spill.write, dd.write, write[round], spill.read, dd.read, read[round]);
    }
    std::ranges::sort(write);
    std::ranges::sort(read);
    constexpr double goal = 0.8;
    const bool fast = write[rounds / 2] >= goal && read[rounds / 2] >= goal;
    std::printf("median of spill / dd: written %.2f, read %.2f (goal at least %.1f each: %s)\n", write[rounds / 2],
                read[rounds / 2], goal, fast ? "met" : "MISSED");
    return fast;
}

} // namespace

int main(int argc, char** argv) {
    const auto candidates = static_cast<std::uint32_t>(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 2000);
    const double rate = argc > 2 ? std::strtod(argv[2], nullptr) : 500;
    const std::string directory = argc > 3 ? argv[3] : "/var/tmp";
    const auto mebibytes = static_cast<unsigned>(argc > 4 ? std::strtoul(argv[4], nullptr, 10) : 512);
    if (candidates == 0 || !(rate > 0) || mebibytes < 128) {
        std::fputs("usage: spillway-bench-spill [CANDIDATES] [CANDIDATES_A_SECOND] [DIRECTORY] [MEBIBYTES]\n", stderr);
        return 2;
    }
    const std::uint64_t all = std::uint64_t{candidates} * tensor_bytes;
    const Outcome floor = run_apart(4, rate, 0, directory);
    const Outcome roomy = run_apart(candidates, rate, 0, directory);
    const Outcome tight = run_apart(candidates, rate, all / 10, directory);
    print("floor (4 candidates)", floor);
    print("memory for all", roomy);
    print("a tenth of it", tight);
    const double budget_mib = static_cast<double>(all) / 10 / 1048576;
    const double ratio = tight.seconds / roomy.seconds, over_floor = tight.peak_mib - floor.peak_mib;
    const bool within = over_floor <= budget_mib + 64;
    std::printf("time ratio %.3f (goal at most 1.25); peak over the floor %.1f MiB of a budget of %.1f MiB + 64 (%s)\n",
                ratio, over_floor, budget_mib, within ? "within" : "ABOVE");
    const bool fast = print_disk_speed(mebibytes, directory);
    return floor.right == 1 && roomy.right == 1 && tight.right == 1 && ratio <= 1.25 && within && fast ? 0 : 1;
}
