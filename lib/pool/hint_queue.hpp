// The queue before a stage: hints, many producers, many consumers, no order that anyone may rely on.
//
//     HintQueue queue;
//     HintQueue::Tokens mine(queue);                    // one a seat
//     queue.push(mine, hints);
//     std::size_t n = queue.take(mine, room);
//
// Cost: with tokens and in bulk some nanoseconds a hint; the backlog counter is touched once for each group.
#pragma once

#include "base/atomics.hpp"
#include "directory/state_word.hpp"

#include <concurrentqueue/concurrentqueue.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

namespace spillway::detail {

class HintQueue {
public:
    class Tokens {
    public:
        explicit Tokens(HintQueue& queue) : producer_(queue.hints_), consumer_(queue.hints_) {}

    private:
        friend class HintQueue;
        moodycamel::ProducerToken producer_;
        moodycamel::ConsumerToken consumer_;
    };

    /// Throws std::bad_alloc; then none was pushed.
    void push(Tokens& tokens, std::span<const Hint> hints) {
        if (!hints_.enqueue_bulk(tokens.producer_, hints.data(), hints.size())) throw std::bad_alloc();
        backlog_.fetch_add(static_cast<std::int64_t>(hints.size()), std::memory_order_relaxed);
    }

    /// From a thread without a seat.
    void push(const Hint& hint) {
        if (!hints_.enqueue(hint)) throw std::bad_alloc();
        backlog_.fetch_add(1, std::memory_order_relaxed);
    }

    [[nodiscard]] std::size_t take(Tokens& tokens, std::span<Hint> out) {
        return taken(hints_.try_dequeue_bulk(tokens.consumer_, out.data(), out.size()));
    }

    /// For queues that are seldom used: dearer, and no tokens to keep.
    [[nodiscard]] std::size_t take(std::span<Hint> out) {
        return taken(hints_.try_dequeue_bulk(out.data(), out.size()));
    }

    /// About how many hints are in it, stale ones included. May lag behind and be negative for a moment.
    [[nodiscard]] std::int64_t backlog() const noexcept { return backlog_.load(std::memory_order_relaxed); }

private:
    std::size_t taken(std::size_t count) noexcept {
        if (count > 0) backlog_.fetch_sub(static_cast<std::int64_t>(count), std::memory_order_relaxed);
        return count;
    }

    moodycamel::ConcurrentQueue<Hint> hints_;
    alignas(cache_line_pair) std::atomic<std::int64_t> backlog_{0};
};

} // namespace spillway::detail
