// Lets a table grow when none of its elements is free: by one thread at a time, while the others use what is there.
//
//     Growth growth;
//     growth.take([&] { return free.pop(mine); },                                        // whether there were any
//                 [&](std::uint32_t size) { ...make elements...; return new_size; },
//                 [&](std::uint32_t from, std::uint32_t to) { ...push them to free...; });
//     for (std::uint32_t i = 0; i < growth.size(); ++i) ...look at element i...
//
// Guarantee: each element is made once, before its index is below size(), and none is made while some are free. Cost of
// take(): one `take_some` where that finds some.
#pragma once

#include "base/atomics.hpp"
#include "base/try_lock.hpp"

#include <cstdint>
#include <mutex>

namespace spillway {

/// Thread safety: all methods from any thread. Whoever needs more while another makes some spins until they are there.
template <class Atomics = StandardAtomics>
class Growth {
public:
    /// Returns when `take_some()` has returned true. Throws what `make` and `give_out` throw.
    template <class TakeSome, class Make, class GiveOut>
    void take(const TakeSome& take_some, const Make& make, const GiveOut& give_out) {
        while (!take_some()) {
            const std::unique_lock mine(growing_, std::try_to_lock);
            if (!mine) {
                Atomics::pause(); // what the other adds is for all
                continue;
            }
            // Once more: the one before may have added some since the look above.
            if (take_some()) return;
            const std::uint32_t from = size_.load(std::memory_order_relaxed); // ordered by the lock
            const std::uint32_t to = make(from);
            // Release: pairs with size(), so that whoever looks at an element below it sees it made.
            size_.store(to, std::memory_order_release);
            give_out(from, to);
        }
    }

    /// Elements below this may be looked at. Acquire.
    [[nodiscard]] std::uint32_t size() const noexcept { return size_.load(std::memory_order_acquire); }

private:
    typename Atomics::template atomic<std::uint32_t> size_{0};
    TryLock<Atomics> growing_;
};

} // namespace spillway
