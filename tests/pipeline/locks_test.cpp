// Where candidates flow, our own code takes no lock.
#include "locks.hpp"
#include "spillway/pipeline.hpp"
#include "temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include <semaphore.h>

using namespace spillway;

namespace {

/// Calls of this thread while `what` runs.
std::uint64_t counted(const std::function<void()>& what) {
    calls = 0;
    on_counted_thread = true;
    counting = true;
    what();
    counting = false;
    return calls;
}

} // namespace

TEST_CASE("the count of locks sees a lock, a condition variable, a shared lock and a semaphore") {
    std::mutex mutex;
    std::condition_variable condition;
    std::shared_mutex shared;
    std::timed_mutex timed;
    sem_t plain;
    REQUIRE(::sem_init(&plain, 0, 1) == 0);
    CHECK(counted([&] { const std::lock_guard lock(mutex); }) == 1);
    CHECK(counted([&] { condition.notify_one(); }) >= 1);
    CHECK(counted([&] { condition.notify_all(); }) >= 1);
    CHECK(counted([&] {
              std::unique_lock lock(mutex);
              static_cast<void>(condition.wait_for(lock, std::chrono::microseconds(1)));
          }) == 2);
    CHECK(counted([&] { const std::lock_guard lock(shared); }) == 1);
    CHECK(counted([&] { const std::shared_lock lock(shared); }) == 1);
    CHECK(counted([&] {
              if (timed.try_lock_for(std::chrono::milliseconds(1))) timed.unlock();
          }) == 1);
    CHECK(counted([&] { ::sem_wait(&plain); }) == 1);
    CHECK(counted([&] { ::sem_post(&plain); }) == 1);
    ::sem_destroy(&plain);
    std::thread waiter;
    bool ready = false;
    CHECK(counted([&] {
              waiter = std::thread([&] {
                  on_counted_thread = true;
                  const std::lock_guard lock(mutex);
                  ready = true;
                  condition.notify_one();
              });
              std::unique_lock lock(mutex);
              while (!ready) condition.wait(lock);
          }) >= 3);
    waiter.join();
}

TEST_CASE("from source to sink our code calls no mutex and no condition variable") {
    // How far workers run ahead is up to the machine: again, until something was spilled. And again where a call came of
    // a thread that had not got so far yet, as on a busy machine: one of ours comes in each run.
    int spilling = 0;
    std::uint64_t least = 1;
    for (int attempt = 0; attempt < 100 && spilling < 20 && least > 0; ++attempt) {
        const spillway::test::TemporaryDirectory scratch;
        std::size_t emitted = 0;
        std::atomic<int> workers{0};
        resources<int> things(2, [] { return 1; });
        auto run = pipeline<int>("lock-free")
                       .source(std::views::iota(0, 4000))
                       .fan_out("children",
                                [&](const int& n, int&) -> generator<std::vector<int>> {
                                    while (workers < 3)
                                        std::this_thread::yield(); // until all have started: starting may lock
                                    for (int i = 0; i < n % 5; ++i) {
                                        std::vector<int> child(2000, n);
                                        co_yield std::move(child);
                                    }
                                })
                       .local([&] { return ++workers; })
                       .map("limited",
                            [](std::vector<int>& child) {
                                if (child[0] % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
                            })
                       .limit(1)
                       .map("borrows", [](std::vector<int>& child, int& lent) { child[1] = lent; })
                       .resource(things)
                       .batch("together",
                              [](batch<std::vector<int>>& children) {
                                  for (std::vector<int>& child : children) child.push_back(1);
                              },
                              {.cells = {}, .full = 16})
                       .gather<int>("gather",
                                    [](int& n, batch<std::vector<int>>& children) {
                                        return n + static_cast<int>(children.size());
                                    })
                       .in_order("count", [&](int) {
                           ++emitted;
                           if (emitted == 500) counting = true; // warm: all threads have started
                           if (emitted == 3500) counting = false;
                       });
        calls = 0;
        Pool pool({.min_threads = 3,
                   .max_threads = 3,
                   .memory = {.memory = 1_MiB, .watch_process = false},
                   .on_thread_start = [] { on_counted_thread = true; }});
        const Report report = run.run(pool, {.spill = SpillOptions{.directory = scratch.path(), .allow_tmpfs = true}});
        counting = false;
        CHECK(emitted == 4000);
        if (report.spilled == 0) continue;
        least = spilling++ == 0 ? calls.load() : std::min(least, calls.load());
    }
    CHECK(spilling > 0);
    CHECK(least == 0);
}
