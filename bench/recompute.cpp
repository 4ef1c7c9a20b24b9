// Is what must leave memory written to disk or made again, whichever is cheaper?
//
// Candidates of 64 KiB wait, ten times as many as fit, until all have been made; then a stage takes one after the
// other. Each of four situations is run three ways: always written to disk, never (always made again), and as the
// library chooses, three times in turn. The slow disk is this process's own read and write calls, made to take their
// time. Prints the median seconds of each, what the choice was, and its ratio to the better of the others; exits 1 on
// a wrong result, or where the choice is more than 5% worse.
//
//     spillway-bench-recompute [CANDIDATES=4000] [SLOW_MB_A_SECOND=100] [DIRECTORY=/var/tmp]
#include <spillway/pipeline.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ranges>
#include <string>
#include <thread>
#include <vector>

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;

/// One disk for all threads: a call's bytes pass after those of the calls before it.
struct SlowDisk {
    std::atomic<double> nanoseconds_a_byte{0};
    std::atomic<std::int64_t> free_at{0};

    void pass(const iovec* pieces, int count) {
        const double each = nanoseconds_a_byte.load();
        if (each == 0) return;
        double bytes = 0;
        for (int i = 0; i < count; ++i) bytes += static_cast<double>(pieces[i].iov_len);
        const auto takes = static_cast<std::int64_t>(bytes * each);
        std::int64_t before = free_at.load(), after = 0;
        do {
            after = std::max<std::int64_t>(before, Clock::now().time_since_epoch().count()) + takes;
        } while (!free_at.compare_exchange_weak(before, after));
        std::this_thread::sleep_until(Clock::time_point(Clock::duration(after)));
    }
} slow_disk;

} // namespace

// Before the C library's, for the library's calls as well.
extern "C" ssize_t pwritev(int file, const iovec* pieces, int count, off_t offset) {
    slow_disk.pass(pieces, count);
    return ::syscall(SYS_pwritev, file, pieces, count, offset, 0);
}
extern "C" ssize_t preadv(int file, const iovec* pieces, int count, off_t offset) {
    slow_disk.pass(pieces, count);
    return ::syscall(SYS_preadv, file, pieces, count, offset, 0);
}

namespace {

constexpr std::size_t words = 8192;

struct Block {
    std::uint64_t number = 0;
    std::vector<std::uint64_t> values;
};

/// Work of about so long, whose result follows from the number.
Block make(std::uint64_t number, int rounds) {
    Block block{number, std::vector<std::uint64_t>(words)};
    std::uint64_t x = number + 1;
    for (int round = 0; round < rounds; ++round) {
        for (std::uint64_t& value : block.values) {
            x ^= x << 13U;
            x ^= x >> 7U;
            x ^= x << 17U;
            value += x;
        }
    }
    return block;
}

std::uint64_t sum(const Block& block) {
    std::uint64_t total = block.number;
    for (const std::uint64_t value : block.values) total = total * 31 + value;
    return total;
}

enum class Way { always, never, automatic };

struct Outcome {
    double seconds = 0;
    spillway::Report report;
    std::uint64_t total = 0;
};

template <class Pipeline>
Outcome run(Pipeline&& pipeline, std::atomic<std::uint64_t>& made, std::uint64_t candidates, Way way,
            const std::string& directory) {
    Outcome outcome;
    auto waiting = std::forward<Pipeline>(pipeline)
                       .map("take",
                            [&](const Block& block) {
                                while (made.load() < candidates)
                                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                return sum(block);
                            })
                       .limit(1)
                       .in_order("add", [&](std::uint64_t x) { outcome.total = outcome.total * 31 + x; });
    spillway::Pool pool({.min_threads = 2,
                         .max_threads = 2,
                         .memory = {.memory = candidates * words * 8 / 10, .watch_process = false}});
    spillway::Options options;
    options.spill = spillway::SpillOptions{.directory = way == Way::never ? "" : directory};
    const auto start = Clock::now();
    outcome.report = waiting.run(pool, options);
    outcome.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return outcome;
}

Outcome run(std::uint64_t candidates, int rounds, Way way, const std::string& directory) {
    std::atomic<std::uint64_t> made{0};
    auto start = spillway::pipeline<std::uint64_t>("recompute")
                     .source(std::views::iota(std::uint64_t{0}, candidates))
                     .map("make", [&, rounds](std::uint64_t number) {
                         ++made;
                         return make(number, rounds);
                     });
    if (way == Way::always) return run(std::move(start), made, candidates, way, directory);
    return run(std::move(start).rebuild(
                   [rounds](spillway::Context& context) { return make(context.key().ordinals[0], rounds); }),
               made, candidates, way, directory);
}

} // namespace

int main(int argc, char** argv) {
    const std::uint64_t candidates = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 4000;
    const double slow = argc > 2 ? std::strtod(argv[2], nullptr) : 100;
    const std::string directory = argc > 3 ? argv[3] : "/var/tmp";
    if (candidates < 100 || !(slow > 0)) {
        std::fputs("usage: spillway-bench-recompute [CANDIDATES, at least 100] [SLOW_MB_A_SECOND] [DIRECTORY]\n",
                   stderr);
        return 2;
    }
    bool right = true;
    double worst = 0;
    std::printf("%-22s %10s %10s %10s   %s\n", "", "always", "never", "chosen",
                "ratio to the better; written, made again");
    for (const bool is_slow : {false, true}) {
        slow_disk.nanoseconds_a_byte = is_slow ? 1000 / slow : 0;
        for (const bool dear : {false, true}) {
            const int rounds = dear ? 100 : 2;
            // In turn, so that what else the machine does meets all three alike; medians.
            constexpr std::size_t turns = 3;
            std::array<std::vector<Outcome>, 3> outcomes;
            for (std::size_t turn = 0; turn < turns; ++turn) {
                for (std::size_t i = 0; i < outcomes.size(); ++i) {
                    const std::size_t way = (turn + i) % outcomes.size();
                    outcomes[way].push_back(
                        run(candidates, rounds, std::array{Way::always, Way::never, Way::automatic}[way], directory));
                    right = right && outcomes[way].back().total == outcomes[0][0].total;
                }
            }
            for (auto& of_way : outcomes) std::ranges::sort(of_way, {}, &Outcome::seconds);
            const Outcome &always = outcomes[0][turns / 2], &never = outcomes[1][turns / 2],
                          &chosen = outcomes[2][turns / 2];
            const double ratio = chosen.seconds / std::min(always.seconds, never.seconds);
            worst = std::max(worst, ratio);
            std::printf("%-5s disk, %-5s rebuild %9.2f s %8.2f s %8.2f s   %.3f; %llu, %llu\n",
                        is_slow ? "slow" : "fast", dear ? "dear" : "cheap", always.seconds, never.seconds,
                        chosen.seconds, ratio, static_cast<unsigned long long>(chosen.report.spilled),
                        static_cast<unsigned long long>(chosen.report.rebuilt));
        }
    }
    const bool near = worst <= 1.05;
    std::printf("worst ratio %.3f (goal at most 1.05: %s); results %s\n", worst, near ? "met" : "MISSED",
                right ? "right" : "WRONG");
    return right && near ? 0 : 1;
}
