#include "spill/faulty_files.hpp"
#include "spillway/pipeline.hpp"
#include "temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <thread>
#include <vector>

using namespace spillway;
using spillway::test::FaultyFiles;
using spillway::test::TemporaryDirectory;

namespace {

struct Tensor {
    int number = 0;
    std::vector<std::uint8_t> values;
};

Tensor tensor(int number, std::size_t bytes) {
    return {number, std::vector<std::uint8_t>(bytes, static_cast<std::uint8_t>(number))};
}

bool right(const Tensor& tensor) {
    return std::all_of(tensor.values.begin(), tensor.values.end(),
                       [&](std::uint8_t x) { return x == static_cast<std::uint8_t>(tensor.number); });
}

/// Runs it on three threads with a budget that counts only what the run itself holds, so that the test means the same
/// in any process.
template <class T>
Report small_run(Pipeline<T>& run, std::uint64_t memory, const std::string& directory) {
    Pool pool({.max_threads = 3, .memory = {.memory = memory, .watch_process = false}});
    return run.run(pool, {.spill = SpillOptions{.directory = directory, .allow_tmpfs = true}});
}

} // namespace

TEST_CASE("under a small budget payloads before a slow stage go to disk, come back whole, and leave nothing behind") {
    std::uint64_t spilled = 0; // how far workers run ahead is up to the machine: again, until something was
    for (int attempt = 0; attempt < 100 && spilled == 0; ++attempt) {
        const TemporaryDirectory scratch;
        std::vector<int> results;
        std::atomic<bool> damaged{false};
        auto run = pipeline<int>("spilling")
                       .source(std::views::iota(0, 2000))
                       .map("make", [](int x) { return tensor(x, 20000); })
                       .map("slow",
                            [&](Tensor& t) {
                                if (!right(t)) damaged = true;
                                if (t.number % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
                            })
                       .limit(1)
                       .map("result", [](const Tensor& t) { return t.number; })
                       .in_order("collect", [&](int x) { results.push_back(x); });
        const Report report = small_run(run, 4_MiB, scratch.path());
        CHECK_FALSE(damaged);
        REQUIRE(results.size() == 2000);
        for (int i = 0; i < 2000; ++i) REQUIRE(results[static_cast<std::size_t>(i)] == i);
        spilled += report.spilled;
        CHECK(report.restored == report.spilled);
        CHECK(std::filesystem::is_empty(scratch.path()));
    }
    CHECK(spilled > 0);
}

TEST_CASE("parked results behind a straggler go to disk and come out in order") {
    const TemporaryDirectory scratch;
    std::vector<int> results;
    std::atomic<int> made{0};
    auto run = pipeline<int>("parked")
                   .source(std::views::iota(0, 1000))
                   .map("make",
                        [&](int x) {
                            if (x == 0) {
                                const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(2);
                                while (made < 700 && std::chrono::steady_clock::now() < patience)
                                    std::this_thread::yield();
                            }
                            ++made;
                            return tensor(x, 20000);
                        })
                   .in_order("collect", [&](const Tensor& t) { results.push_back(right(t) ? t.number : -1); });
    const Report report = small_run(run, 4_MiB, scratch.path());
    REQUIRE(results.size() == 1000);
    for (int i = 0; i < 1000; ++i) REQUIRE(results[static_cast<std::size_t>(i)] == i);
    CHECK(report.spilled > 100);
}

TEST_CASE("where no directory can be spilled to, the host is told why, once, and the run goes on without") {
#if defined(__SANITIZE_ADDRESS__)
    std::cout << "SKIPPED: with no descriptor to be had, the sanitizer's own checks fail\n";
    return;
#endif
    // No file can be opened any more, so no directory either.
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    std::vector<std::string> lines;
    std::vector<int> results;
    auto run = pipeline<int>("told").source(std::views::iota(0, 100)).in_order("collect", [&](int x) {
        results.push_back(x);
    });
    Options options;
    options.log = [&](std::string_view line) { lines.emplace_back(line); };
    Pool pool({.max_threads = 2, .memory = {.memory = 4_MiB, .watch_process = false}});
    const rlimit none{3, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    const auto restore = std::shared_ptr<void>(nullptr, [&](void*) { ::setrlimit(RLIMIT_NOFILE, &before); });
    static_cast<void>(run.run(pool, options));
    ::setrlimit(RLIMIT_NOFILE, &before);
    CHECK(results.size() == 100);
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].find("nothing will be spilled: ") == 0);
    CHECK(lines[0].find("/tmp") != std::string::npos);
}

TEST_CASE("without a disk sources are held back instead, and the run ends the same") {
    std::vector<int> results;
    auto run = pipeline<int>("held")
                   .source(std::views::iota(0, 1000))
                   .map("make", [](int x) { return tensor(x, 20000); })
                   .map("slow",
                        [](Tensor& t) {
                            if (t.number % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                        })
                   .limit(1)
                   .in_order("collect", [&](const Tensor& t) { results.push_back(t.number); });
    const Report report = small_run(run, 4_MiB, "");
    REQUIRE(results.size() == 1000);
    CHECK(std::is_sorted(results.begin(), results.end()));
    CHECK(report.spilled == 0);
}

TEST_CASE("families spill with their children, and a child that comes back finds its parent") {
    std::uint64_t spilled = 0; // how far workers run ahead is up to the machine: again, until something was
    for (int attempt = 0; attempt < 100 && spilled == 0; ++attempt) {
        const TemporaryDirectory scratch;
        struct Child {
            int number = 0;
            std::vector<std::uint8_t> payload;
            shared<Tensor> parent;
        };
        std::vector<int> results;
        std::atomic<bool> wrong{false};
        auto run =
            pipeline<int>("families")
                .source(std::views::iota(0, 300))
                .map("make", [](int x) { return tensor(x, 50000); })
                .fan_out("children",
                         [](shared<Tensor> parent) -> generator<Child> {
                             for (int i = 0; i < 8; ++i) {
                                 Child child{i, std::vector<std::uint8_t>(5000, static_cast<std::uint8_t>(i)), parent};
                                 co_yield std::move(child);
                             }
                         })
                .map("slow",
                     [&](Child& child) {
                         if (!right(*child.parent)) wrong = true;
                         if (child.number == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
                     })
                .limit(1)
                .map("number", [](const Child& child) { return child.parent->number * 10 + child.number; })
                .in_order("collect", [&](int x) { results.push_back(x); });
        const Report report = small_run(run, 3_MiB, scratch.path());
        CHECK_FALSE(wrong);
        REQUIRE(results.size() == 2400);
        for (int i = 0; i < 2400; ++i) REQUIRE(results[static_cast<std::size_t>(i)] == (i / 8) * 10 + i % 8);
        spilled += report.spilled;
    }
    CHECK(spilled > 0);
}

TEST_CASE("two generations of shared parents spill and come back, each before those that look into it") {
    struct Window {
        int number = 0;
        std::vector<std::uint8_t> reads;
        shared<Tensor> region;
    };
    struct Site {
        int number = 0;
        std::vector<std::uint8_t> pileup;
        shared<Window> window;
        shared<Tensor> region;
    };
    std::uint64_t spilled = 0;
    for (int attempt = 0; attempt < 100 && spilled == 0; ++attempt) {
        const TemporaryDirectory scratch;
        std::vector<int> results;
        std::atomic<bool> wrong{false};
        auto run = pipeline<int>("generations")
                       .source(std::views::iota(0, 40))
                       .map("make", [](int x) { return tensor(x, 50000); })
                       .fan_out("windows",
                                [](shared<Tensor> region) -> generator<Window> {
                                    for (int i = 0; i < 4; ++i) {
                                        Window window{i, tensor(i, 20000).values, region};
                                        co_yield std::move(window);
                                    }
                                })
                       .map("read", [](Window&) {})
                       .limit(2)
                       .fan_out("sites",
                                [](shared<Window> window) -> generator<Site> {
                                    for (int i = 0; i < 4; ++i) {
                                        Site site{i, tensor(i, 5000).values, window, window->region};
                                        co_yield std::move(site);
                                    }
                                })
                       .map("slow",
                            [&](Site& site) {
                                if (!right(*site.region) || !right({site.window->number, site.window->reads}) ||
                                    &*site.window->region != &*site.region)
                                    wrong = true;
                                if (site.number == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
                            })
                       .limit(1)
                       .map("number",
                            [](const Site& site) {
                                return 100 * site.region->number + 10 * site.window->number + site.number;
                            })
                       .in_order("collect", [&](int x) { results.push_back(x); });
        const Report report = small_run(run, 3_MiB, scratch.path());
        CHECK_FALSE(wrong);
        REQUIRE(results.size() == 640);
        for (int i = 0; i < 640; ++i)
            REQUIRE(results[static_cast<std::size_t>(i)] == 100 * (i / 16) + 10 * (i % 16 / 4) + i % 4);
        CHECK(std::filesystem::is_empty(scratch.path()));
        spilled += report.spilled;
    }
    CHECK(spilled > 0);
}

TEST_CASE("a spilled parent that cannot be read back ends the run") {
    struct Unreadable : FaultyFiles {
        std::int64_t read(int, std::span<const iovec>, std::uint64_t) override { return -EIO; }
    };
    struct Child {
        int number = 0;
        shared<Tensor> parent;
    };
    bool failed = false; // whether a parent goes to disk is up to the machine: again, until one did
    for (int attempt = 0; attempt < 100 && !failed; ++attempt) {
        const TemporaryDirectory scratch;
        auto run = pipeline<int>("unreadable")
                       .source(std::views::iota(0, 100))
                       .map("make", [](int x) { return tensor(x, 50000); })
                       .fan_out("children",
                                [](shared<Tensor> parent) -> generator<Child> {
                                    for (int i = 0; i < 4; ++i) {
                                        Child child{i, parent};
                                        co_yield std::move(child);
                                    }
                                })
                       .batch("together", [](batch<Child>&) {}, {.cells = {}, .full = 1000}) // takes all that there is
                       .in_order("ignore", [](const Child&) {});
        Pool pool({.max_threads = 3, .memory = {.memory = 3_MiB, .watch_process = false}});
        SpillOptions spill{.directory = scratch.path(), .allow_tmpfs = true};
        spill.files = std::make_shared<Unreadable>();
        try {
            static_cast<void>(run.run(pool, {.spill = spill}));
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::disk);
            failed = true;
        }
    }
    CHECK(failed);
}

TEST_CASE("a gather of children that went to disk gets them all back") {
    const TemporaryDirectory scratch;
    std::vector<std::size_t> results;
    std::atomic<Handle<int>*> going{nullptr};
    std::atomic<bool> first{true};
    const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    auto run =
        pipeline<int>("gather")
            .source(std::views::iota(0, 60))
            .fan_out("children",
                     [](const int& n) {
                         std::vector<Tensor> children;
                         for (int i = 0; i < 10; ++i) children.push_back(tensor(n, 20000));
                         return children;
                     })
            .map("straggler",
                 [&](Tensor t) {
                     const auto waits = [&] { return going == nullptr || going.load()->progress().spilled_bytes == 0; };
                     const bool straggles = first.exchange(false); // whichever child it is: no other may come before it
                     while (straggles && waits() && std::chrono::steady_clock::now() < patience)
                         std::this_thread::sleep_for(std::chrono::microseconds(100));
                     return t;
                 })
            .limit(1) // so that all others wait before it
            .gather<int>("all",
                         [](int& parent, batch<Tensor>& children) {
                             std::size_t good = 0;
                             for (const Tensor& t : children) good += t.number == parent && right(t) ? 1U : 0U;
                             return good;
                         })
            .in_order("collect", [&](std::size_t x) { results.push_back(x); });
    Pool pool({.max_threads = 3, .memory = {.memory = 4_MiB, .watch_process = false}});
    auto handle = run.start(pool, {.spill = SpillOptions{.directory = scratch.path(), .allow_tmpfs = true}});
    going = &handle;
    const Report report = handle.wait();
    REQUIRE(results.size() == 60);
    CHECK(std::all_of(results.begin(), results.end(), [](std::size_t x) { return x == 10; }));
    CHECK(report.spilled > 0);
    CHECK(report.restored == report.spilled);
    CHECK(report.spilled_bytes > report.spilled);
    CHECK(report.memory_budget == 4_MiB);
    CHECK(report.memory_peak > 0);
    CHECK(report.threads_peak >= 2);
}

TEST_CASE("with a budget that everything exceeds the head still gets through, families and gathers alike") {
    std::vector<int> results;
    auto run = pipeline<int>("floor")
                   .source(std::views::iota(0, 40))
                   .map("make", [](int x) { return tensor(x, 100000); })
                   .fan_out("children",
                            [](shared<Tensor> parent) -> generator<Tensor> {
                                for (int i = 0; i < 40; ++i) {
                                    Tensor child = tensor(parent->number, 30000);
                                    co_yield std::move(child);
                                }
                            })
                   .batch("together",
                          [](batch<Tensor>& tensors) {
                              for (Tensor& t : tensors) t.number += 0;
                          },
                          {.cells = {}, .full = 1000})
                   .gather<Tensor>("all",
                                   [](Tensor& parent, batch<Tensor>& children) {
                                       return parent.number * 100 + static_cast<int>(children.size());
                                   })
                   .fan_out("again", [](const int& x) { return std::vector<Tensor>(30, tensor(x, 30000)); })
                   .in_order("collect", [&](const Tensor& t) { results.push_back(t.number); });
    const std::string directory = GENERATE(as<std::string>{}, "", "disk");
    const TemporaryDirectory scratch;
    static_cast<void>(small_run(run, 420_KiB, directory.empty() ? "" : scratch.path())); // about the floor
    REQUIRE(results.size() == 1200);
    for (int i = 0; i < 1200; ++i) REQUIRE(results[static_cast<std::size_t>(i)] == (i / 30) * 100 + 40);
}

TEST_CASE("a budget that the tables do not fit in is refused, with the least that would do") {
    std::vector<int> results;
    auto run = pipeline<int>("floor").source(std::views::iota(0, 10)).in_order("collect", [&](int x) {
        results.push_back(x);
    });
    const auto start = [&](std::uint64_t memory) { static_cast<void>(small_run(run, memory, "")); };
    CHECK_THROWS_WITH(start(10000), Catch::Contains("below the floor") && Catch::Contains("allow at least"));
    CHECK(results.empty());
    try {
        start(10000);
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::usage);
        const std::string text = error.what();
        const std::string_view words = "allow at least ";
        start(std::stoull(text.substr(text.find(words) + words.size())));
    }
    CHECK(results.size() == 10);
}

TEST_CASE("a payload in its own memory comes back from disk into its own memory") {
    const TemporaryDirectory scratch;
    struct Reads {
        std::pmr::vector<std::uint8_t> bases;
    };
    std::atomic<int> elsewhere{0}, wrong{0};
    std::uint64_t spilled = 0;
    // How far workers run ahead, and so whether anything is written, is the machine's: again, until something was.
    for (int attempt = 0; attempt < 100 && spilled == 0; ++attempt) {
        std::vector<std::size_t> results;
        auto run = pipeline<int>("own memory")
                       .source(std::views::iota(0, 600))
                       .map("make",
                            [](int x, Context& context) {
                                return Reads{std::pmr::vector<std::uint8_t>(20000, static_cast<std::uint8_t>(x),
                                                                            &context.memory())};
                            })
                       .map("slow",
                            [&](Reads& reads, Context& context) {
                                if (reads.bases.get_allocator().resource() != &context.memory()) ++elsewhere;
                                if (reads.bases.size() != 20000 || reads.bases.front() != reads.bases.back()) ++wrong;
                                if (reads.bases.front() % 50 == 0)
                                    std::this_thread::sleep_for(std::chrono::milliseconds(2));
                            })
                       .limit(1)
                       .map("size", [](const Reads& reads) { return reads.bases.size(); })
                       .in_order("collect", [&](std::size_t n) { results.push_back(n); });
        const Report report = small_run(run, 8_MiB, scratch.path());
        CHECK(results.size() == 600);
        spilled += report.spilled;
    }
    CHECK(spilled > 0);
    CHECK(wrong == 0);
    CHECK(elsewhere == 0);
}
