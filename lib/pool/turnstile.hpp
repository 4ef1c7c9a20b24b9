// Lets at most so many threads in at once. Whoever is refused goes away, so whoever leaves wakes one to look again.
//
//     if (turnstile.enter(limit)) {
//         ...
//         turnstile.leave();
//         if (queue.backlog() > 0) events.notify(1);
//     }
//
// Guarantee: a thread that was refused, and then prepared to wait, is woken by the one that leaves, if that one finds
// something left to do. Mechanism: the refused one's look comes after the fence of its prepare_wait(), the leaver's
// look at the queue after the fence in leave(), so at least one of the two sees the other.
#pragma once

#include "base/atomics.hpp"

#include <cstddef>
#include <cstdint>

namespace spillway {

template <class Atomics = StandardAtomics>
class Turnstile {
public:
    /// Acquire: pairs with leave(), so that where the limit is one, each sees what the last one wrote.
    [[nodiscard]] bool enter(std::size_t limit) noexcept {
        if (inside_.fetch_add(1, std::memory_order_acquire) < limit) return true;
        inside_.fetch_sub(1, std::memory_order_relaxed);
        return false;
    }

    void leave() noexcept {
        inside_.fetch_sub(1, std::memory_order_release);
        Atomics::fence_seq_cst(); // pairs with the one in EventCount::prepare_wait(): see above
    }

private:
    typename Atomics::template atomic<std::uint32_t> inside_{0};
};

} // namespace spillway
