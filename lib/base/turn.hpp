// One thread at a time, for what all others would wait for anyway: a contig that is being loaded, a handle that htslib
// shares without a lock. Never taken for a candidate.
//
//     Turn turn;
//     const std::lock_guard mine(turn);
//
// Whoever waits sleeps. Cost without others: one exchange to begin, one to end.
#pragma once

#include "base/atomics.hpp"

namespace spillway {

template <class Atomics = StandardAtomics>
class Turn {
public:
    /// Acquire: pairs with the release of unlock(), so that what the last one left is seen.
    void lock() noexcept {
        std::uint32_t expected = free;
        if (word_.compare_exchange_strong(expected, taken, std::memory_order_acquire, std::memory_order_relaxed))
            return;
        // From here on the word says that somebody may sleep, also while this thread has the turn: who does is woken
        // when it ends.
        while (word_.exchange(awaited, std::memory_order_acquire) != free) Atomics::futex_wait(word_, awaited);
    }

    void unlock() noexcept {
        if (word_.exchange(free, std::memory_order_release) == awaited) Atomics::futex_wake(word_, 1);
    }

private:
    static constexpr std::uint32_t free = 0, taken = 1, awaited = 2;
    typename Atomics::template atomic<std::uint32_t> word_{free};
};

} // namespace spillway
