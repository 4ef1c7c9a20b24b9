// A family's hold on its parent's payload: children pin it while a stage has them, and it spills only with no pins.
//
//     switch (pins.try_pin()) {
//     case Pin::held: ...the payload is in memory until unpin()...
//     case Pin::cold: ...we alone must load it, then call loaded()...
//     case Pin::busy: ...another is moving it: come back later...
//     }
//
// One word: state in the upper half, pins in the lower, so that "no pins" and "spill it" are one step.
#pragma once

#include "base/atomics.hpp"

#include <cstdint>

namespace spillway {

enum class Pin : std::uint8_t { held, cold, busy };

template <class Atomics = StandardAtomics>
class PinWord {
public:
    /// Acquire: pairs with loaded()'s release, so that whoever holds a pin sees the payload.
    [[nodiscard]] Pin try_pin() noexcept {
        std::uint64_t seen = word_.load(std::memory_order_relaxed);
        for (;;) {
            switch (seen >> 32U) {
            case in_memory:
                if (word_.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire)) return Pin::held;
                break;
            case on_disk:
                if (word_.compare_exchange_weak(seen, moving << 32U, std::memory_order_acquire)) return Pin::cold;
                break;
            default:
                return Pin::busy;
            }
        }
    }

    /// Release: what the holder read and wrote comes before the spill that no pins allow. Whether this was the last
    /// pin.
    bool unpin() noexcept { return (word_.fetch_sub(1, std::memory_order_release) & 0xffffffffU) == 1; }

    /// In memory without pins -> ours to write out. Acquire: pairs with unpin().
    [[nodiscard]] bool try_spill() noexcept {
        std::uint64_t expected = in_memory << 32U;
        return word_.compare_exchange_strong(expected, moving << 32U, std::memory_order_acquire,
                                             std::memory_order_relaxed);
    }

    /// After try_spill(): where it is now.
    void spilled(bool on_disk_now) noexcept {
        word_.store((on_disk_now ? on_disk : in_memory) << 32U, std::memory_order_release);
    }

    /// After Pin::cold: in memory, with the loader's pin.
    void loaded() noexcept { word_.store(in_memory << 32U | 1U, std::memory_order_release); }

    /// After Pin::cold: it could not be read; the next to come may try again.
    void not_loaded() noexcept { word_.store(on_disk << 32U, std::memory_order_release); }

    /// For the one who frees it: no child is left.
    [[nodiscard]] bool is_on_disk() const noexcept { return word_.load(std::memory_order_acquire) >> 32U == on_disk; }

private:
    static constexpr std::uint64_t in_memory = 0, on_disk = 1, moving = 2;
    typename Atomics::template atomic<std::uint64_t> word_{0};
};

} // namespace spillway
