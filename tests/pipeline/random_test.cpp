#include "spillway/pipeline.hpp"
#include "temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>
#include <vector>

using namespace spillway;

namespace {

struct Work {
    std::uint64_t value = 0;
    std::vector<std::uint64_t> ballast;
};

std::uint64_t mixed(std::uint64_t x) {
    x ^= x >> 31U;
    x *= 0x9e3779b97f4a7c15U;
    return x ^ (x >> 29U);
}

struct Shape {
    std::uint64_t seed;
    std::size_t sources, fan, ballast, threads, open;
    std::uint64_t memory;
    bool limited;
};

Work made(const Shape& shape, std::uint64_t source, std::uint64_t child) {
    const std::uint64_t value = mixed(shape.seed + source * 1000003U + child);
    return {value, std::vector<std::uint64_t>(value % (shape.ballast + 1), value)};
}

std::optional<Work> refined(Work work) {
    if (work.value % 11 == 0) return std::nullopt;
    if (work.value % 64 == 1)
        std::this_thread::sleep_for(std::chrono::microseconds(500)); // so that a backlog builds up
    work.value = mixed(work.value + work.ballast.size());
    return work;
}

/// What one thread without a scheduler computes.
std::vector<std::uint64_t> oracle(const Shape& shape) {
    std::vector<std::uint64_t> results;
    for (std::uint64_t source = 0; source < shape.sources; ++source) {
        const std::uint64_t children = mixed(source + shape.seed) % (shape.fan + 1);
        for (std::uint64_t child = 0; child < children; ++child) {
            if (auto work = refined(made(shape, source, child)))
                results.push_back(work->value + work->ballast.size() + 1);
        }
    }
    return results;
}

} // namespace

TEST_CASE("random pipelines give what one thread without a scheduler gives") {
    std::mt19937_64 random(20240607);
    const spillway::test::TemporaryDirectory scratch;
    std::uint64_t spilled = 0;
    // Whether a budget is too small depends on how far workers run ahead: on until one was.
    for (int round = 0; round < 40 || (spilled == 0 && round < 400); ++round) {
        Shape shape{};
        shape.seed = random();
        shape.sources = random() % 400;
        shape.fan = random() % 20;
        shape.ballast = random() % 600;
        shape.threads = 1 + random() % 4;
        shape.open = 1 + random() % 200;
        shape.memory = random() % 2 == 0 ? 512_KiB + random() % 448_KiB : 1_GiB;
        shape.limited = random() % 2 == 0;
        CAPTURE(round, shape.seed, shape.sources, shape.fan, shape.ballast, shape.threads, shape.open, shape.memory,
                shape.limited);
        std::vector<std::uint64_t> results;
        auto run = pipeline<std::uint64_t>("random")
                       .source(std::views::iota(std::uint64_t{0}, std::uint64_t{shape.sources}))
                       .fan_out("make",
                                [&](const std::uint64_t& source) -> generator<Work> {
                                    const std::uint64_t children = mixed(source + shape.seed) % (shape.fan + 1);
                                    for (std::uint64_t child = 0; child < children; ++child) {
                                        Work work = made(shape, source, child);
                                        co_yield std::move(work);
                                    }
                                })
                       .map("refine", refined)
                       .limit(shape.limited ? 1 : 4)
                       .batch("add",
                              [](batch<Work>& works) {
                                  for (Work& work : works) work.value += 1;
                              },
                              {.cells = {}, .full = 16})
                       .map("sum", [](const Work& work) { return work.value + work.ballast.size(); })
                       .in_order("collect", [&](std::uint64_t x) { results.push_back(x); });
        Pool pool({.max_threads = shape.threads, .memory = {.memory = shape.memory, .watch_process = false}});
        const Report report = run.run(
            pool, {.open_items = shape.open, .spill = SpillOptions{.directory = scratch.path(), .allow_tmpfs = true}});
        spilled += report.spilled;
        REQUIRE(results == oracle(shape));
    }
    CHECK(std::filesystem::is_empty(scratch.path()));
    CHECK(spilled > 0); // else the small budgets were not small
}
