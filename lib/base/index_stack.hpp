// A lock-free stack of indices into a table whose entries never go away: the free list of regions and of segments.
//
//     IndexStack<> free;
//     auto next = [&](std::uint32_t index) -> std::atomic<std::uint32_t>& { return table[index].next; };
//     free.push(7, next);
//     std::uint32_t index = free.pop(next);     // 7, or IndexStack<>::none
//
// Guarantee: an index pushed once is popped at most once, and who pops it sees all that who pushed it had written.
// Mechanism: the head carries a tag that every change raises, so that a pop which slept through pops and pushes of the
// same index fails and tries again (the ABA problem); the links lie in the table, whose entries may be read at any
// time.
#pragma once

#include "base/atomics.hpp"

#include <cstdint>

namespace spillway {

/// Thread safety: all methods from any thread, lock-free. An index must not be pushed again before it was popped.
template <class Atomics = StandardAtomics>
class IndexStack {
public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    /// Release: what the caller wrote before is seen by whoever pops the index.
    template <typename Next>
    void push(std::uint32_t index, const Next& next) noexcept {
        std::uint64_t head = head_.load(std::memory_order_relaxed);
        do {
            next(index).store(index_of(head), std::memory_order_relaxed);
        } while (!head_.compare_exchange_weak(head, after(head, index), std::memory_order_release,
                                              std::memory_order_relaxed));
    }

    /// The newest index, or none. Acquire.
    template <typename Next>
    [[nodiscard]] std::uint32_t pop(const Next& next) noexcept {
        std::uint64_t head = head_.load(std::memory_order_acquire);
        while (index_of(head) != none) {
            // The index may be popped and pushed by others meanwhile; then this link is out of date, and the tag tells.
            const std::uint32_t below = next(index_of(head)).load(std::memory_order_relaxed);
            // Acquire for where it fails, and the link of the head that it then finds. Where it succeeds, the tag says
            // that this is the very head that was acquired before.
            if (head_.compare_exchange_weak(head, after(head, below), std::memory_order_acquire,
                                            std::memory_order_acquire)) {
                return index_of(head);
            }
        }
        return none;
    }

private:
    static constexpr std::uint32_t index_of(std::uint64_t head) noexcept { return static_cast<std::uint32_t>(head); }
    static constexpr std::uint64_t after(std::uint64_t head, std::uint32_t index) noexcept {
        return ((head >> 32U) + 1U) << 32U | index;
    }

    typename Atomics::template atomic<std::uint64_t> head_{none};
};

} // namespace spillway
