// Counts the mutex and condition variable calls that our own code makes while candidates flow. The executable's own
// definitions stand before the C library's, for all code in the process; a call counts if it comes from this
// executable's text.
#include "spillway/pipeline.hpp"
#include "temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

extern "C" {
extern char __executable_start;
extern char etext;
}

namespace {

std::atomic<bool> counting{false};
std::atomic<std::uint64_t> calls{0};

void count(const void* caller) {
    const auto at = reinterpret_cast<std::uintptr_t>(caller);
    const bool ours =
        at >= reinterpret_cast<std::uintptr_t>(&__executable_start) && at < reinterpret_cast<std::uintptr_t>(&etext);
    if (ours && counting.load(std::memory_order_relaxed)) calls.fetch_add(1, std::memory_order_relaxed);
}

template <class F>
F* real(const char* name) {
    return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

} // namespace

// Each takes the place of the C library's function of its name, or of the C++ library's by its mangled one, counts its
// caller, and goes on there.
#define SPILLWAY_COUNTED(result, name, symbol, parameters, arguments)                                                  \
    extern "C" result name parameters __asm__(symbol);                                                                 \
    result name parameters {                                                                                           \
        static auto* next = real<result parameters>(symbol);                                                           \
        count(__builtin_return_address(0));                                                                            \
        return next arguments;                                                                                         \
    }
SPILLWAY_COUNTED(int, counted_timedlock, "pthread_mutex_timedlock", (void* mutex, const void* until), (mutex, until))
SPILLWAY_COUNTED(int, counted_clocklock, "pthread_mutex_clocklock", (void* mutex, int clock, const void* until),
                 (mutex, clock, until))
SPILLWAY_COUNTED(int, counted_timedwait, "pthread_cond_timedwait", (void* condition, void* mutex, const void* until),
                 (condition, mutex, until))
SPILLWAY_COUNTED(int, counted_clockwait, "pthread_cond_clockwait",
                 (void* condition, void* mutex, int clock, const void* until), (condition, mutex, clock, until))
SPILLWAY_COUNTED(int, counted_rdlock, "pthread_rwlock_rdlock", (void* lock), (lock))
SPILLWAY_COUNTED(int, counted_wrlock, "pthread_rwlock_wrlock", (void* lock), (lock))
SPILLWAY_COUNTED(int, counted_spin, "pthread_spin_lock", (void* lock), (lock))
SPILLWAY_COUNTED(int, counted_sem_wait, "sem_wait", (void* semaphore), (semaphore))
SPILLWAY_COUNTED(int, counted_sem_post, "sem_post", (void* semaphore), (semaphore))
// std::condition_variable calls the C library from inside the C++ library.
SPILLWAY_COUNTED(void, counted_wait, "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE",
                 (void* condition, void* lock), (condition, lock))
SPILLWAY_COUNTED(void, counted_one, "_ZNSt18condition_variable10notify_oneEv", (void* condition), (condition))
SPILLWAY_COUNTED(void, counted_all, "_ZNSt18condition_variable10notify_allEv", (void* condition), (condition))

extern "C" {
int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
    static auto* next = real<int(pthread_mutex_t*)>("pthread_mutex_lock");
    count(__builtin_return_address(0));
    return next(mutex);
}
int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
    static auto* next = real<int(pthread_mutex_t*)>("pthread_mutex_trylock");
    count(__builtin_return_address(0));
    return next(mutex);
}
int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
    static auto* next = real<int(pthread_cond_t*, pthread_mutex_t*)>("pthread_cond_wait");
    count(__builtin_return_address(0));
    return next(condition, mutex);
}
int pthread_cond_signal(pthread_cond_t* condition) noexcept {
    static auto* next = real<int(pthread_cond_t*)>("pthread_cond_signal");
    count(__builtin_return_address(0));
    return next(condition);
}
int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
    static auto* next = real<int(pthread_cond_t*)>("pthread_cond_broadcast");
    count(__builtin_return_address(0));
    return next(condition);
}
}

using namespace spillway;

namespace {

std::uint64_t counted(const std::function<void()>& what) {
    calls = 0;
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
    std::uint64_t spilled = 0; // how far workers run ahead is up to the machine: again, until something was
    for (int attempt = 0; attempt < 100 && spilled == 0; ++attempt) {
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
        Pool pool({.min_threads = 3, .max_threads = 3, .memory = {.memory = 1_MiB, .watch_process = false}});
        const Report report = run.run(pool, {.spill = SpillOptions{.directory = scratch.path(), .allow_tmpfs = true}});
        counting = false;
        CHECK(emitted == 4000);
        spilled += report.spilled;
        CHECK(calls == 0);
    }
    CHECK(spilled > 0);
}
