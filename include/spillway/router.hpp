// Decides, for each batch of a stage with two forms, whether the CPU or a device takes it.
//
//     Router router(options);
//     std::size_t cells = router.cells_device_may_take(waiting);
//     Choice choice = router.decide({.now = now, .busy = load.value(), .batch_cells = cells, ...});
//     if (choice.side == Side::device) try {
//             ... pack, launch, synchronise, unpack ...
//             router.record_device(cells, cost), router.device_ok();
//         } catch (const DeviceError& error) {
//             router.device_failed(error.fault(), now);          // and the same batch goes to the CPU
//         }
//
// Guarantee: decisions depend on what is passed in alone: no clock, no threads, no random numbers. A device changes
// sides at most once in `hold` decisions. Seen from outside there is one exception: within the hold of a switch to it a
// device may be refused, once, near the end of known work (last_cells), and is given nothing for the rest of the hold.
// So of any `hold` decisions up to two change who takes batches, and of n up to n / hold + 2; trials, explorations and
// what a failing device causes not counted. Mechanism: a load threshold says when the CPU suffices; above it a cost
// model, fed by measured batches, says whether the device would be done before the CPUs were done with all known work.
//
// Thread safety: decide(), device_ok() and device_failed() of one device from one thread at a time (its feeder);
// everything else from any thread at any time, without a lock. The counters are exact, and each is read on its own.
#pragma once

#include "spillway/device.hpp"
#include "spillway/routing.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace spillway {

enum class Gpu : std::uint8_t {
    off,
    automatic, ///< A device where there is one and it pays.
    required,  ///< As automatic, but a run without any device does not start: whoever finds devices sees to that.
};

struct RouterOptions {
    Gpu gpu = Gpu::automatic;
    double low = 0.60;          ///< Load, 0 to 1: below it no device comes into use; one in use stays while it pays.
    double high = 0.85;         ///< Load, low to 1: above it the device helps where it pays.
    double switch_cost = 0.8;   ///< In (0, 1]: the other side must cost less than this share of the present one.
    std::uint32_t hold = 64;    ///< Decisions that a switch stands for, at least 1.
    double exploration = 0.02;  ///< Share of decisions, 0 to 0.5, that may try a device that is not in use.
    std::size_t tile_cells = 1; ///< Cells of the smallest batch that is worth taking, at least 1.
    std::uint32_t failures_to_down = 3;   ///< Failures in a row that take the device down, at least 1; lost: one.
    std::uint32_t successes_to_grow = 16; ///< Batches in a row that double it again, at least 1.
    std::chrono::nanoseconds retry = std::chrono::seconds(1); ///< From down to the first new try; then doubled.
    std::chrono::nanoseconds longest_retry = std::chrono::seconds(60); ///< At least `retry`.
};

/// What a decision stands on.
struct Load {
    std::chrono::nanoseconds now{0}; ///< Of any steady clock.
    double busy = 0;                 ///< Busy over allowed workers, averaged over 100 ms: LoadAverage.
    std::size_t cells_ahead = 0;     ///< Waiting for the stage, before this batch.
    std::size_t batch_cells = 0;
    std::size_t workers = 1;         ///< That this stage would get; 0 counts as 1.
    std::size_t cells_remaining = 0; ///< All work of the stage known to remain, this batch with it; less counts as
                                     ///< ahead + batch.
    std::size_t cells_in_flight = 0; ///< That this device has been given and not finished.
    std::size_t cells_of_others =
        0; ///< The same of those who share it, where several feeders of a device are asked for.
};

enum class Side : std::uint8_t { cpu, device };

struct Choice {
    Side side = Side::cpu;
    Why why = Why::off;
    friend bool operator==(const Choice&, const Choice&) = default;
};

/// What lies before a stage, for those who share it out.
struct Waiting {
    std::size_t cells = 0;   ///< Queued.
    std::size_t staging = 0; ///< Cells. For a feeder: of the staging that it is about to fill. For a worker: of all
                             ///< staging of all devices, in use or not.
    std::size_t idle_workers = 0; ///< That have nothing else to do.
};

/// Busy over allowed workers, averaged over about 100 ms by time. update(): one thread at a time; value(): any.
class LoadAverage {
public:
    /// From now on `busy` of `allowed` workers are at work. `now` does not go back.
    void update(std::chrono::nanoseconds now, std::size_t busy, std::size_t allowed) noexcept;
    /// In [0, 1], as of the last update.
    [[nodiscard]] double value() const noexcept { return value_.load(std::memory_order_relaxed); }

private:
    std::chrono::nanoseconds since_{0};
    double present_ = 0;
    std::atomic<double> value_{0}; // relaxed: a number on its own
};

class Router {
public:
    /// Throws Error(usage) where an option is outside its range.
    explicit Router(const RouterOptions& options, std::size_t devices = 1);
    Router(const Router&) = delete;
    Router& operator=(const Router&) = delete;
    ~Router();

    /// Who takes this batch. Costs tens of nanoseconds.
    Choice decide(const Load& load, std::size_t device = 0);

    /// A worker did `cells` in `spent`.
    void record_cpu(std::size_t cells, std::chrono::nanoseconds spent) noexcept;
    /// The device did a batch. Follow it with device_ok().
    void record_device(std::size_t cells, const DeviceCost& cost, std::size_t device = 0) noexcept;

    /// The batch goes to the CPU. The next have at most half the cells of the last one given to the device. Takes it
    /// down where the fault is sticky (lost, no_driver) or repeats. no_driver is for good.
    void device_failed(DeviceFault fault, std::chrono::nanoseconds now, std::size_t device = 0) noexcept;
    /// A batch came through: a device that was half-open is up again, and halved batches grow back in time.
    void device_ok(std::size_t device = 0) noexcept;

    [[nodiscard]] bool down(std::size_t device = 0) const noexcept;
    /// The side that the device is on: exceptions for a batch (trial, last cells) left out.
    [[nodiscard]] Side side(std::size_t device = 0) const noexcept;
    /// The largest batch to give to the device, at most `full` cells: what failures have halved it to, but one tile. A
    /// device begins with one tile, and then has at most four times the largest batch that it was measured with.
    [[nodiscard]] std::size_t batch_cells(std::size_t full, std::size_t device = 0) const noexcept;

    /// How many cells a feeder may take: what the staging holds, but one tile is left for each worker that has nothing
    /// else, and no more than batch_cells(staging). Ask it before decide(), whose batch it is.
    [[nodiscard]] std::size_t cells_device_may_take(const Waiting& waiting, std::size_t device = 0) const noexcept;
    /// How many cells a worker may take. While a device takes batches: whole tiles beyond what all staging holds, and
    /// at least one tile where the worker itself has nothing else. Else: all.
    [[nodiscard]] std::size_t cells_worker_may_take(const Waiting& waiting, bool has_nothing_else) const noexcept;

    /// Expected time of a batch; nothing where nothing has been measured. The CPU's is that of one worker.
    [[nodiscard]] std::optional<std::chrono::nanoseconds> expected_on_cpu(std::size_t cells) const noexcept;
    [[nodiscard]] std::optional<std::chrono::nanoseconds> expected_on_device(std::size_t cells,
                                                                             std::size_t device = 0) const noexcept;

    [[nodiscard]] RouterReport report() const;

private:
    struct Measured;
    struct DeviceState;
    [[nodiscard]] Choice choose(const Load& load, DeviceState& state) const;

    RouterOptions options_;
    std::unique_ptr<Measured> cpu_;
    std::vector<std::unique_ptr<DeviceState>> devices_;
};

} // namespace spillway
