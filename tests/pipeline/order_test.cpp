#include "spillway/pipeline.hpp"

#include <catch2/catch.hpp>

#include <numeric>
#include <thread>
#include <vector>

using namespace spillway;

TEST_CASE("results come in the order of the source for any number of threads") {
    const auto threads = GENERATE(1U, 2U, 3U, 8U);
    std::vector<int> source(5000);
    std::iota(source.begin(), source.end(), 0);
    std::vector<int> results;
    auto doubling = pipeline<int>("doubling")
                        .source(source)
                        .map("double", [](int x) { return 2 * x; })
                        .in_order("collect", [&](int x) { results.push_back(x); });
    const Report report = doubling.run({.threads = threads});
    REQUIRE(results.size() == source.size());
    for (std::size_t i = 0; i < results.size(); ++i) REQUIRE(results[i] == 2 * static_cast<int>(i));
    CHECK(report.sources == 5000);
    CHECK(report.candidates == 5000);
    CHECK(report.emitted == 5000);
    CHECK(report.dropped == 0);
}

TEST_CASE("a straggler at the head holds back the sink and not the other stages") {
    std::vector<int> results;
    std::atomic<int> done_before_straggler{0};
    std::atomic<int> done{0};
    auto run = pipeline<int>("straggler")
                   .source(std::views::iota(0, 500))
                   .map("work",
                        [&](int x) {
                            if (x == 0) {
                                while (done < 400) std::this_thread::yield();
                                done_before_straggler = done.load();
                            }
                            ++done;
                            return x;
                        })
                   .in_order("collect", [&](int x) { results.push_back(x); });
    Pool pool({.min_threads = 2, .max_threads = 3});
    static_cast<void>(run.run(pool));
    CHECK(done_before_straggler >= 400);
    REQUIRE(results.size() == 500);
    CHECK(std::is_sorted(results.begin(), results.end()));
}

TEST_CASE("an empty source ends at once and emits nothing") {
    int emitted = 0;
    auto empty = pipeline<int>("empty")
                     .source(std::vector<int>{})
                     .map("same", [](int x) { return x; })
                     .in_order("count", [&](int) { ++emitted; });
    const Report report = empty.run({.threads = 2});
    CHECK(emitted == 0);
    CHECK(report.sources == 0);
}

TEST_CASE("a pipeline without stages hands the source to the sink") {
    std::vector<int> results;
    auto plain = pipeline<int>("plain").source(std::views::iota(0, 100)).in_order("collect", [&](int x) {
        results.push_back(x);
    });
    static_cast<void>(plain.run({.threads = 2}));
    std::vector<int> expected(100);
    std::iota(expected.begin(), expected.end(), 0);
    CHECK(results == expected);
}

TEST_CASE("a source may be a generator whose length nobody knows") {
    auto squares = []() -> generator<long> {
        for (long i = 0; i < 300; ++i) co_yield i* i;
    };
    long sum = 0;
    auto run = pipeline<long>("generated")
                   .source(squares())
                   .map("same", [](long x) { return x; })
                   .in_order("sum", [&](long x) { sum += x; });
    static_cast<void>(run.run({.threads = 2}));
    CHECK(sum == 8955050); // 299 * 300 * 599 / 6
}

TEST_CASE("no more source items are open than the window allows") {
    std::atomic<int> begun{0}, passed{0}, most{0};
    auto run = pipeline<int>("window")
                   .source(std::views::iota(0, 2000))
                   .map("begin",
                        [&](int x) {
                            const int open = ++begun - passed;
                            int seen = most;
                            while (open > seen && !most.compare_exchange_weak(seen, open)) {
                            }
                            return x;
                        })
                   .in_order("pass", [&](int) { ++passed; });
    static_cast<void>(run.run({.threads = 3, .open_items = 40}));
    CHECK(passed == 2000);
    CHECK(most <= 40 + 3 * 64); // a group that is being pulled may go over it
}

TEST_CASE("a pipeline may be run again with the same source") {
    const std::vector<int> source{3, 1, 2};
    for (int round = 0; round < 3; ++round) {
        std::vector<int> results;
        auto run = pipeline<int>("again").source(source).in_order("collect", [&](int x) { results.push_back(x); });
        static_cast<void>(run.run({.threads = 2}));
        CHECK(results == source);
    }
}

TEST_CASE("many short runs start and end without a hang") {
    for (int round = 0; round < 200; ++round) {
        int emitted = 0;
        auto run = pipeline<int>("short")
                       .source(std::views::iota(0, round % 7))
                       .map("same", [](int x) { return x; })
                       .in_order("count", [&](int) { ++emitted; });
        static_cast<void>(run.run({.threads = static_cast<std::size_t>(1 + round % 4)}));
        REQUIRE(emitted == round % 7);
    }
}
