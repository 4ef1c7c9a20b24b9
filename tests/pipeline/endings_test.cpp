// Many short runs, each of another shape, that end in every way a run can: by themselves, by an exception of a stage, of
// a codec or of a rebuild function, by a stop request. The outcome is the right results or the right error, and nothing
// is left: no memory that the governor counts, no file, descriptor, thread or mapping.
#include "spillway/pipeline.hpp"
#include "temporary_directory.hpp"
#include "watchdog.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory_resource>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace spillway;
using spillway::test::TemporaryDirectory;

namespace {

struct Fragile {
    std::uint64_t value = 0;
    std::vector<std::uint64_t> ballast;
};

/// Counts down with every value that is written or read; the one that finds 0 throws.
std::atomic<long> codec_fuse{-1};

void burn_fuse() {
    if (codec_fuse.fetch_sub(1) == 0) throw std::runtime_error("a codec threw");
}

} // namespace

template <>
struct spillway::codec<Fragile> {
    static void encode(Writer& out, const Fragile& fragile) {
        out(fragile.value, fragile.ballast);
        burn_fuse(); // When something has been written already.
    }
    static Fragile decode(Reader& in) {
        burn_fuse();
        const auto value = in.get<std::uint64_t>();
        return {value, in.get<std::vector<std::uint64_t>>()};
    }
    static std::size_t footprint(const Fragile& fragile) { return fragile.ballast.size() * sizeof(std::uint64_t); }
};

namespace {

enum class Ending { by_itself, stage, codec, rebuild, stop };
constexpr std::size_t endings = 5;

struct Shape {
    std::uint64_t seed = 0;
    std::size_t sources = 0, fan = 0, ballast = 0, threads = 1;
    std::uint64_t memory = 0;
    bool limited = false, gathers = false;
    Ending ending = Ending::by_itself;
    std::uint64_t at = 0; ///< The call of what throws or asks for the end.
};

std::uint64_t mixed(std::uint64_t x) {
    x ^= x >> 31U;
    x *= 0x9e3779b97f4a7c15U;
    return x ^ (x >> 29U);
}

std::uint64_t children_of(const Shape& shape, std::uint64_t source) {
    return mixed(source + shape.seed) % (shape.fan + 1);
}

Fragile made(const Shape& shape, std::uint64_t source, std::uint64_t child) {
    const std::uint64_t value = mixed(shape.seed + source * 1000003U + child);
    return {value, std::vector<std::uint64_t>(value % (shape.ballast + 1), value)};
}

std::uint64_t result_of(const Fragile& fragile) {
    return mixed(fragile.value) + fragile.ballast.size();
}

/// What one thread without a scheduler computes.
std::vector<std::uint64_t> expected(const Shape& shape) {
    std::vector<std::uint64_t> results;
    for (std::uint64_t source = 0; source < shape.sources; ++source) {
        std::uint64_t sum = source;
        for (std::uint64_t child = 0; child < children_of(shape, source); ++child) {
            const std::uint64_t result = result_of(made(shape, source, child));
            if (!shape.gathers) results.push_back(result);
            sum += result;
        }
        if (shape.gathers) results.push_back(sum);
    }
    return results;
}

/// The least budget, as the refusal of a smaller one says.
std::uint64_t printed_floor(std::size_t threads, const std::string& scratch) {
    auto run = pipeline<int>("refused").source(std::vector<int>{1}).in_order("ignore", [](int) {});
    Pool pool({.max_threads = threads, .memory = {.memory = 1, .watch_process = false}});
    try {
        static_cast<void>(run.run(pool, {.spill = SpillOptions{.directory = scratch, .allow_tmpfs = true}}));
    } catch (const Error& error) {
        const std::string text = error.what();
        const std::string_view words = "allow at least ";
        return std::stoull(text.substr(text.find(words) + words.size()));
    }
    FAIL("a budget of one byte was accepted");
    return 0;
}

struct Ended {
    std::vector<std::uint64_t> results;
    std::string error; ///< Empty: it came to its end.
    ErrorCode code = ErrorCode::runtime;
    std::uint64_t spilled = 0;
};

Ended run_once(const Shape& shape, const std::string& scratch) {
    Ended ended;
    std::stop_source stop;
    std::atomic<std::uint64_t> calls{0}, rebuilds{0};
    auto families = pipeline<std::uint64_t>("short")
                        .source(std::views::iota(std::uint64_t{0}, std::uint64_t{shape.sources}))
                        .fan_out("make",
                                 [&](const std::uint64_t& source) -> generator<Fragile> {
                                     for (std::uint64_t child = 0; child < children_of(shape, source); ++child) {
                                         Fragile fragile = made(shape, source, child);
                                         co_yield std::move(fragile);
                                     }
                                 })
                        .rebuild([&](Context& context) {
                            // All from one on: of the first few only the time is asked, and what they throw is no matter.
                            if (shape.ending == Ending::rebuild && rebuilds++ >= 3 + shape.at % 8)
                                throw std::runtime_error("a rebuild threw");
                            const Key key = context.key();
                            return made(shape, key.ordinals[0], key.ordinals[1]);
                        })
                        .map("work",
                             [&](Fragile& fragile) {
                                 if (fragile.value % 64 == 1) // So that a backlog builds up.
                                     std::this_thread::sleep_for(std::chrono::microseconds(100));
                                 if (calls++ != shape.at) return;
                                 if (shape.ending == Ending::stage) throw std::runtime_error("a stage threw");
                                 if (shape.ending == Ending::stop) stop.request_stop();
                             })
                        .limit(shape.limited ? 1 : 4)
                        .batch("together",
                               [](batch<Fragile>& all) {
                                   for (Fragile& fragile : all) fragile.value = mixed(fragile.value);
                               },
                               {.cells = {}, .full = 16});
    const auto finish = [&](auto whole) {
        codec_fuse = shape.ending == Ending::codec ? static_cast<long>(shape.at) : -1;
        Pool pool({.max_threads = shape.threads, .memory = {.memory = shape.memory, .watch_process = false}});
        try {
            const Report report = whole.run(
                pool, {.spill = SpillOptions{.directory = scratch, .allow_tmpfs = true}, .stop = stop.get_token()});
            ended.spilled = report.spilled;
        } catch (const Error& error) {
            ended.error = error.detail();
            ended.code = error.code();
        }
        codec_fuse = -1;
        if (pool.governor().tracked() != 0) FAIL("bytes that the governor still counts: " << pool.governor().tracked());
    };
    if (shape.gathers) {
        finish(std::move(families)
                   .gather<std::uint64_t>("sum",
                                          [](std::uint64_t& source, batch<Fragile>& children) {
                                              std::uint64_t sum = source;
                                              for (const Fragile& child : children)
                                                  sum += child.value + child.ballast.size();
                                              return sum;
                                          })
                   .in_order("collect", [&](std::uint64_t x) { ended.results.push_back(x); }));
    } else {
        finish(std::move(families).in_order("collect", [&](const Fragile& fragile) {
            ended.results.push_back(fragile.value + fragile.ballast.size());
        }));
    }
    return ended;
}

std::size_t entries(const char* directory) {
    const std::filesystem::directory_iterator all(directory);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::size_t mappings() {
    std::ifstream in("/proc/self/maps");
    return static_cast<std::size_t>(
        std::count(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>(), '\n'));
}

/// Threads of this process, once these are no more than `wanted`, or at last. A thread that has been joined may still be seen for a
/// moment: the kernel tells the joiner first.
std::size_t threads_after_joining(std::size_t wanted) {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    std::size_t seen = entries("/proc/self/task");
    for (; seen > wanted && std::chrono::steady_clock::now() < patience; seen = entries("/proc/self/task"))
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    return seen;
}

/// What is left when joined threads have gone: the same for a while.
std::size_t threads_at_rest() {
    std::thread([] {}).join(); // with the first one a sanitizer starts one of its own
    std::size_t seen = entries("/proc/self/task");
    for (int same = 0; same < 100; ++same) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const std::size_t now = entries("/proc/self/task");
        if (now != seen) same = 0;
        seen = now;
    }
    return seen;
}

void run_many(int runs, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const TemporaryDirectory scratch;
    std::vector<std::uint64_t> floors;
    for (std::size_t threads = 1; threads <= 8; ++threads) floors.push_back(printed_floor(threads, scratch.path()));
    test::Watchdog watchdog;
    const std::size_t descriptors = entries("/proc/self/fd");
    std::size_t threads = threads_at_rest();
    std::size_t mappings_midway = 0;
    std::uint64_t spilled = 0;
    std::array<int, endings> ends{};
    for (int round = 0; round < runs; ++round) {
        if (round == runs / 2) mappings_midway = mappings(); // Every thread that ever ran has its heap by now.
        Shape shape;
        shape.seed = random();
        shape.sources = random() % 60;
        shape.fan = random() % 20;
        shape.ballast = random() % 600;
        shape.threads = 1 + random() % 8;
        shape.memory = floors[shape.threads - 1] + (random() % 3 == 0 ? 0 : random() % 512_KiB);
        shape.limited = random() % 2 == 0;
        shape.gathers = random() % 2 == 0;
        shape.ending = static_cast<Ending>(random() % endings);
        shape.at = random() % 200;
        CAPTURE(round, shape.seed, shape.threads, shape.memory, static_cast<int>(shape.ending), shape.at);
        const Ended ended = run_once(shape, scratch.path());
        watchdog.progress();
        spilled += ended.spilled;
        if (ended.error.empty()) {
            if (ended.results != expected(shape)) FAIL("other results");
        } else {
            ++ends[static_cast<std::size_t>(shape.ending)];
            constexpr std::array<const char*, endings> why = {"", "a stage threw", "a codec threw", "a rebuild threw",
                                                              "stopped on request"};
            if (ended.error != why[static_cast<std::size_t>(shape.ending)] || shape.ending == Ending::by_itself)
                FAIL(ended.error);
            if ((ended.code == ErrorCode::cancelled) != (shape.ending == Ending::stop)) FAIL("another code");
        }
        if (!std::filesystem::is_empty(scratch.path())) FAIL("a file is left");
        if (entries("/proc/self/fd") != descriptors) FAIL("a descriptor is left");
        const std::size_t left = threads_after_joining(threads);
        if (left > threads) FAIL("a thread is left");
        threads = left; // fewer: one of those at rest was only slow to go
    }
    // Caches of stacks and heaps may still grow by some; a leak would be one for each run.
    CHECK(mappings() < mappings_midway + static_cast<std::size_t>(runs) / 4);
    CHECK(spilled > 0);
    for (const Ending ending : {Ending::stage, Ending::codec, Ending::rebuild, Ending::stop})
        CHECK(ends[static_cast<std::size_t>(ending)] > 0);
}

} // namespace

TEST_CASE("three hundred short runs, however they end, leave nothing and do not hang") {
    run_many(300, 71);
}

TEST_CASE("ten thousand short runs, however they end, leave nothing and do not hang", "[.long]") {
    run_many(10'000, 72);
}

TEST_CASE("at the floor that a refusal prints, a parent with a million children gets through") {
    const TemporaryDirectory scratch;
    std::uint64_t sum = 0, count = 0;
    auto run = pipeline<std::uint64_t>("million")
                   .source(std::vector<std::uint64_t>{1'000'000, 3})
                   .fan_out("count",
                            [](const std::uint64_t& n) -> generator<std::uint64_t> {
                                for (std::uint64_t i = 0; i < n; ++i) co_yield i;
                            })
                   .batch("together",
                          [](batch<std::uint64_t>& all) {
                              for (std::uint64_t& x : all) x += 1;
                          },
                          {.cells = {}, .full = 16})
                   .in_order("sum", [&](std::uint64_t x) {
                       sum += x;
                       ++count;
                   });
    Pool pool({.max_threads = 2, .memory = {.memory = printed_floor(2, scratch.path()), .watch_process = false}});
    static_cast<void>(run.run(pool, {.spill = SpillOptions{.directory = scratch.path(), .allow_tmpfs = true}}));
    CHECK(count == 1'000'003);
    CHECK(sum == 500'000'500'006U);
    CHECK(pool.governor().tracked() == 0);
}

TEST_CASE("a run that ends early frees parents before the memory that their own stage gave them") {
    struct Reads {
        std::pmr::vector<std::pmr::string> names;
    };
    std::atomic<int> made{0};
    auto run =
        pipeline<int>("early")
            .source(std::views::iota(0, 100'000))
            .map("read",
                 [](int x, Context& context) {
                     Reads reads{std::pmr::vector<std::pmr::string>(&context.memory())};
                     for (int i = 0; i < 20; ++i)
                         reads.names.emplace_back("a name that is longer than any short string " + std::to_string(x));
                     return reads;
                 })
            .fan_out("sites",
                     [](shared<Reads> reads) -> generator<shared<Reads>> {
                         for (std::size_t i = 0; i < reads->names.size(); ++i) co_yield reads;
                     })
            .map("slow",
                 [&](const shared<Reads>& reads) {
                     if (++made == 500) throw std::runtime_error("enough");
                     return reads->names.size();
                 })
            .limit(1)
            .in_order("ignore", [](std::size_t) {});
    CHECK_THROWS_AS(run.run({.threads = 3}), Error);
    CHECK(made >= 500);
}
