// Counts down to the last of several: whoever counts that one sees what all others left, and is the only one told.
//
//     Countdown left(1);                  // one for the producer
//     left.expect(2);                     // the producer, while it has not counted its own
//     if (left.arrive()) ...all are there...
#pragma once

#include "base/atomics.hpp"

#include <cstdint>

namespace spillway {

template <class Atomics = StandardAtomics>
class Countdown {
public:
    explicit Countdown(std::uint64_t count) : left_(count) {}

    /// Begins anew. Only by whom nobody else counts with; whatever hands the rest on to them orders this before.
    void begin(std::uint64_t count) noexcept { left_.store(count, std::memory_order_relaxed); }

    /// Only while something is left. Relaxed: whoever is told of the last one needs no order with this.
    void expect(std::uint64_t more) noexcept { left_.fetch_add(more, std::memory_order_relaxed); }

    /// True: these were the last. Acquire and release: pairs with every other arrive(), each of which leaves something.
    [[nodiscard]] bool arrive(std::uint64_t some = 1) noexcept {
        return left_.fetch_sub(some, std::memory_order_acq_rel) == some;
    }

private:
    typename Atomics::template atomic<std::uint64_t> left_;
};

} // namespace spillway
