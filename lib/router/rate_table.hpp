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

    /// Nanoseconds for a batch of so many cells; none: nothing has been recorded. Sizes that are not trusted go by the
    /// nearest that is, else by the nearest of which anything is known.
    [[nodiscard]] std::optional<double> expected(std::size_t cells) const noexcept {
        const std::size_t at = log2_of(cells);
        for (const std::uint32_t least : {trusted_samples, 1U}) {
            for (std::size_t distance = 0; distance < sizes; ++distance) {
                // The larger first: its fixed costs are spread as thinly as those of a batch that is not yet full.
                if (at + distance < sizes && load(at + distance).samples >= least)
                    return static_cast<double>(load(at + distance).mean) * static_cast<double>(cells);
                if (distance <= at && load(at - distance).samples >= least)
                    return static_cast<double>(load(at - distance).mean) * static_cast<double>(cells);
            }
        }
        return std::nullopt;
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
