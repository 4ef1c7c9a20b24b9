// A value that is set once, by whoever is first; the others use the first one's.
//
//     SetOnce<int, -1> descriptor;
//     int file = descriptor.get();                          // -1: not yet
//     if (file < 0) {
//         const int fresh = open(...);
//         if ((file = descriptor.set(fresh)) != fresh) close(fresh);
//     }
//
// Guarantee: all that ever get a value get the same, and see all that whoever set it had done before.
#pragma once

#include "base/atomics.hpp"

namespace spillway {

/// Thread safety: all methods from any thread, lock-free.
template <class T, T Unset, class Atomics = StandardAtomics>
class SetOnce {
public:
    /// Acquire: pairs with the release of set().
    [[nodiscard]] T get() const noexcept { return value_.load(std::memory_order_acquire); }

    /// Returns what is set from now on: `fresh`, not Unset, or what another set before, and then `fresh` is the caller's.
    [[nodiscard]] T set(T fresh) noexcept {
        T first = Unset;
        // Acquire where another was first: its value is used, as by get().
        return value_.compare_exchange_strong(first, fresh, std::memory_order_release, std::memory_order_acquire)
                   ? fresh
                   : first;
    }

private:
    typename Atomics::template atomic<T> value_{Unset};
};

} // namespace spillway
