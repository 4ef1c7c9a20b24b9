#include "spillway/pipeline.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <string>
#include <vector>

using namespace spillway;

namespace {

generator<int> multiples(const int& n) {
    for (int i = 0; i < n; ++i) co_yield n * 1000 + i;
}

struct Region {
    int number = 0;
    std::vector<int> reads;
};

struct Site {
    int position = 0;
    shared<Region> region;
};

generator<Site> sites_of(shared<Region> region) {
    for (int i = 0; i < region->number % 13; ++i) {
        Site site{i, region};
        co_yield site;
    }
}

} // namespace

TEST_CASE("children of a fan-out come in the order they were made, parents in the order of the source") {
    const auto threads = GENERATE(1U, 2U, 5U);
    std::vector<int> results, expected;
    for (int n = 0; n < 60; ++n) {
        for (int i = 0; i < n; ++i) expected.push_back(n * 1000 + i);
    }
    auto run = pipeline<int>("fan")
                   .source(std::views::iota(0, 60))
                   .fan_out("multiples", multiples)
                   .map("same", [](int x) { return x; })
                   .in_order("collect", [&](int x) { results.push_back(x); });
    const Report report = run.run({.threads = threads});
    CHECK(results == expected);
    CHECK(report.candidates == 60 + 1770);
}

TEST_CASE("the sink is told the end of every region after its last result, of empty ones too") {
    std::vector<std::string> events;
    auto run = pipeline<int>("ends")
                   .source(std::vector<int>{2, 0, 1})
                   .fan_out("multiples", multiples)
                   .in_order(
                       "collect", [&](int x) { events.push_back(std::to_string(x)); },
                       [&](const Key& key) { events.push_back("end " + to_string(key)); });
    static_cast<void>(run.run({.threads = 2}));
    CHECK(events == std::vector<std::string>{"2000", "2001", "end 0", "end 1", "1000", "end 2"});
}

TEST_CASE("a fan-out may return a plain range, and fan-outs may be nested") {
    std::vector<std::string> results;
    auto run =
        pipeline<int>("nested")
            .source(std::views::iota(1, 4))
            .fan_out("outer", [](int n) { return std::vector<int>(static_cast<std::size_t>(n), n); })
            .fan_out("inner",
                     [](int n) {
                         return std::vector<int>{n, n + 100};
                     })
            .map("keyed", [](int x, Context& context) { return to_string(context.key()) + "=" + std::to_string(x); })
            .in_order("collect", [&](const std::string& x) { results.push_back(x); });
    static_cast<void>(run.run({.threads = 3}));
    REQUIRE(results.size() == 12);
    CHECK(results[0] == "0.0.0=1");
    CHECK(results[1] == "0.0.1=101");
    CHECK(results[2] == "1.0.0=2");
    CHECK(results[11] == "2.2.1=103");
}

TEST_CASE("children look into their shared parent without copying it") {
    std::atomic<long> sum{0};
    std::vector<Region> regions;
    long expected = 0;
    for (int n = 0; n < 100; ++n) {
        regions.push_back({n, std::vector<int>(static_cast<std::size_t>(n), 1)});
        expected += static_cast<long>(n % 13) * n;
    }
    auto run = pipeline<Region>("shared")
                   .source(regions)
                   .fan_out("sites", sites_of)
                   .map("look", [&](const Site& site) { return static_cast<long>(site.region->reads.size()); })
                   .in_order("sum", [&](long x) { sum += x; });
    static_cast<void>(run.run({.threads = 3}));
    CHECK(sum == expected);
}

TEST_CASE("grandchildren look into the shared parent of parents that are not kept themselves") {
    std::vector<int> results;
    auto run = pipeline<int>("nested")
                   .source(std::views::iota(0, 50))
                   .map("read",
                        [](int n) {
                            return Region{n, std::vector<int>(10, n)};
                        })
                   .fan_out("sites",
                            [](shared<Region> region) {
                                std::vector<Site> sites;
                                for (int i = 0; i < 3; ++i) sites.push_back({i, region});
                                return sites;
                            })
                   .fan_out("alleles",
                            [](const Site& site) {
                                std::vector<Site> alleles;
                                for (int i = 0; i < 7; ++i) alleles.push_back({10 * site.position + i, site.region});
                                return alleles;
                            })
                   .map("look", [](const Site& site) { return 100 * site.region->reads.back() + site.position; })
                   .limit(1) // each waits in a queue
                   .in_order("collect", [&](int x) { results.push_back(x); });
    static_cast<void>(run.run({.threads = 3}));
    REQUIRE(results.size() == 50 * 21);
    for (int i = 0; i < 50 * 21; ++i)
        REQUIRE(results[static_cast<std::size_t>(i)] == 100 * (i / 21) + 10 * (i % 21 / 7) + i % 7);
}

TEST_CASE("the parent that a stage asks for is one that is kept, whatever lies between") {
    std::vector<int> results;
    auto run = pipeline<int>("kept")
                   .source(std::views::iota(0, 100))
                   .fan_out("outer", [](shared<int> n) { return std::vector<int>(3, *n); })
                   .fan_out("inner",
                            [](int n) { // of the same type, and gone when the last child has been made
                                return std::vector<long>{n, n + 1};
                            })
                   .map("ask", [](long x, Context& context) { return static_cast<int>(x) - *context.parent<int>(); })
                   .limit(1)
                   .in_order("collect", [&](int x) { results.push_back(x); });
    static_cast<void>(run.run({.threads = 3}));
    REQUIRE(results.size() == 600);
    for (std::size_t i = 0; i < results.size(); ++i) REQUIRE(results[i] == static_cast<int>(i % 2));
}

TEST_CASE("a gather runs once for each parent when all children have ended, also for none, and keeps the order") {
    const auto threads = GENERATE(1U, 3U);
    std::vector<std::string> results;
    auto run =
        pipeline<int>("gather")
            .source(std::views::iota(0, 200))
            .fan_out("multiples", [](const int& n) { return std::vector<int>(static_cast<std::size_t>(n % 9), n); })
            .map("drop some",
                 [](int x, Context& context) {
                     return context.key().ordinals[1] == 4 ? std::nullopt : std::optional(x);
                 })
            .gather<int>("count",
                         [](int& parent, batch<int>& children) {
                             return std::to_string(parent) + "x" + std::to_string(children.size());
                         })
            .map("after", [](std::string text) { return text + "!"; })
            .in_order("collect", [&](const std::string& text) { results.push_back(text); });
    static_cast<void>(run.run({.threads = threads}));
    REQUIRE(results.size() == 200);
    for (int n = 0; n < 200; ++n) {
        const int children = n % 9 > 4 ? n % 9 - 1 : n % 9;
        REQUIRE(results[static_cast<std::size_t>(n)] == std::to_string(n) + "x" + std::to_string(children) + "!");
    }
}

TEST_CASE("gathers nest: a gathered child is a child of the outer gather") {
    std::vector<int> results;
    auto run = pipeline<int>("two gathers")
                   .source(std::views::iota(0, 50))
                   .fan_out("outer", [](const int& n) { return std::vector<int>(static_cast<std::size_t>(n % 4), 1); })
                   .fan_out("inner",
                            [](const int&) {
                                return std::vector<int>{1, 2, 3};
                            })
                   .gather<int>("inner sum",
                                [](int&, batch<int>& children) {
                                    int sum = 0;
                                    for (const int x : children) sum += x;
                                    return sum;
                                })
                   .gather<int>("outer sum",
                                [](int& parent, batch<int>& children) {
                                    int sum = 1000 * parent;
                                    for (const int x : children) sum += x;
                                    return sum;
                                })
                   .in_order("collect", [&](int x) { results.push_back(x); });
    static_cast<void>(run.run({.threads = 3}));
    REQUIRE(results.size() == 50);
    for (int n = 0; n < 50; ++n) REQUIRE(results[static_cast<std::size_t>(n)] == 1000 * n + 6 * (n % 4));
}

TEST_CASE("a parent with a million children needs neither their memory nor their number in advance") {
    std::uint64_t sum = 0;
    std::size_t count = 0;
    auto run = pipeline<std::uint64_t>("million")
                   .source(std::vector<std::uint64_t>{1000000})
                   .fan_out("count",
                            [](const std::uint64_t& n) -> generator<std::uint64_t> {
                                for (std::uint64_t i = 0; i < n; ++i) co_yield i;
                            })
                   .map("same", [](std::uint64_t x) { return x; })
                   .in_order("sum", [&](std::uint64_t x) {
                       sum += x;
                       ++count;
                   });
    static_cast<void>(run.run({.threads = 2}));
    CHECK(count == 1000000);
    CHECK(sum == 499999500000U);
}
