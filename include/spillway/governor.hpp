// Watches memory and says: run, spill, or hold sources back.
//
//     spillway::Governor governor({.memory = spillway::parse_bytes("2GiB")});
//     governor.charge(bytes);                                   // a payload came to be; release(bytes) when it is gone
//     if (governor.verdict() != spillway::Verdict::run) ...     // spill what is needed last, open no new region
//
// The budget is the least of the user's figure, 0.8 of the tightest cgroup limit, 0.9 of the tightest memory.high and
// 0.8 of RAM. Pools and pipelines that share a governor share its budget.
#pragma once

#include "spillway/error.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace spillway {

/// What the budget allows now; each includes the ones before it.
enum class Verdict : std::uint8_t {
    run,   ///< There is room.
    spill, ///< Move payloads to disk (until use falls below the lower mark).
    hold,  ///< Also start nothing new.
};

/// The marks are fractions of what the budget leaves above the floor, for use beyond what is fixed:
/// 0 < low <= spill_below <= spill_above <= hold_above <= 1.
struct GovernorOptions {
    std::uint64_t memory =
        0;            ///< Bytes the process may use beyond what it held at the start; 0: as much as the machine allows.
    double low = 0.5; ///< Below it, spilled payloads are fetched back ahead of need.
    double spill_below = 0.65;    ///< Spilling stops below it.
    double spill_above = 0.8;     ///< Spilling starts above it.
    double hold_above = 0.95;     ///< Sources are held above it.
    bool watch_process = true;    ///< Count resident memory beyond what is charged as well; off: only what is charged.
    std::string system_root = {}; ///< Put before /proc and /sys: for tests.
};

/// A snapshot for reports; all in bytes.
struct GovernorFigures {
    std::uint64_t budget = 0; ///< In force now: limits, pressure and neighbours in the cgroup considered.
    std::uint64_t floor = 0;
    std::uint64_t tracked = 0; ///< Charged and not released.
    std::uint64_t untracked =
        0;                  ///< Resident beyond what is tracked and what the host held at the start; of the last tick.
    std::uint64_t peak = 0; ///< Largest use seen by a tick.
    std::uint64_t pressure_cuts = 0; ///< How often memory pressure lowered the budget.
};

/// Thread safety: every method may be called by any thread at any time. charge, release and verdict cost one relaxed
/// atomic access or two; callers that change often batch their changes.
class Governor {
public:
    using Clock = std::chrono::steady_clock;

    /// Reads the machine's limits. Throws Error(usage) if the marks are out of order.
    explicit Governor(const GovernorOptions& options = {});
    ~Governor();
    Governor(const Governor&) = delete;
    Governor& operator=(const Governor&) = delete;

    void charge(std::uint64_t bytes) noexcept {
        tracked_.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
    }
    void release(std::uint64_t bytes) noexcept {
        tracked_.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
    }

    /// Charges, or with a negative change releases, what no spilling gives back and the floor allows for: tables, buffers,
    /// workers' states.
    void charge_fixed(std::int64_t change) noexcept {
        // In the order in which the marks never seem to lie below what is in use meanwhile.
        if (change > 0) fixed_.fetch_add(change, std::memory_order_relaxed);
        tracked_.fetch_add(change, std::memory_order_relaxed);
        if (change < 0) fixed_.fetch_add(change, std::memory_order_relaxed);
    }

    /// Charged and not released. Batched changes of different threads may arrive out of order; never below 0.
    [[nodiscard]] std::uint64_t tracked() const noexcept;
    /// Tracked, and what the last tick found beyond it.
    [[nodiscard]] std::uint64_t used() const noexcept;
    [[nodiscard]] std::uint64_t budget() const noexcept { return budget_.load(std::memory_order_relaxed); }
    [[nodiscard]] Verdict verdict() noexcept;
    /// Whether spilled payloads may be fetched back ahead of need.
    [[nodiscard]] bool below_low() const noexcept;

    /// The least budget that the work can be done in: the highest Floor there is.
    [[nodiscard]] std::uint64_t floor() const noexcept { return floor_.load(std::memory_order_relaxed); }

    /// Tells of bytes written to spill files: while there are some, pressure does not lower the budget (the writing is
    /// the pressure).
    void note_spilled(std::uint64_t bytes) noexcept { spilled_.fetch_add(bytes, std::memory_order_relaxed); }

    /// Looks at the machine if the last look is 10 ms old and nobody else is looking; returns whether it did. Called by
    /// busy workers; never waits, never throws. About 10 us.
    bool tick(Clock::time_point now) noexcept;

    [[nodiscard]] GovernorFigures figures() const noexcept;

private:
    struct Watch;
    friend class Floor;

    void follow_floors() noexcept;
    [[nodiscard]] std::uint64_t fixed() const noexcept;
    /// Bytes in use at that fraction of what can be given away.
    [[nodiscard]] double mark(double fraction) const noexcept;

    std::atomic<std::int64_t> tracked_{0};
    std::atomic<std::uint64_t> untracked_{0};
    std::atomic<std::uint64_t> budget_{0};
    std::atomic<std::int64_t> fixed_{0};
    std::atomic<std::uint64_t> floor_{0}, resident_{0};
    std::atomic<std::uint64_t> spilled_{0};
    std::atomic<std::uint64_t> peak_{0};
    std::atomic<std::uint64_t> pressure_cuts_{0};
    std::atomic<bool> spilling_{false};
    double low_, spill_below_, spill_above_, hold_above_;
    std::unique_ptr<Watch> watch_;
};

/// The least budget that one pipeline can work in, for as long as this exists; up to `resident` bytes of it are not
/// charged but found in the process. Of several on one pool the highest counts, and what all have resident. Thread
/// safety: any thread.
class Floor {
public:
    /// Throws Error(usage), with the floor in its text, if the budget is below it.
    Floor(Governor& governor, std::uint64_t bytes, std::uint64_t resident = 0);
    ~Floor();
    Floor(const Floor&) = delete;
    Floor& operator=(const Floor&) = delete;

private:
    friend class Governor;

    Governor& governor_;
    const std::uint64_t bytes_, resident_;
};

/// Threads worth having: CPUs of the affinity mask, at most the cgroup's CPU quota rounded up; at least 1.
[[nodiscard]] unsigned allowed_threads(const std::string& system_root = {});

/// "512MiB", "1.5g", "2G", "1048576" -> bytes. K, M, G and T, in either case, with or without "B" or "iB", are powers
/// of 1024. Throws Error(usage) naming `flag` on anything else, negative or beyond 2^63.
[[nodiscard]] std::uint64_t parse_bytes(std::string_view text, std::string_view flag = "--memory");

/// "1.5 GiB": for messages.
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);

inline namespace literals {
constexpr std::uint64_t operator""_KiB(unsigned long long n) noexcept {
    return n << 10U;
}
constexpr std::uint64_t operator""_MiB(unsigned long long n) noexcept {
    return n << 20U;
}
constexpr std::uint64_t operator""_GiB(unsigned long long n) noexcept {
    return n << 30U;
}
} // namespace literals

} // namespace spillway
