// Measured cost of a cell by the size of the batch: a moving average for each power of two.
//
//     table.record(4096, 3ms);
//     std::optional<double> nanoseconds = table.expected(5000);    // by the nearest size that is known
//
// Thread safety: any thread, no lock: an average and its number of samples are one 8-byte word.
#pragma once

#include "spillway/router.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace spillway {

class RateTable {
public:
    /// Below this many samples an average is a guess.
    static constexpr std::uint32_t trusted_samples = 10;

    void record(std::size_t cells, std::chrono::nanoseconds spent) noexcept {
        if (cells == 0) return;
        // A clock too coarse for the batch must not make it free.
        const auto nanoseconds = static_cast<float>(std::max<std::int64_t>(spent.count(), 1));
        const float sample = nanoseconds / static_cast<float>(cells);
        std::atomic<Average>& entry = entries_[log2_of(cells)];
        Average old = entry.load(std::memory_order_relaxed);
        while (!entry.compare_exchange_weak(old, after(old, sample), std::memory_order_relaxed)) {
        }
    }

    [[nodiscard]] bool trusted(std::size_t cells) const noexcept {
        return load(log2_of(cells)).samples >= trusted_samples;
    }

    /// Nanoseconds for a batch of so many cells; none: nothing has been recorded. A size that has not been recorded
    /// goes by the nearest that has, trusted or not: a few samples of half the size say more than many of a hundredth,
    /// where what a launch costs is all there is to see.
    [[nodiscard]] std::optional<double> expected(std::size_t cells) const noexcept {
        const std::size_t at = log2_of(cells);
        for (std::size_t distance = 0; distance < sizes; ++distance) {
            // The larger first: what a batch costs beside its cells is spread more thinly there.
            for (const std::size_t size : {at + distance, at - distance}) { // below 0 wraps to beyond sizes
                if (size < sizes && load(size).samples > 0)
                    return static_cast<double>(load(size).mean) * static_cast<double>(cells);
            }
        }
        return std::nullopt;
    }

    /// At least twice the largest batch recorded, and in the next power of two; 0: nothing has been recorded.
    [[nodiscard]] std::size_t next_size() const noexcept {
        for (std::size_t i = sizes; i-- > 0;) {
            if (load(i).samples > 0) return std::size_t{1} << std::min(i + 2, sizes - 1);
        }
        return 0;
    }

    [[nodiscard]] std::vector<MeasuredRate> rates() const {
        std::vector<MeasuredRate> known;
        for (std::size_t i = 0; i < sizes; ++i) {
            const Average average = load(i);
            if (average.samples > 0) known.push_back({static_cast<std::uint32_t>(i), average.samples, average.mean});
        }
        return known;
    }

private:
    struct Average {
        float mean = 0; // nanoseconds a cell
        std::uint32_t samples = 0;
    };
    static_assert(std::atomic<Average>::is_always_lock_free);

    static constexpr std::size_t sizes = 64;
    static constexpr float weight = 1.0F / 16;
    static constexpr float outlier = 1.5F;

    static std::size_t log2_of(std::size_t cells) noexcept {
        return static_cast<std::size_t>(std::bit_width(std::max<std::size_t>(cells, 1)) - 1);
    }

    [[nodiscard]] Average load(std::size_t index) const noexcept {
        return entries_[index].load(std::memory_order_relaxed);
    }

    static Average after(Average old, float sample) noexcept {
        const std::uint32_t samples = old.samples + (old.samples == UINT32_MAX ? 0 : 1);
        if (old.samples == 0) return {sample, 1};
        if (old.samples < trusted_samples) {
            // A device's first batches pay for its start. So a much cheaper one makes the dearer ones before it void;
            // clamped to them, the average would need a hundred samples to come down from a first one of ten times.
            if (sample * outlier < old.mean) return {sample, samples};
            const float bounded = std::min(sample, old.mean * outlier);
            return {old.mean + (bounded - old.mean) / static_cast<float>(samples), samples};
        }
        const float bounded = std::clamp(sample, old.mean / outlier, old.mean * outlier);
        return {old.mean + (bounded - old.mean) * weight, samples};
    }

    std::array<std::atomic<Average>, sizes> entries_{};
};

} // namespace spillway
