#include "spillway/pipeline.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <time.h>

using namespace spillway;

TEST_CASE("a host pushes items from several threads and gets them all, in the order of its pushes") {
    Pool pool({.max_threads = 2});
    std::vector<int> results;
    auto run = pipeline<int>("host").map("same", [](int x) { return x; }).in_order("collect", [&](int x) {
        results.push_back(x);
    });
    auto handle = run.start(pool);
    std::vector<std::thread> hosts;
    for (int host = 0; host < 3; ++host) {
        hosts.emplace_back([&, host] {
            for (int i = 0; i < 2000; ++i) static_cast<void>(handle.push(host * 10000 + i));
        });
    }
    for (std::thread& host : hosts) host.join();
    handle.close();
    const Report report = handle.wait();
    REQUIRE(results.size() == 6000);
    CHECK(report.sources == 6000);
    std::vector<int> next(3, 0);
    for (const int x : results) REQUIRE(x % 10000 == next[static_cast<std::size_t>(x / 10000)]++);
}

TEST_CASE("without room try_push refuses and leaves the item, and push waits") {
    Pool pool({.max_threads = 1});
    std::atomic<bool> open{false};
    std::atomic<int> emitted{0};
    auto run = pipeline<std::string>("pressed")
                   .map("wait",
                        [&](std::string text) {
                            while (!open) std::this_thread::yield();
                            return text;
                        })
                   .in_order("count", [&](const std::string&) { ++emitted; });
    auto handle = run.start(pool, {.open_items = 8});
    int taken = 0;
    std::string item = "a read that is longer than any short string";
    while (handle.try_push(std::string(item))) ++taken;
    CHECK(taken == 8);
    CHECK_FALSE(handle.try_push(std::move(item)));
    CHECK(item.size() == 43);
    std::thread host([&] { CHECK(handle.push("late")); });
    open = true;
    host.join();
    handle.close();
    CHECK(handle.wait().emitted == 9);
    CHECK(emitted == 9);
}

TEST_CASE("a host cancels midway, and its waiting push returns") {
    Pool pool({.max_threads = 2});
    std::atomic<int> emitted{0};
    auto run = pipeline<int>("cancelled")
                   .map("slow",
                        [](int x) {
                            std::this_thread::sleep_for(std::chrono::milliseconds(1));
                            return x;
                        })
                   .in_order("count", [&](int) { ++emitted; });
    auto handle = run.start(pool, {.open_items = 4});
    std::atomic<bool> refused{false};
    std::thread host([&] {
        for (int i = 0; i < 1000000; ++i) {
            if (!handle.push(i)) {
                refused = true;
                return;
            }
        }
    });
    while (emitted < 10) std::this_thread::yield();
    handle.cancel();
    host.join();
    CHECK(refused);
    CHECK_THROWS_AS(handle.wait(), Error);
}

TEST_CASE("a handle that is dropped ends its run") {
    Pool pool({.max_threads = 2});
    std::atomic<int> begun{0};
    auto run = pipeline<int>("dropped")
                   .map("slow",
                        [&](int x) {
                            ++begun;
                            return x;
                        })
                   .in_order("ignore", [](int) {});
    {
        auto handle = run.start(pool);
        for (int i = 0; i < 10; ++i) REQUIRE(handle.push(i));
    }
    const int after = begun;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK(begun == after);
}

TEST_CASE("pipelines share a pool, and one inside a stage of another works on itself") {
    Pool pool({.max_threads = 2});
    std::vector<long> results;
    auto outer = pipeline<long>("outer")
                     .source(std::views::iota(1L, 30L))
                     .map("inner run",
                          [&](long n) {
                              long sum = 0;
                              auto inner = pipeline<long>("inner")
                                               .source(std::views::iota(0L, n))
                                               .map("same", [](long x) { return x; })
                                               .in_order("sum", [&](long x) { sum += x; });
                              static_cast<void>(inner.run(pool));
                              return sum;
                          })
                     .in_order("collect", [&](long x) { results.push_back(x); });
    static_cast<void>(outer.run(pool));
    REQUIRE(results.size() == 29);
    for (long n = 1; n < 30; ++n) REQUIRE(results[static_cast<std::size_t>(n - 1)] == n * (n - 1) / 2);
}

namespace {

/// A run in which four workers are inside a stage at once; it calls `at_once` while they are.
template <class AtOnce>
void with_four_inside(Pool& pool, AtOnce at_once) {
    std::atomic<int> inside{0};
    std::atomic<bool> all{false};
    long sum = 0;
    auto run = pipeline<long>("four at once")
                   .source(std::views::iota(0L, 1000L))
                   .map("meet",
                        [&](long x) {
                            if (++inside == 4) {
                                at_once();
                                all = true;
                            }
                            while (!all) std::this_thread::yield();
                            return x;
                        })
                   .in_order("sum", [&](long x) { sum += x; });
    static_cast<void>(run.run(pool));
    REQUIRE(sum == 499500);
}

void wait_for_threads(const Pool& pool, std::size_t wanted) {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (pool.threads() != wanted && std::chrono::steady_clock::now() < patience)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

} // namespace

TEST_CASE("a stage waits for a run that was started on the same pool long before") {
    Pool pool({.min_threads = 1, .max_threads = 1});
    std::vector<int> inner_results, results;
    auto inner = pipeline<int>("inner").map("add", [](int x) { return x + 1; }).in_order("collect", [&](int x) {
        inner_results.push_back(x);
    });
    auto started = inner.start(pool);
    REQUIRE(started.push(0));
    while (started.progress().finished < 1) std::this_thread::yield(); // so the only worker has taken it up
    auto outer = pipeline<int>("outer")
                     .source(std::views::iota(0, 3))
                     .map("wait",
                          [&](int x) {
                              if (x != 1) return x;
                              static_cast<void>(started.push(1));
                              started.close();
                              return static_cast<int>(started.wait().emitted);
                          })
                     .in_order("collect", [&](int x) { results.push_back(x); });
    static_cast<void>(outer.run(pool));
    CHECK(inner_results == std::vector<int>{1, 2});
    CHECK(results == std::vector<int>{0, 2, 2});
}

TEST_CASE("two stages wait for two runs that both of their threads had a part in") {
    for (int round = 0; round < 20; ++round) {
        Pool pool({.min_threads = 2, .max_threads = 2});
        auto add = [](const char* name) {
            return pipeline<int>(name).map("add", [](int x) { return x + 1; }).in_order("ignore", [](int) {});
        };
        auto one = add("one"), two = add("two");
        std::vector<Handle<int>> handles;
        handles.push_back(one.start(pool));
        handles.push_back(two.start(pool));
        std::atomic<int> waiting{0};
        std::vector<int> results;
        auto outer = pipeline<int>("outer")
                         .source(std::views::iota(0, 2))
                         .map("wait",
                              [&](int x) {
                                  ++waiting;
                                  // Both threads are in a stage, where the machine lets them be.
                                  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(1);
                                  while (waiting < 2 && std::chrono::steady_clock::now() < patience)
                                      std::this_thread::yield();
                                  auto& handle = handles[static_cast<std::size_t>(x)];
                                  static_cast<void>(handle.push(x));
                                  handle.close();
                                  return static_cast<int>(handle.wait().emitted);
                              })
                         .in_order("collect", [&](int x) { results.push_back(x); });
        static_cast<void>(outer.run(pool));
        REQUIRE(results == std::vector<int>{1, 1});
    }
}

TEST_CASE("a stage that waits for one run lets go of another that ends meanwhile") {
    for (int round = 0; round < 20; ++round) {
        Pool pool({.min_threads = 2, .max_threads = 2});
        auto add = [](const char* name) {
            return pipeline<int>(name).map("add", [](int x) { return x + 1; }).in_order("ignore", [](int) {});
        };
        auto one = add("one"), two = add("two");
        auto first = one.start(pool), second = two.start(pool);
        REQUIRE(first.push(1));
        REQUIRE(second.push(2));
        std::atomic<int> inside{0};
        std::vector<int> results;
        auto outer = pipeline<int>("outer")
                         .source(std::views::iota(0, 2))
                         .map("wait",
                              [&](int x) {
                                  ++inside;
                                  while (inside < 2) std::this_thread::yield(); // each on a thread of its own
                                  if (x == 0) return static_cast<int>(first.wait().emitted);
                                  second.close();
                                  const auto emitted = static_cast<int>(second.wait().emitted);
                                  first.close(); // only now: the other thread must not keep the second run's end
                                  return emitted;
                              })
                         .in_order("collect", [&](int x) { results.push_back(x); });
        static_cast<void>(outer.run(pool));
        REQUIRE(results == std::vector<int>{1, 1});
    }
}

TEST_CASE("a run that only a stage of another works on tells how far it has come") {
    Pool pool({.max_threads = 1});
    int told = 0;
    auto outer = pipeline<int>("outer")
                     .source(std::views::iota(0, 1))
                     .map("inner run",
                          [&](int x) {
                              auto inner = pipeline<int>("inner")
                                               .source(std::views::iota(0, 300))
                                               .map("slow",
                                                    [](int y) {
                                                        std::this_thread::sleep_for(std::chrono::milliseconds(4));
                                                        return y;
                                                    })
                                               .in_order("ignore", [](int) {});
                              Options options;
                              options.progress = [&](const Progress&) { ++told; };
                              static_cast<void>(inner.run(pool, options));
                              return x;
                          })
                     .in_order("ignore", [](int) {});
    static_cast<void>(outer.run(pool));
    CHECK(told >= 1);
}

TEST_CASE("a stage that waits for its own run is told so") {
    Pool pool({.max_threads = 1});
    std::atomic<Handle<int>*> own{nullptr};
    auto run = pipeline<int>("own")
                   .map("wait",
                        [&](int x) {
                            while (own == nullptr) std::this_thread::yield();
                            return static_cast<int>(own.load()->wait().emitted) + x;
                        })
                   .in_order("ignore", [](int) {});
    auto handle = run.start(pool);
    own = &handle;
    REQUIRE(handle.push(1));
    handle.close();
    CHECK_THROWS_WITH(handle.wait(), Catch::Contains("a stage of its own waits"));
}

TEST_CASE("a pool grows as long as there is work for more, sends the idle home, and grows again") {
    std::atomic<int> started{0}, stopped{0};
    {
        Pool pool({.min_threads = 1,
                   .max_threads = 4,
                   .on_thread_start = [&] { ++started; },
                   .on_thread_stop = [&] { ++stopped; }});
        auto idle = pipeline<int>("idle").in_order("ignore", [](int) {});
        auto handle = idle.start(pool);
        // Looked at inside: later some may have gone home, and others started.
        std::size_t threads = 0;
        int so_far = 0;
        const auto look = [&] {
            threads = pool.threads();
            so_far = started - stopped; // those that have gone home before may have been others
        };
        with_four_inside(pool, look);
        CHECK(threads == 4);
        CHECK(so_far >= 4); // one that goes home may not have said so yet
        wait_for_threads(pool, 1);
        CHECK(pool.threads() == 1);
        handle.close();
        CHECK(handle.wait().threads_peak == 4); // however few are left
        const int before = started;
        with_four_inside(pool, look);
        CHECK(threads == 4);
        CHECK(so_far >= 4); // one that goes home may not have said so yet
        CHECK(started >= before + 3);
    }
    CHECK(stopped == started);
}

TEST_CASE("the last worker stays while all others wait for what only it can do, however long nothing comes") {
    Pool pool({.min_threads = 1, .max_threads = 2});
    std::atomic<int> waiting{0};
    std::atomic<bool> came{false};
    auto run = pipeline<int>("awaited")
                   .map("wait",
                        [&](int x, Context& context) {
                            if (x == 2) came = true;
                            if (x == 2) return x;
                            ++waiting;
                            const auto blocking = context.blocking();
                            while (!came && !context.stopping())
                                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                            return x;
                        })
                   .in_order("ignore", [](int) {});
    auto handle = run.start(pool);
    handle.push(0);
    handle.push(1);
    while (waiting < 2) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::seconds(6)); // longer than an idle worker stays where it is not needed
    handle.push(2);
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!came && std::chrono::steady_clock::now() < patience)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(came);
    if (!came) handle.cancel();
    handle.close();
    if (came) CHECK(handle.wait().emitted == 3);
}

TEST_CASE("a run that waits for its host uses no CPU") {
    Pool pool({.min_threads = 3, .max_threads = 3});
    std::atomic<int> seen{0};
    auto run = pipeline<int>("waiting").map("same", [](int x) { return x; }).in_order("count", [&](int) { ++seen; });
    auto handle = run.start(pool);
    for (int i = 0; i < 100; ++i) handle.push(i);
    while (seen < 100) std::this_thread::yield();
    const auto cpu_time = [] {
        timespec now{};
        REQUIRE(::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0);
        return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
    };
    // One that polls would use most of each 400 ms; one that falls asleep does so in one of them.
    auto least = std::chrono::nanoseconds::max();
    for (int window = 0; window < 20 && least >= std::chrono::milliseconds(40); ++window) {
        const auto before = cpu_time();
        std::this_thread::sleep_for(std::chrono::milliseconds(400));
        least = std::min<std::chrono::nanoseconds>(least, cpu_time() - before);
    }
    CHECK(least < std::chrono::milliseconds(40));
    handle.close();
    static_cast<void>(handle.wait());
}

TEST_CASE("of the pipelines on a pool the one with the highest priority is served first") {
    Pool pool({.min_threads = 1, .max_threads = 1});
    std::vector<std::string> order;
    std::atomic<bool> go{false}, begun{false};
    const auto named = [&](std::string name) {
        return pipeline<int>(name)
            .map("note",
                 [&, name](int x) {
                     begun = true;
                     while (!go) std::this_thread::yield();
                     order.push_back(name);
                     return x;
                 })
            .in_order("ignore", [](int) {});
    };
    auto first = named("first"), low = named("low"), high = named("high");
    auto holds = first.start(pool);
    holds.push(0); // keeps the only worker until the others have their items
    while (!begun) std::this_thread::yield();
    auto one = low.start(pool, {.priority = 1});
    auto two = high.start(pool, {.priority = 2});
    for (int i = 0; i < 5; ++i) one.push(i);
    for (int i = 0; i < 5; ++i) two.push(i);
    go = true;
    for (auto* handle : {&holds, &one, &two}) handle->close();
    for (auto* handle : {&holds, &one, &two}) static_cast<void>(handle->wait());
    REQUIRE(order.size() == 11);
    CHECK(std::find(order.begin(), order.end(), "low") - std::find(order.begin(), order.end(), "high") == 5);
}

TEST_CASE("progress is told by one worker at a time and never goes back") {
    std::uint64_t last = 0;
    int inside = 0, told = 0; // as plain as a host's own
    bool wrong = false;
    auto run = pipeline<int>("progress")
                   .source(std::views::iota(0, 300))
                   .map("slow",
                        [](int x) {
                            std::this_thread::sleep_for(std::chrono::milliseconds(4));
                            return x;
                        })
                   .in_order("ignore", [](int) {});
    Options options{.threads = 2};
    options.progress = [&](const Progress& progress) {
        if (++inside != 1 || progress.finished < last || progress.expected != 300) wrong = true;
        last = progress.finished;
        ++told;
        --inside;
    };
    static_cast<void>(run.run(options));
    CHECK_FALSE(wrong);
    CHECK(told >= 1);
}
