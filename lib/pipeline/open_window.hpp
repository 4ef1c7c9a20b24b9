// How many source items are open at once: the producer is refused beyond the window, and whoever lets one pass learns
// whether somebody was refused.
//
//     if (window.may_open(limit, held)) { ...make n...; window.open(n); }
//     if (window.pass(k, limit)) ...wake the producer: it may open again...
//
// Guarantee: of a refusal and the passing that would have prevented it, at least one side sees the other. Mechanism:
// each writes, fences, then reads what the other writes.
#pragma once

#include "base/atomics.hpp"

#include <cstdint>

namespace spillway {

template <class Atomics = StandardAtomics>
class OpenWindow {
public:
    /// `held` says whether memory forbids it for now. The head itself, and what it needs, always may.
    template <class Held>
    [[nodiscard]] bool may_open(std::uint64_t window, Held held) noexcept {
        if (begun_.load(std::memory_order_relaxed) < needed_.load(std::memory_order_relaxed)) return true;
        const std::uint64_t open = still_open(passed_.load(std::memory_order_relaxed));
        if (open == 0) return true;
        if (open >= window || held()) {
            refused_.store(true, std::memory_order_relaxed);
            Atomics::fence_seq_cst(); // pairs with the one in pass()
            return still_open(passed_.load(std::memory_order_relaxed)) < window && !held();
        }
        return open <= window - window / 4 || !refused_.load(std::memory_order_relaxed);
    }

    void open(std::uint64_t count) noexcept { begun_.fetch_add(count, std::memory_order_relaxed); }

    /// Items before `ordinal` have passed. True: whoever was refused is to be woken. A full window opens again when a
    /// part of it has passed, so that workers are not woken for one item each.
    [[nodiscard]] bool pass(std::uint64_t ordinal, std::uint64_t window) noexcept {
        passed_.store(ordinal, std::memory_order_relaxed);
        Atomics::fence_seq_cst(); // pairs with the one in may_open()
        if (!refused_.load(std::memory_order_relaxed)) return false;
        if (still_open(ordinal) > window - window / 4) return false;
        refused_.store(false, std::memory_order_relaxed);
        return true;
    }

    /// The head waits for items before `ordinal` to be made, room or not. True: that is news.
    [[nodiscard]] bool need(std::uint64_t ordinal) noexcept {
        return needed_.exchange(ordinal, std::memory_order_relaxed) < ordinal;
    }

    [[nodiscard]] std::uint64_t begun() const noexcept { return begun_.load(std::memory_order_relaxed); }
    /// The head's ordinal.
    [[nodiscard]] std::uint64_t passed() const noexcept { return passed_.load(std::memory_order_relaxed); }
    [[nodiscard]] bool refused() const noexcept { return refused_.load(std::memory_order_relaxed); }

private:
    /// An older count of what was begun may be read than of what has passed.
    [[nodiscard]] std::uint64_t still_open(std::uint64_t passed) const noexcept {
        const std::uint64_t begun = begun_.load(std::memory_order_relaxed);
        return begun > passed ? begun - passed : 0;
    }

    typename Atomics::template atomic<bool> refused_{false};
    alignas(cache_line_pair) typename Atomics::template atomic<std::uint64_t> begun_{0};
    alignas(cache_line_pair) typename Atomics::template atomic<std::uint64_t> passed_{0};
    typename Atomics::template atomic<std::uint64_t> needed_{0};
};

} // namespace spillway
