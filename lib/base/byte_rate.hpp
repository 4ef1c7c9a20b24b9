// How long a byte takes, on the average over the last so many of them: for work that comes in lumps.
//
//     ByteRate written;
//     written.record(20'000, 3us);                // most are only gathered ...
//     written.record(20'000, 4ms);                // ... and now and then one pays for all
//     double nanoseconds = 50'000 * written.nanoseconds_a_byte(1.0);
//
// Thread safety: any thread, no lock: the two sums are one 8-byte word.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace spillway {

class ByteRate {
public:
    void record(std::uint64_t bytes, std::chrono::nanoseconds spent) noexcept {
        Sums old = sums_.load(std::memory_order_relaxed);
        Sums next;
        do {
            next = {old.bytes + static_cast<float>(bytes),
                    old.nanoseconds + static_cast<float>(std::max<std::int64_t>(spent.count(), 0))};
            const float scale = std::min(1.0F, window / std::max(next.bytes, 1.0F));
            next = {next.bytes * scale, next.nanoseconds * scale};
        } while (!sums_.compare_exchange_weak(old, next, std::memory_order_relaxed));
    }

    /// A guess stands for what has not been recorded yet of the first few MiB: one lump early on says little.
    [[nodiscard]] double nanoseconds_a_byte(double guess) const noexcept {
        const Sums sums = sums_.load(std::memory_order_relaxed);
        const float guessed = std::max(settled - sums.bytes, 0.0F);
        return (sums.nanoseconds + guess * static_cast<double>(guessed)) / static_cast<double>(sums.bytes + guessed);
    }

private:
    struct Sums {
        float bytes = 0, nanoseconds = 0;
    };
    static_assert(std::atomic<Sums>::is_always_lock_free);

    static constexpr float settled = 4 << 20U;
    static constexpr float window = 32 << 20U; ///< What lies farther back weighs less and less.

    std::atomic<Sums> sums_{};
};

} // namespace spillway
