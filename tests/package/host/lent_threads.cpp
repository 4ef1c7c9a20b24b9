// A oneTBB arena lends its threads to a run: two candidates meet that one thread alone could not bring together.
#include <spillway/tbb.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <ranges>
#include <thread>

int main() {
    std::atomic<int> met{0};
    const auto meet = [&](int candidate) {
        ++met;
        const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
        while (met < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
        return met >= 2 ? candidate : -1;
    };
    int sum = 0;
    auto meeting = spillway::pipeline<int>("meeting")
                       .source(std::views::iota(1, 11))
                       .map("meet", meet)
                       .in_order("sum", [&](int candidate) { sum += candidate; });
    spillway::Pool pool({.max_threads = 1});
    tbb::task_arena arena(3);
    auto handle = meeting.start(pool);
    const spillway::Report report = spillway::run_in(arena, handle);
    std::printf("%d %llu\n", sum, static_cast<unsigned long long>(report.emitted));
}
