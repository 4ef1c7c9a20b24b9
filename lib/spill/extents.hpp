// Addresses for records of any length in one file: one extent behind the other, from the beginning again once none is
// left.
//
//     Extents extents;
//     if (const auto block = extents.take(5)) {...write five blocks from there...; extents.give(); }
//
// Guarantee: an address is one record's at a time, and comes again after all that was done there before. Mechanism: the
// end of what was ever handed out and the number of extents in use are one word, so whoever gives the last one back
// starts anew in the same step.
#pragma once

#include "base/atomics.hpp"

#include <cstdint>
#include <limits>
#include <optional>

namespace spillway {

/// Thread safety: all methods from any thread, lock-free.
template <class Atomics = StandardAtomics>
class Extents {
public:
    /// The first of so many blocks, at least one; nothing: the addresses are used up. Acquire: pairs with give().
    [[nodiscard]] std::optional<std::uint32_t> take(std::uint64_t blocks) noexcept {
        std::uint64_t seen = word_.load(std::memory_order_relaxed);
        std::uint64_t end = 0;
        do {
            end = seen >> 32U;
            if (blocks > most_blocks - end) return std::nullopt;
        } while (!word_.compare_exchange_weak(seen, (end + blocks) << 32U | (in_use(seen) + 1),
                                              std::memory_order_acquire, std::memory_order_relaxed));
        return static_cast<std::uint32_t>(end);
    }

    /// One that was taken is free, and with it its record's blocks. Release: whoever takes an address from the beginning
    /// again comes after each of those who gave theirs back.
    void give() noexcept {
        std::uint64_t seen = word_.load(std::memory_order_relaxed);
        while (!word_.compare_exchange_weak(seen, in_use(seen) == 1 ? 0 : seen - 1, std::memory_order_release,
                                            std::memory_order_relaxed)) {
        }
    }

private:
    static constexpr std::uint64_t most_blocks = std::numeric_limits<std::uint32_t>::max();
    static constexpr std::uint64_t in_use(std::uint64_t word) noexcept { return word & most_blocks; }

    typename Atomics::template atomic<std::uint64_t> word_{0}; ///< Blocks handed out; in the low half: extents in use.
};

} // namespace spillway
