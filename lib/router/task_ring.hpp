// Tasks from one thread to another, done in order, so many at most on their way.
//
//     TaskRing<std::function<void()>, 64> ring;
//     ring.give(task); ring.wait(); ring.close();                    // one thread: wait() returns when all are done
//     ring.work([](std::function<void()>& task) { task(); });       // the other, until closed
//
// Guarantee: each task sees all that came before give(), whoever has waited sees all that the tasks did, and what was
// given before close() is done. Neither side sleeps through the other: see event_count.hpp.
#pragma once

#include "base/atomics.hpp"
#include "pool/event_count.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace spillway {

template <class Task, std::size_t Room, class Atomics = StandardAtomics>
class TaskRing {
public:
    // The giver's.

    /// Waits for room.
    void give(Task task) {
        const std::uint64_t given = given_.load(std::memory_order_relaxed);
        // Acquire: the place's last task is over.
        wait_until([&] { return given - finished_.load(std::memory_order_acquire) < Room; });
        tasks_[given % Room] = std::move(task);
        given_.store(given + 1, std::memory_order_release); // pairs with the acquire in work()
        work_.notify();
    }

    /// Whether wait() would return at once. Acquire: pairs with the release in work(), so that what the tasks wrote is
    /// seen.
    [[nodiscard]] bool done() const noexcept {
        return finished_.load(std::memory_order_acquire) == given_.load(std::memory_order_relaxed);
    }

    void wait() noexcept {
        wait_until([this] { return done(); });
    }

    /// Nothing more will be given; work() returns when all is done.
    void close() noexcept {
        // Relaxed: the fence in the last give()'s notify makes it a release of all that was given.
        closing_.store(true, std::memory_order_relaxed);
        work_.notify_all();
    }

    // The worker's.

    template <class Do>
    void work(Do execute) {
        for (std::uint64_t finished = 0;; ++finished) {
            const auto more = [&] { return given_.load(std::memory_order_acquire) != finished; };
            for (;;) {
                // Acquire, before the look at what was given: pairs with close(), so that the last ones are seen.
                const bool closing = closing_.load(std::memory_order_acquire);
                if (more()) break;
                if (closing) return;
                const auto ticket = work_.prepare_wait();
                if (more() || closing_.load(std::memory_order_relaxed)) {
                    work_.cancel_wait();
                } else {
                    work_.wait(ticket);
                }
            }
            Task& task = tasks_[finished % Room];
            execute(task);
            task = Task(); // frees what it captured before wait() returns
            finished_.store(finished + 1, std::memory_order_release);
            done_.notify_all();
        }
    }

private:
    template <class Condition>
    void wait_until(Condition condition) noexcept {
        while (!condition()) {
            const auto ticket = done_.prepare_wait();
            if (condition()) {
                done_.cancel_wait();
            } else {
                done_.wait(ticket);
            }
        }
    }

    std::array<Task, Room> tasks_{};
    typename Atomics::template atomic<std::uint64_t> given_{0}, finished_{0}; // they only grow
    typename Atomics::template atomic<bool> closing_{false};
    EventCount<Atomics> work_, done_;
};

} // namespace spillway
