// Whether what must leave memory is written to disk or dropped and made again: whichever is measured to be cheaper.
//
//     SpillChoice choice;                              // one for each stage that has a rebuild function
//     if (choice.wants_trial()) choice.rebuilt(bytes, time of a trial);
//     if (choice.drops(bytes)) ...drop it, else write it and...
//     choice.written(bytes, spent);                    // later choice.read(...) or choice.rebuilt(...)
//     choice.put_away(bytes);
//
// All times are a worker's own: what it could have worked in. Encoding, compressing, the copy into the gathered buffer,
// waiting for a disk that is behind, and decoding are all in them.
#pragma once

#include "base/byte_rate.hpp"
#include "router/rate_table.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
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
    /// known: as often as costs one percent of all that was put away.
    [[nodiscard]] bool drops(std::uint64_t bytes) noexcept {
        const std::optional<double> again = rebuilt_.expected(bytes);
        if (!again) return false;
        const double disk = expected_of_disk(bytes);
        const bool cheaper = *again < disk;
        const auto extra = static_cast<std::uint64_t>(std::abs(*again - disk));
        const std::uint64_t allowed = spent_.load(std::memory_order_relaxed) / exploration;
        if (explored_.load(std::memory_order_relaxed) + extra > allowed) return cheaper;
        explored_.fetch_add(extra, std::memory_order_relaxed);
        return !cheaper;
    }

    /// One of so many bytes has left memory, either way. What a full disk refused does not count: however often it is
    /// asked, nothing dear is dropped for it.
    void put_away(std::uint64_t bytes) noexcept {
        const double disk = expected_of_disk(bytes);
        const double least = std::min(rebuilt_.expected(bytes).value_or(disk), disk);
        spent_.fetch_add(static_cast<std::uint64_t>(least), std::memory_order_relaxed);
    }

private:
    [[nodiscard]] double expected_of_disk(std::uint64_t bytes) const noexcept {
        const double write = written_.nanoseconds_a_byte(usual_disk);
        const double read = read_.nanoseconds_a_byte(write); // about as fast, until it is known better
        return (write + read) * static_cast<double>(bytes);
    }

    static constexpr double usual_disk = 1; ///< Nanoseconds a byte, encoding included: of a local one.
    static constexpr std::uint64_t exploration = 100;

    ByteRate written_, read_;
    RateTable rebuilt_; ///< By size. Nothing about it is lumpy: an outlier is somebody else's doing.
    std::atomic<bool> tried_{false};
    std::atomic<std::uint64_t> spent_{0}, explored_{0}; ///< Expected nanoseconds, of the cheaper way and beyond it.
};

} // namespace spillway::detail
