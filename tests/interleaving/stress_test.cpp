// EventCount and Drain on the machine's own atomics, under load: what the sanitizers watch. A lost wake-up hangs here.
#include "pool/drain.hpp"
#include "pool/event_count.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

namespace spillway {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

/// Threads that are all joined before the test looks at what they did.
template <class Body>
std::vector<std::thread> start(int count, Body body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
    return threads;
}

void join(std::vector<std::thread>& threads) {
    for (std::thread& thread : threads) thread.join();
}

bool take(std::atomic<int>& items) {
    int seen = items.load(relaxed);
    while (seen > 0) {
        if (items.compare_exchange_weak(seen, seen - 1, relaxed)) return true;
    }
    return false;
}

TEST_CASE("every item of several posters reaches a waiter, and every waiter learns of the end") {
    constexpr int posters = 3, waiters = 3, rounds = 4'000;
    EventCount<> idle;
    std::atomic<int> items{0}, taken{0};
    std::atomic<bool> closed{false};
    auto consumers = start(waiters, [&](int) {
        for (;;) {
            if (take(items)) {
                taken.fetch_add(1, relaxed);
                continue;
            }
            const auto ticket = idle.prepare_wait();
            if (items.load(relaxed) > 0) {
                idle.cancel_wait();
            } else if (closed.load(std::memory_order_acquire)) { // acquire: all items were posted before
                idle.cancel_wait();
                if (items.load(relaxed) == 0) return;
            } else {
                idle.wait(ticket);
            }
        }
    });
    auto producers = start(posters, [&](int poster) {
        for (int round = 0; round < rounds; ++round) {
            const int count = 1 + (round + poster) % 3;
            items.fetch_add(count, relaxed);
            idle.notify(static_cast<std::uint32_t>(count));
            if (round % 16 == 0) std::this_thread::yield(); // lets the waiters fall asleep now and then
        }
    });
    join(producers);
    closed.store(true, std::memory_order_release);
    idle.notify_all();
    join(consumers);
    CHECK(taken.load() == posters * rounds * 2);
    CHECK(items.load() == 0);
    CHECK(idle.waiters() == 0);
}

TEST_CASE("two threads that wake each other in turn both come to the end") {
    constexpr int rounds = 2'000;
    EventCount<> turn_changed;
    std::atomic<int> turn{0};
    std::uint64_t sum = 0; // plain: handed over with the turn
    auto players = start(2, [&](int me) {
        for (int round = me; round < rounds; round += 2) {
            while (turn.load(std::memory_order_acquire) != round) {
                const auto ticket = turn_changed.prepare_wait();
                if (turn.load(relaxed) == round) {
                    turn_changed.cancel_wait();
                } else {
                    turn_changed.wait(ticket);
                }
            }
            sum += static_cast<std::uint64_t>(round);
            turn.store(round + 1, std::memory_order_release);
            turn_changed.notify();
        }
    });
    join(players);
    CHECK(sum == std::uint64_t{rounds} * (rounds - 1) / 2);
}

TEST_CASE("a timed wait tells a notification from silence") {
    EventCount<> idle;
    CHECK_FALSE(idle.wait_for(idle.prepare_wait(), std::chrono::microseconds(100)));
    const auto ticket = idle.prepare_wait();
    CHECK(idle.notify() == 1);
    CHECK(idle.wait_for(ticket, std::chrono::hours(1)));
    CHECK(idle.waiters() == 0);
}

/// Whether a thread of this process sleeps in the kernel now.
bool sleeps(pid_t thread) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string text;
    std::getline(file, text);
    return text.substr(text.rfind(')') + 2, 1) == "S";
}

TEST_CASE("of several sleepers the lowest places are woken first, whoever came first") {
    constexpr int places = 4;
    EventCount<> idle;
    std::array<std::atomic<pid_t>, places> ids{};
    std::array<std::atomic<bool>, places> woken{};
    auto threads = start(places, [&](int place) {
        const auto ticket = idle.prepare_wait();
        ids[static_cast<std::size_t>(place)] = static_cast<pid_t>(::syscall(SYS_gettid));
        static_cast<void>(idle.wait_for(ticket, std::chrono::minutes(5), static_cast<std::size_t>(place)));
        woken[static_cast<std::size_t>(place)] = true;
    });
    // For a while, so that it is in the wait, and not on a lock that a sanitizer takes before it.
    for (int asleep = 0; asleep < 20; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
        const bool all = idle.futex_calls() == places &&
                         std::all_of(ids.begin(), ids.end(), [](const auto& id) { return id != 0 && sleeps(id); });
        asleep = all ? asleep + 1 : 0;
    }
    idle.notify(1);
    while (!woken[0]) std::this_thread::yield();
    CHECK_FALSE((woken[1] || woken[2] || woken[3]));
    idle.notify(2);
    while (!woken[1] || !woken[2]) std::this_thread::yield();
    CHECK_FALSE(woken[3]);
    idle.notify(5);
    join(threads);
    CHECK(woken[3]);
    CHECK(idle.waiters() == 0);
}

TEST_CASE("posting while nobody waits makes no system call") {
    EventCount<> idle;
    for (int i = 0; i < 10'000; ++i) CHECK(idle.notify(3) == 0);
    idle.notify_all();
    CHECK(idle.futex_calls() == 0);
}

TEST_CASE("what many publishers bring to a drain is written once, by one thread at a time") {
    constexpr int publishers = 4, items = 20'000;
    Drain<> drain;
    std::atomic<int> inbox{0};
    std::uint64_t written = 0, bodies = 0; // plain: the drain alone keeps them from racing
    auto threads = start(publishers, [&](int) {
        for (int i = 0; i < items; ++i) {
            inbox.fetch_add(1, relaxed);
            drain.run(
                [&] {
                    written += static_cast<std::uint64_t>(inbox.exchange(0, relaxed));
                    ++bodies;
                },
                [&] { return inbox.load(relaxed) > 0; });
        }
    });
    join(threads);
    CHECK(written == std::uint64_t{publishers} * items);
    CHECK(bodies <= std::uint64_t{publishers} * items);
}

TEST_CASE("a body that throws leaves the drain usable") {
    Drain<> drain;
    const auto nothing_more = [] { return false; };
    CHECK_THROWS_AS(drain.run([] { throw std::runtime_error("disk full"); }, nothing_more), std::runtime_error);
    bool ran = false;
    drain.run([&] { ran = true; }, nothing_more);
    CHECK(ran);
}

} // namespace
} // namespace spillway
