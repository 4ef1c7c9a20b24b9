// Counts the mutex and condition variable calls that our own code makes while candidates flow. The executable's own
// definitions stand before the C library's, for all code in the process; a call counts if it comes from this
// executable's text.
#include "spillway/pipeline.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <pthread.h>

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

TEST_CASE("the count of locks sees a lock") {
    std::mutex mutex;
    calls = 0;
    counting = true;
    { const std::lock_guard lock(mutex); }
    counting = false;
    CHECK(calls == 1);
}

TEST_CASE("from source to sink our code calls no mutex and no condition variable") {
    std::string pattern = (std::filesystem::temp_directory_path() / "spillway-test-XXXXXX").string();
    const std::string scratch = ::mkdtemp(pattern.data());
    std::size_t emitted = 0;
    std::atomic<int> workers{0};
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
                   .batch("together",
                          [](batch<std::vector<int>>& children) {
                              for (std::vector<int>& child : children) child.push_back(1);
                          },
                          {.cells = {}, .full = 16})
                   .gather<int>(
                       "gather",
                       [](int& n, batch<std::vector<int>>& children) { return n + static_cast<int>(children.size()); })
                   .in_order("count", [&](int) {
                       ++emitted;
                       if (emitted == 500) counting = true; // warm: all threads have started
                       if (emitted == 3500) counting = false;
                   });
    calls = 0;
    Pool pool({.min_threads = 3, .max_threads = 3, .memory = {.memory = 1_MiB, .watch_process = false}});
    const Report report = run.run(pool, {.spill = SpillOptions{.directory = scratch, .allow_tmpfs = true}});
    counting = false;
    CHECK(emitted == 4000);
    CHECK(report.spilled > 0);
    CHECK(calls == 0);
    std::filesystem::remove_all(scratch);
}
