#include "spillway/pipeline.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

using namespace spillway;

namespace {

struct Scratch {
    Scratch() {
        std::string pattern = (std::filesystem::temp_directory_path() / "spillway-test-XXXXXX").string();
        path = ::mkdtemp(pattern.data());
    }
    ~Scratch() { std::filesystem::remove_all(path); }
    std::string path;
};

struct Tensor {
    int number = 0;
    std::vector<std::uint8_t> values;
};

Tensor tensor(int number, std::size_t bytes) { return {number, std::vector<std::uint8_t>(bytes, static_cast<std::uint8_t>(number))}; }

bool right(const Tensor& tensor) {
    return std::all_of(tensor.values.begin(), tensor.values.end(), [&](std::uint8_t x) { return x == static_cast<std::uint8_t>(tensor.number); });
}

} // namespace

TEST_CASE("under a small budget payloads before a slow stage go to disk, come back whole, and leave nothing behind") {
    const Scratch scratch;
    std::vector<int> results;
    std::atomic<bool> damaged{false};
    auto run = pipeline<int>("spilling")
                   .source(std::views::iota(0, 2000))
                   .map("make", [](int x) { return tensor(x, 20000); })
                   .map("slow", [&](Tensor& t) {
                       if (!right(t)) damaged = true;
                       if (t.number % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
                   }).limit(1)
                   .map("result", [](const Tensor& t) { return t.number; })
                   .in_order("collect", [&](int x) { results.push_back(x); });
    const Report report = run.run({.memory = 4_MiB, .threads = 3, .spill = SpillOptions{.directory = scratch.path, .allow_tmpfs = true}});
    CHECK_FALSE(damaged);
    REQUIRE(results.size() == 2000);
    for (int i = 0; i < 2000; ++i) REQUIRE(results[static_cast<std::size_t>(i)] == i);
    CHECK(report.spilled > 0);
    CHECK(report.restored == report.spilled);
    CHECK(std::filesystem::is_empty(scratch.path));
}

TEST_CASE("parked results behind a straggler go to disk and come out in order") {
    const Scratch scratch;
    std::vector<int> results;
    std::atomic<int> made{0};
    auto run = pipeline<int>("parked")
                   .source(std::views::iota(0, 1000))
                   .map("make", [&](int x) {
                       if (x == 0) {
                           while (made < 700) std::this_thread::yield();
                       }
                       ++made;
                       return tensor(x, 20000);
                   })
                   .in_order("collect", [&](const Tensor& t) { results.push_back(right(t) ? t.number : -1); });
    const Report report = run.run({.memory = 4_MiB, .threads = 3, .spill = SpillOptions{.directory = scratch.path, .allow_tmpfs = true}});
    REQUIRE(results.size() == 1000);
    for (int i = 0; i < 1000; ++i) REQUIRE(results[static_cast<std::size_t>(i)] == i);
    CHECK(report.spilled > 100);
}

TEST_CASE("without a disk sources are held back instead, and the run ends the same") {
    std::vector<int> results;
    auto run = pipeline<int>("held")
                   .source(std::views::iota(0, 1000))
                   .map("make", [](int x) { return tensor(x, 20000); })
                   .map("slow", [](Tensor& t) { if (t.number % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1)); }).limit(1)
                   .in_order("collect", [&](const Tensor& t) { results.push_back(t.number); });
    const Report report = run.run({.memory = 4_MiB, .threads = 3, .spill = SpillOptions{}});
    REQUIRE(results.size() == 1000);
    CHECK(std::is_sorted(results.begin(), results.end()));
    CHECK(report.spilled == 0);
}

TEST_CASE("families spill with their children, and a child that comes back finds its parent") {
    const Scratch scratch;
    struct Child {
        int number = 0;
        std::vector<std::uint8_t> payload;
        shared<Tensor> parent;
    };
    std::vector<int> results;
    std::atomic<bool> wrong{false};
    auto run = pipeline<int>("families")
                   .source(std::views::iota(0, 300))
                   .map("make", [](int x) { return tensor(x, 50000); })
                   .fan_out("children", [](shared<Tensor> parent) -> generator<Child> {
                       for (int i = 0; i < 8; ++i) {
                           Child child{i, std::vector<std::uint8_t>(5000, static_cast<std::uint8_t>(i)), parent};
                           co_yield std::move(child);
                       }
                   })
                   .map("slow", [&](Child& child) {
                       if (!right(*child.parent)) wrong = true;
                       if (child.number == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
                   }).limit(1)
                   .map("number", [](const Child& child) { return child.parent->number * 10 + child.number; })
                   .in_order("collect", [&](int x) { results.push_back(x); });
    const Report report = run.run({.memory = 3_MiB, .threads = 3, .spill = SpillOptions{.directory = scratch.path, .allow_tmpfs = true}});
    CHECK_FALSE(wrong);
    REQUIRE(results.size() == 2400);
    for (int i = 0; i < 2400; ++i) REQUIRE(results[static_cast<std::size_t>(i)] == (i / 8) * 10 + i % 8);
    CHECK(report.spilled > 0);
}

TEST_CASE("a gather of children that went to disk gets them all back") {
    const Scratch scratch;
    std::vector<std::size_t> results;
    auto run = pipeline<int>("gather")
                   .source(std::views::iota(0, 100))
                   .fan_out("children", [](const int& n) { std::vector<Tensor> children; for (int i = 0; i < 10; ++i) children.push_back(tensor(n, 20000)); return children; })
                   .map("same", [](Tensor t) { return t; })
                   .gather<int>("all", [](int& parent, batch<Tensor>& children) {
                       std::size_t good = 0;
                       for (const Tensor& t : children) good += t.number == parent && right(t) ? 1U : 0U;
                       return good;
                   })
                   .in_order("collect", [&](std::size_t x) { results.push_back(x); });
    static_cast<void>(run.run({.memory = 1_MiB, .threads = 3, .spill = SpillOptions{.directory = scratch.path, .allow_tmpfs = true}}));
    REQUIRE(results.size() == 100);
    CHECK(std::all_of(results.begin(), results.end(), [](std::size_t x) { return x == 10; }));
}
