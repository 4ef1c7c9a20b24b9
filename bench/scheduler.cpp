// What does it cost to schedule a candidate? Three stages, ordered output, first with no work in the stages and then
// with some, beside a bare loop and the ways others do it; interleaved in one run, medians.
//
//     spillway-bench-scheduler [--candidates 200000] [--threads 2] [--repeats 9] [--work-us 5]
//
// Prints Markdown tables; exits 1 if any contender lost, doubled, changed or reordered a candidate.
#include "arguments.hpp"
#include "baselines/contender.hpp"
#include "goals.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

double nanoseconds(Clock::duration time) {
    return std::chrono::duration<double, std::nano>(time).count();
}

double cpu_nanoseconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto of = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_usec) * 1e3;
    };
    return of(usage.ru_utime) + of(usage.ru_stime);
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

struct Contender {
    std::string name;
    void (*run)(const Load&, Sink&);
    bool floor = false;                      ///< Schedules nothing: below what a scheduler can reach.
    std::vector<double> wall = {}, cpu = {}; ///< ns a candidate, one for each repeat.
    std::vector<double> futex = {};          ///< Calls a thousand candidates; 0 where they are not counted.
};

std::vector<Contender> contenders() {
    return {
        {"bare loop, one thread", bare_loop, true},
        {"bare loop, split beforehand", bare_split, true},
        {"**Spillway**", spillway_pipeline},
#ifdef BENCH_TBB
        {"oneTBB parallel_pipeline", tbb_parallel_pipeline},
        {"oneTBB flow graph", tbb_flow_graph},
#endif
        {"pool with mutex and condition variable", mutex_pool},
        {"shards, one buffer each, semaphores", shard_pipeline},
    };
}

/// Turns of a stage's spin that take `time`, best of several tries.
std::uint64_t calibrate(double time) {
    constexpr std::uint64_t turns = 1'000'000;
    double fastest = 1e18;
    for (int i = 0; i < 20; ++i) {
        const auto start = Clock::now();
        if (Load{.turns = turns}.spin(1) == 0) std::abort();
        fastest = std::min(fastest, nanoseconds(Clock::now() - start));
    }
    return static_cast<std::uint64_t>(time / fastest * static_cast<double>(turns));
}

/// Runs all contenders `repeats` times in turn, each turn starting with another one; false if a result was wrong.
bool measure(const Load& load, unsigned repeats, std::vector<Contender>& all) {
    bool right = true;
    for (unsigned repeat = 0; repeat <= repeats; ++repeat) {
        for (std::size_t i = 0; i < all.size(); ++i) {
            Contender& contender = all[(i + repeat) % all.size()];
            Sink sink;
            const double cpu = cpu_nanoseconds();
            const auto start = Clock::now();
            contender.run(load, sink);
            const double wall = nanoseconds(Clock::now() - start);
            if (!sink.complete(load)) {
                std::fprintf(stderr, "%s: candidates lost, doubled, changed or out of order\n", contender.name.c_str());
                right = false;
            }
            if (repeat == 0) continue; // Warms caches, allocator and libraries.
            contender.futex.push_back(static_cast<double>(sink.futex_calls) * 1e3 /
                                      static_cast<double>(load.candidates));
            contender.wall.push_back(wall / static_cast<double>(load.candidates));
            contender.cpu.push_back((cpu_nanoseconds() - cpu) / static_cast<double>(load.candidates));
        }
    }
    return right;
}

void print(const std::vector<Contender>& all, bool with_work) {
    const auto find = [&](std::string_view name) {
        const auto found = std::find_if(all.begin(), all.end(), [&](const Contender& c) { return c.name == name; });
        return found == all.end() ? 0.0 : median(found->wall);
    };
    const double loop = find("bare loop, one thread"), ours = find("**Spillway**");
    std::printf("| | ns a candidate | CPU ns | of the bare loop | of Spillway |\n|---|---:|---:|---:|---:|\n");
    for (const Contender& c : all) {
        const double wall = median(c.wall);
        std::printf("| %s | %.0f | %.0f | %.2f | ", c.name.c_str(), wall, median(c.cpu), wall / loop);
        ours > 0 ? std::printf("%.2f |\n", wall / ours) : std::printf("|\n");
    }
    for (const Contender& c : all) {
        if (median(c.futex) > 0) {
            std::printf("\n%s: %.3f futex calls for 1,000 candidates (goal under 1)\n", c.name.c_str(),
                        median(c.futex));
        }
    }
    if (ours == 0) return;
    if (with_work) {
        const auto split = std::find_if(all.begin(), all.end(),
                                        [](const Contender& c) { return c.name == "bare loop, split beforehand"; });
        std::vector<double> runs = split->wall;
        std::sort(runs.begin(), runs.end());
        const double noise = runs[runs.size() * 3 / 4] - runs[runs.size() / 4];
        std::printf(
            "goal: the time of the loop split beforehand, within the middle half of its runs: %+.0f of %.0f ns, %s\n",
            ours - median(runs), noise, told(ours <= median(runs) + noise));
    } else {
        std::printf("goal: under 100 ns a candidate without work: %.0f, %s\n", ours, told(ours < 100));
    }
    for (const Contender& c : all) {
        const double wall = median(c.wall);
        if (c.name.find("bare loop") == std::string::npos && c.name != "**Spillway**")
            std::printf("goal: not slower than %s: %.2f of its time, %s\n", c.name.c_str(), ours / wall,
                        told(ours <= wall));
    }
}

int main(int argc, char** argv) {
    std::uint64_t candidates = 200'000, threads = 2, repeats = 9, work_us = 5;
    read_options(
        argc, argv, "spillway-bench-scheduler [--candidates N] [--threads N] [--repeats N] [--work-us N]",
        {{"--candidates", &candidates}, {"--threads", &threads}, {"--repeats", &repeats}, {"--work-us", &work_us}});
    Load load{.candidates = candidates, .threads = static_cast<unsigned>(threads)};
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
#ifndef BENCH_TBB
    std::printf("Built without oneTBB (libtbb-dev): its two rivals are left out.\n\n");
#endif
    bool right = true;
    for (const std::uint64_t work : {std::uint64_t{0}, work_us}) {
        load.turns = work == 0 ? 0 : calibrate(static_cast<double>(work) * 1e3 / 3);
        std::vector<Contender> all = contenders();
        right = measure(load, static_cast<unsigned>(repeats), all) && right;
        std::printf("%s%llu candidates, three stages, %llu us of work each, %u threads, median of %llu runs:\n\n",
                    work == 0 ? "" : "\n", static_cast<unsigned long long>(candidates),
                    static_cast<unsigned long long>(work), load.threads, static_cast<unsigned long long>(repeats));
        print(all, work != 0);
    }
    return right ? 0 : 1;
}

} // namespace
} // namespace bench

int main(int argc, char** argv) {
    return bench::main(argc, argv);
}
