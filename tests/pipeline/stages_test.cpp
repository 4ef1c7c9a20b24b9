#include "spillway/pipeline.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <memory_resource>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace spillway;

TEST_CASE("a stage leaves candidates out by returning nothing, and their places are passed over") {
    std::vector<int> results;
    auto run = pipeline<int>("filter")
                   .source(std::views::iota(0, 1000))
                   .map("thirds", [](int x) { return x % 3 == 0 ? std::optional(x) : std::nullopt; })
                   .in_order("collect", [&](int x) { results.push_back(x); });
    const Report report = run.run({.threads = 3});
    REQUIRE(results.size() == 334);
    for (std::size_t i = 0; i < results.size(); ++i) REQUIRE(results[i] == static_cast<int>(3 * i));
    CHECK(report.dropped == 666);
    CHECK(report.failed == 0);
}

TEST_CASE("a stage may change the candidate in place, change its type, and ask for its key") {
    std::vector<std::string> results;
    auto run =
        pipeline<int>("types")
            .source(std::views::iota(0, 50))
            .map("in place", [](int& x) { x += 1; })
            .map("text", [](int x) { return std::string(static_cast<std::size_t>(x), 'A'); })
            .map("keyed", [](const std::string& text,
                             Context& context) { return to_string(context.key()) + ":" + std::to_string(text.size()); })
            .in_order("collect", [&](const std::string& text) { results.push_back(text); });
    static_cast<void>(run.run({.threads = 2}));
    REQUIRE(results.size() == 50);
    CHECK(results.front() == "0:1");
    CHECK(results.back() == "49:50");
}

TEST_CASE("a worker's state is made on its own thread, used by one thread at a time, and destroyed there before run "
          "returns") {
    struct State {
        std::thread::id maker = std::this_thread::get_id();
        std::atomic<int>* alive;
        std::atomic<bool>* wrong;
        explicit State(std::atomic<int>& count, std::atomic<bool>& moved) : alive(&count), wrong(&moved) { ++*alive; }
        State(State&& other) = delete;
        ~State() {
            if (std::this_thread::get_id() != maker) *wrong = true;
            --*alive;
        }
    };
    std::atomic<int> alive{0}, most{0};
    std::atomic<bool> wrong{false};
    auto run = pipeline<int>("local")
                   .source(std::views::iota(0, 3000))
                   .map("use",
                        [&](int x, std::unique_ptr<State>& state) {
                            if (std::this_thread::get_id() != state->maker) wrong = true;
                            most = std::max(most.load(), alive.load());
                            return x;
                        })
                   .local([&] { return std::make_unique<State>(alive, wrong); })
                   .in_order("ignore", [](int) {});
    Pool pool({.min_threads = 3, .max_threads = 3}); // one that retires may still have its state when the next has come
    static_cast<void>(run.run(pool));
    CHECK_FALSE(wrong);
    CHECK(alive == 0);
    CHECK(most >= 1);
    CHECK(most <= 3);
}

TEST_CASE("what a worker's state is said to hold counts in the budget as long as it lives") {
    constexpr std::size_t held = 5 << 20U;
    Pool pool({.max_threads = 1, .memory = {.memory = 64 << 20U, .watch_process = false}});
    std::uint64_t least = ~std::uint64_t{0};
    auto run = pipeline<int>("declared")
                   .source(std::views::iota(0, 100))
                   .map("use",
                        [&](int x, int&) {
                            if (x > 0) least = std::min(least, pool.governor().tracked());
                            return x;
                        })
                   .local([] { return 1; }, held)
                   .in_order("ignore", [](int) {});
    static_cast<void>(run.run(pool));
    CHECK(least >= held);
    CHECK(pool.governor().tracked() < held);
}

TEST_CASE(
    "a budget that the workers' states and what stages hold do not fit in is refused, and the floor it names does") {
    const auto run_with = [](std::uint64_t memory) {
        std::size_t results = 0;
        auto run = pipeline<int>("floor")
                       .source(std::views::iota(0, 100))
                       .map("use", [](int x, int&) { return x; })
                       .local([] { return 1; }, 1 << 20U)
                       .in_order("count", [&](int) { ++results; });
        Pool pool({.max_threads = 2, .memory = {.memory = memory, .watch_process = false}});
        static_cast<void>(run.run(pool, {.resident = 3 << 20U, .spill = SpillOptions{.directory = ""}}));
        CHECK(results == 100);
    };
    std::uint64_t floor = 0;
    try {
        run_with(1 << 20U);
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::usage);
        const std::string text = error.what(), before = "allow at least ";
        REQUIRE(text.find(before) != std::string::npos);
        floor = std::stoull(text.substr(text.find(before) + before.size()));
    }
    REQUIRE(floor >= 5 << 20U);
    CHECK_THROWS_AS(run_with(floor - 1), Error);
    run_with(floor);
}

TEST_CASE("no more workers are inside a limited stage than its limit, and a limit of one needs no lock") {
    const auto limit = GENERATE(1, 2);
    std::atomic<int> inside{0}, most{0};
    long unguarded = 0;
    auto run = pipeline<int>("limit")
                   .source(std::views::iota(0, 2000))
                   .map("before", [](int x) { return x; })
                   .map("limited",
                        [&](int x) {
                            const int now = ++inside;
                            if (limit == 1) ++unguarded;
                            most = std::max(most.load(), now);
                            if (x % 100 == 0) std::this_thread::yield();
                            --inside;
                            return x;
                        })
                   .limit(static_cast<std::size_t>(limit))
                   .in_order("ignore", [](int) {});
    const Report report = run.run({.threads = 4});
    CHECK(most <= limit);
    CHECK(report.emitted == 2000);
    if (limit == 1) CHECK(unguarded == 2000);
}

TEST_CASE(
    "a batched stage sees every candidate once, in batches that fill up, and a last one that nobody can fill leaves") {
    const auto threads = GENERATE(1U, 2U);
    std::atomic<int> seen{0}, batches{0};
    std::vector<int> results;
    auto run = pipeline<int>("batches")
                   .source(std::views::iota(0, 1003))
                   .map("before", [](int x) { return x; })
                   .batch("together",
                          [&](batch<int>& candidates) {
                              for (int& x : candidates) x *= 10;
                              seen += static_cast<int>(candidates.size());
                              ++batches;
                          },
                          {.cells = [](int) { return std::size_t{2}; }, .full = 64})
                   .in_order("collect", [&](int x) { results.push_back(x); });
    static_cast<void>(run.run({.threads = threads}));
    CHECK(seen == 1003);
    if (threads == 1) CHECK(batches <= 1003 / 32 + 1); // with more, one may find nothing else to do than a part
    REQUIRE(results.size() == 1003);
    for (std::size_t i = 0; i < results.size(); ++i) REQUIRE(results[i] == 10 * static_cast<int>(i));
}

TEST_CASE("a stage may allocate from its candidate's own memory, which is gone with the candidate") {
    std::vector<std::size_t> sizes;
    auto run = pipeline<int>("slabs")
                   .source(std::views::iota(0, 200))
                   .map("allocate",
                        [](int x, Context& context) {
                            std::pmr::vector<int> numbers(&context.memory());
                            for (int i = 0; i < x; ++i) numbers.push_back(i);
                            return numbers;
                        })
                   .map("append", [](std::pmr::vector<int>& numbers) { numbers.push_back(-1); })
                   .in_order("collect", [&](const std::pmr::vector<int>& numbers) { sizes.push_back(numbers.size()); });
    static_cast<void>(run.run({.threads = 2}));
    REQUIRE(sizes.size() == 200);
    for (std::size_t i = 0; i < sizes.size(); ++i) REQUIRE(sizes[i] == i + 1);
}

TEST_CASE("the report names the stages and counts what went through them") {
    auto run = pipeline<int>("report")
                   .source(std::views::iota(0, 100))
                   .map("first", [](int x) { return x % 2 == 0 ? std::optional(x) : std::nullopt; })
                   .map("second", [](int x) { return x; })
                   .in_order("sink", [](int) {});
    const Report report = run.run({.threads = 2});
    REQUIRE(report.stages.size() == 3);
    CHECK(report.stages[0].name == "first");
    CHECK(report.stages[0].candidates == 100);
    CHECK(report.stages[1].candidates == 50);
    CHECK(report.stages[2].name == "sink");
    CHECK(report.stages[2].candidates == 50);
    CHECK(to_string(report).find("second") != std::string::npos);
}
