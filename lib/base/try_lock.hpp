// One thread at a time, and the others go on with something else: for what need not be done twice at once.
//
//     TryLock growing;
//     if (const std::unique_lock mine(growing, std::try_to_lock); mine) ...grow...
//
// Nobody sleeps for it. lock() spins: only where it is held for a short time and few ever wait.
#pragma once

#include "base/atomics.hpp"

namespace spillway {

template <class Atomics = StandardAtomics>
class TryLock {
public:
    [[nodiscard]] bool try_lock() noexcept {
        // Relaxed: only spares the line a write while another has it.
        if (taken_.load(std::memory_order_relaxed)) return false;
        // Acquire: pairs with the release of unlock(), so that what the last one left is seen.
        return !taken_.exchange(true, std::memory_order_acquire);
    }

    /// Acquire, as try_lock().
    void lock() noexcept {
        while (taken_.exchange(true, std::memory_order_acquire)) Atomics::pause();
    }

    void unlock() noexcept { taken_.store(false, std::memory_order_release); }

private:
    typename Atomics::template atomic<bool> taken_{false};
};

} // namespace spillway
