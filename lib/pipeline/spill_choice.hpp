// Whether what must leave memory is written to disk or dropped and made again: whichever is measured to be cheaper.
//
//     SpillChoice choice;                              // one for each stage that has a rebuild function
//     if (choice.wants_trial()) choice.rebuilt(bytes, time of a trial);
//     if (choice.drops(bytes)) ...drop it, else write it and...
//     choice.written(bytes, spent);                    // then choice.read(...) or choice.rebuilt(...)
//
// All times are a worker's own: what it could have worked in. Encoding, compressing, the copy into the gathered buffer,
// waiting for a disk that is behind, and decoding are all in them.
#pragma once

#include "base/byte_rate.hpp"
#include "router/rate_table.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace spillway::detail {

/// Thread safety: any thread, no lock. A lost update costs nothing.
class SpillChoice {
public:
    /// True once: before the first is dropped, one is made again as a trial. Without it a whole backlog would be
    /// dropped before the first came back and told what that costs.
    [[nodiscard]] bool wants_trial() noexcept {
        return !tried_.load(std::memory_order_relaxed) && !tried_.exchange(true, std::memory_order_relaxed);
    }

    void written(std::uint64_t bytes, std::chrono::nanoseconds spent) noexcept { written_.record(bytes, spent); }
    void read(std::uint64_t bytes, std::chrono::nanoseconds spent) noexcept { read_.record(bytes, spent); }
    void rebuilt(std::uint64_t bytes, std::chrono::nanoseconds spent) noexcept { rebuilt_.record(bytes, spent); }

    /// Whether one of so many bytes is better dropped. Now and then the dearer way is taken, so that its price stays
    /// known: as often as costs one percent of all.
    [[nodiscard]] bool drops(std::uint64_t bytes) noexcept {
        const std::optional<double> again = rebuilt_.expected(bytes);
        if (!again) return false;
        const double write = written_.nanoseconds_a_byte(usual_disk);
        const double read = read_.nanoseconds_a_byte(write); // about as fast, until it is known better
        const double disk = (write + read) * static_cast<double>(bytes);
        const bool cheaper = *again < disk;
        const auto least = static_cast<std::uint64_t>(std::min(*again, disk));
        const auto extra = static_cast<std::uint64_t>(std::max(*again, disk)) - least;
        const std::uint64_t spent = spent_.fetch_add(least, std::memory_order_relaxed);
        if (explored_.load(std::memory_order_relaxed) + extra > spent / exploration) return cheaper;
        explored_.fetch_add(extra, std::memory_order_relaxed);
        return !cheaper;
    }

private:
    static constexpr double usual_disk = 1; ///< Nanoseconds a byte, encoding included: of a local one.
    static constexpr std::uint64_t exploration = 100;

    ByteRate written_, read_;
    RateTable rebuilt_; ///< By size. Nothing about it is lumpy: an outlier is somebody else's doing.
    std::atomic<bool> tried_{false};
    std::atomic<std::uint64_t> spent_{0}, explored_{0}; ///< Expected nanoseconds.
};

} // namespace spillway::detail
