// How many threads there are and how many of them wait for something else, so that enough are left for what those may
// wait for.
//
//     count.block(); if (count.threads() < enough + count.blocked()) ...start one more...; ...wait...; count.unblock();
//     if (count.leave(enough)) return;                                                // of a thread that could end
//
// Guarantee: of a thread that blocks and one that leaves beside it, the first sees one thread less, or the second one
// more blocked, and stays. Mechanism: each writes, fences, then reads what the other writes.
#pragma once

#include "base/atomics.hpp"

#include <cstddef>

namespace spillway {

/// Thread safety: all methods from any thread, except that one at a time adds or leaves. Relaxed but for the fences: the
/// counts are all that is shared.
template <class Atomics = StandardAtomics>
class Headcount {
public:
    [[nodiscard]] std::size_t threads() const noexcept { return threads_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::size_t blocked() const noexcept { return blocked_.load(std::memory_order_relaxed); }

    void add() noexcept { threads_.fetch_add(1, std::memory_order_relaxed); }
    /// Of one that is gone whatever the others do.
    void remove() noexcept { threads_.fetch_sub(1, std::memory_order_relaxed); }

    void block() noexcept {
        blocked_.fetch_add(1, std::memory_order_relaxed);
        Atomics::fence_seq_cst(); // pairs with the one in leave()
    }
    void unblock() noexcept { blocked_.fetch_sub(1, std::memory_order_relaxed); }

    /// False: fewer than `least` would be left beside those that block. Else one thread less is counted.
    [[nodiscard]] bool leave(std::size_t least) noexcept {
        threads_.fetch_sub(1, std::memory_order_relaxed);
        Atomics::fence_seq_cst(); // pairs with the one in block()
        if (threads() >= least + blocked()) return true;
        add();
        return false;
    }

private:
    typename Atomics::template atomic<std::size_t> threads_{0}, blocked_{0};
};

} // namespace spillway
