// Growing tables and their free lists on the machine's own atomics, under load: what the sanitizers watch.
#include "base/chunked_array.hpp"
#include "base/index_stack.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <thread>
#include <vector>

using namespace spillway;

TEST_CASE("a chunked array grows under many threads and moves nothing") {
    ChunkedArray<std::atomic<int>, 16, 64> array;
    array.make(0);
    const std::atomic<int>* const first = &array[0];
    std::vector<std::thread> threads;
    for (int thread = 0; thread != 4; ++thread) {
        threads.emplace_back([&] {
            for (std::size_t i = 0; i != decltype(array)::max_size; ++i) {
                array.make(i);
                ++array[i];
            }
        });
    }
    for (auto& thread : threads) thread.join();
    for (std::size_t i = 0; i != decltype(array)::max_size; ++i) CHECK(array[i] == 4);
    CHECK(first == &array[0]);
}

TEST_CASE("threads take entries from a free list and give them back, and none is had by two") {
    struct Entry {
        std::atomic<std::uint32_t> next{0};
        int uses = 0; // Not atomic: only its holder may touch it.
    };
    constexpr std::uint32_t entries = 6;
    constexpr int threads = 4, rounds = 20000;
    std::vector<Entry> table(entries);
    IndexStack<> free;
    const auto next = [&](std::uint32_t index) -> std::atomic<std::uint32_t>& { return table[index].next; };
    for (std::uint32_t index = 0; index != entries; ++index) free.push(index, next);
    std::vector<std::thread> workers;
    std::atomic<bool> lost{false};
    for (int thread = 0; thread != threads; ++thread) {
        workers.emplace_back([&] {
            for (int round = 0; round != rounds; ++round) {
                const std::uint32_t index = free.pop(next);
                if (index == IndexStack<>::none) {
                    lost = true; // There are more entries than threads.
                    return;
                }
                ++table[index].uses;
                free.push(index, next);
            }
        });
    }
    for (auto& worker : workers) worker.join();
    CHECK_FALSE(lost);
    int uses = 0;
    for (const Entry& entry : table) uses += entry.uses;
    CHECK(uses == threads * rounds);
}
