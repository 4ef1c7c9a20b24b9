#include "spillway/pipeline.hpp"

#include "temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

using namespace spillway;
using spillway::test::TemporaryDirectory;

namespace {

constexpr int items = 400;

struct Counts {
    std::atomic<int> encoded{0}, decoded{0};
} counts;

/// Tells when it goes to disk and who reads it back.
struct Tensor {
    int number = 0;
    std::vector<std::uint8_t> values;
    std::thread::id reader = {}; ///< Whoever read it back.
};

/// The memory in use once all is `made`, or patience is at its end.
template <class Made>
std::uint64_t used_once(Pool& pool, std::chrono::steady_clock::time_point patience, Made made) {
    while (!made() && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
    return pool.governor().used();
}

} // namespace

template <>
struct spillway::codec<Tensor> {
    static void encode(Writer& out, const Tensor& t) {
        ++counts.encoded;
        out(t.number, t.values);
    }
    static Tensor decode(Reader& in) {
        ++counts.decoded;
        const auto number = in.get<int>();
        return {number, in.get<std::vector<std::uint8_t>>(), std::this_thread::get_id()};
    }
    static std::size_t footprint(const Tensor& t) { return t.values.capacity(); }
};

TEST_CASE("while memory is plenty a worker that has nothing else to do reads back what another will need") {
    int waited = 0, left_waiting = 0, read_ahead = 0;
    // Which of them takes what the other has read is up to the machine: again, until one did.
    for (int attempt = 0; attempt < 100 && read_ahead == 0; ++attempt) {
        const TemporaryDirectory directory;
        std::atomic<int> made{0};
        std::vector<int> results;
        bool made_all = true; // once they are not, nobody waits for it any more
        Pool pool({.min_threads = 2,
                   .max_threads = 2,
                   .memory = {.memory = 2_MiB, .low = 0.79, .spill_below = 0.79, .watch_process = false}});
        auto run =
            pipeline<int>("ahead")
                .source(std::views::iota(0, items))
                .map("make",
                     [&](int number) {
                         ++made;
                         return Tensor{number, std::vector<std::uint8_t>(30000, static_cast<std::uint8_t>(number)), {}};
                     })
                .map("take",
                     [&](const Tensor& t) {
                         const auto wait_for = [&](auto done) {
                             const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(1);
                             while (!done()) {
                                 if (std::chrono::steady_clock::now() > patience) return false;
                                 std::this_thread::yield();
                             }
                             return true;
                         };
                         made_all = made_all && wait_for([&] { return made == items; });
                         // There is room for more, and more are on disk: the other worker, for whom nothing is left
                         // to make, must read one.
                         const int before = counts.decoded;
                         if (waited < 5 && counts.encoded - before > 50 && pool.governor().below_low()) {
                             ++waited;
                             // Unless it was just then filling what room there was.
                             const auto served = [&] {
                                 return counts.decoded > before || !pool.governor().below_low();
                             };
                             if (!wait_for(served)) ++left_waiting;
                         }
                         if (t.reader != std::thread::id() && t.reader != std::this_thread::get_id()) ++read_ahead;
                         return t.values[0] == static_cast<std::uint8_t>(t.number) ? t.number : -1;
                     })
                .limit(1)
                .in_order("collect", [&](int number) { results.push_back(number); });
        Options options;
        options.spill = SpillOptions{.directory = directory.path().string(), .allow_tmpfs = true};
        const Report report = run.run(pool, options);
        REQUIRE(made_all);
        REQUIRE(results.size() == items);
        for (int i = 0; i < items; ++i) REQUIRE(results[static_cast<std::size_t>(i)] == i);
        CHECK(report.restored == report.spilled);
    }
    CHECK(read_ahead > 0);
    CHECK(left_waiting == 0);
}

TEST_CASE("candidates of a cheap stage do not come back by the dozen, from disk or made again, where memory is short") {
    const bool disk = GENERATE(true, false);
    constexpr std::size_t budget = 2_MiB;
    constexpr int many = 1500; // until the stage is known to be cheap, there are no groups at all
    const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    std::uint64_t returned = 0;
    std::uint64_t most = 0; // one worker at a time looks
    const auto tensor = [](int number) { return Tensor{number, std::vector<std::uint8_t>(30000), {}}; };
    for (int attempt = 0; attempt < 100 && returned < 100; ++attempt) {
        const TemporaryDirectory directory;
        std::atomic<int> made{0};
        std::size_t results = 0;
        Pool pool({.min_threads = 2, .max_threads = 2, .memory = {.memory = budget, .watch_process = false}});
        auto run = pipeline<int>("dozens")
                       .source(std::views::iota(0, many))
                       .map("make",
                            [&](int number) {
                                ++made;
                                return tensor(number);
                            })
                       .rebuild([&](Context& context) {
                           if (disk) std::this_thread::sleep_for(std::chrono::milliseconds(20)); // dearer than the disk
                           return tensor(static_cast<int>(context.key().ordinals[0]));
                       })
                       .map("take",
                            [&](const Tensor& t) {
                                most = std::max(most, used_once(pool, patience, [&] { return made == many; }));
                                return t.number;
                            })
                       .limit(1)
                       .in_order("collect", [&](int) { ++results; });
        Options options;
        options.spill = SpillOptions{.directory = disk ? directory.path().string() : "", .allow_tmpfs = true};
        const Report report = run.run(pool, options);
        returned = disk ? report.spilled : report.rebuilt;
        CHECK(results == many);
    }
    CHECK(returned >= 100);
    CHECK(most <= budget + 8 * 30'000); // what the workers have in hand
}

TEST_CASE("children of a cheap stage whose parents lie on disk do not bring these back by the dozen") {
    struct Child {
        int number = 0;
        shared<Tensor> parent;
    };
    constexpr std::size_t budget = 2_MiB;
    constexpr int many = 1000; // so many that a stage known to be cheap takes them in groups; the tables do not grow
    const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    std::uint64_t spilled = 0;
    std::uint64_t most = 0; // one worker at a time looks
    for (int attempt = 0; attempt < 100 && spilled < 100; ++attempt) {
        const TemporaryDirectory directory;
        std::atomic<int> made{0};
        std::size_t results = 0;
        Pool pool({.min_threads = 2, .max_threads = 2, .memory = {.memory = budget, .watch_process = false}});
        auto run = pipeline<int>("dozens")
                       .source(std::views::iota(0, many))
                       .map("make",
                            [](int number) {
                                return Tensor{number, std::vector<std::uint8_t>(30000), {}};
                            })
                       .fan_out("one",
                                [&](shared<Tensor> parent) -> generator<Child> {
                                    ++made;
                                    Child child{parent->number, parent};
                                    co_yield std::move(child);
                                })
                       .map("take",
                            [&](const Child& child) {
                                most = std::max(most, used_once(pool, patience, [&] { return made == many; }));
                                return child.parent->number;
                            })
                       .limit(1)
                       .in_order("collect", [&](int) { ++results; });
        Options options;
        options.spill = SpillOptions{.directory = directory.path().string(), .allow_tmpfs = true};
        spilled = run.run(pool, options).restored;
        CHECK(results == many);
    }
    CHECK(spilled >= 100);
    CHECK(most <= budget + 8 * 30'000); // what the workers have in hand
}
