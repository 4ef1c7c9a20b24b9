// What a router decided, why, and what it measured: part of a stage's report.
//
//     const RouterReport& routing = report.stages[2].routing;
//     std::clog << to_string(routing);
#pragma once

#include "spillway/device.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway {

enum class Why : std::uint8_t {
    off,         ///< No device is to be used.
    down,        ///< The device is down.
    unknown,     ///< There is no measurement to decide by.
    low_load,    ///< The CPU does it alone.
    kept,        ///< The side stays as it is.
    switched,    ///< The other side has become cheaper.
    last_cells,  ///< The CPUs would be done with all that remains before the device would be with this batch, and the
                 ///< last switch still holds: the rest of the hold is spent on the CPU.
    trial,       ///< One of the first batches of this size, to measure the device.
    exploration, ///< One that may be dearer, to see whether the measurements still hold.
    half_open,   ///< To see whether a device that was down works again.
};
inline constexpr std::size_t whys = 10;
/// "low load".
[[nodiscard]] std::string_view to_string(Why why) noexcept;

/// Where one batch's time on a device went.
struct DeviceCost {
    std::chrono::nanoseconds pack{0}, copy{0}, run{0}, unpack{0};
    [[nodiscard]] std::chrono::nanoseconds total() const noexcept { return pack + copy + run + unpack; }
};

/// A measured rate: the mean cost of one cell in batches of [2^log2_cells, 2^(log2_cells + 1)) cells.
struct MeasuredRate {
    std::uint32_t log2_cells = 0;
    std::uint32_t samples = 0;
    double nanoseconds_a_cell = 0; ///< CPU: of one worker. Device: pack to unpack.
};

struct DeviceReport {
    std::uint64_t decisions = 0;
    std::array<std::uint64_t, whys> by_why{}; ///< By Why.
    std::uint64_t to_device = 0;              ///< Decisions whose side was the device.
    std::uint64_t switches = 0;
    std::array<std::uint64_t, device_faults> failures{}; ///< By DeviceFault.
    std::uint64_t times_down = 0;
    std::uint64_t batches = 0; ///< Done.
    std::uint64_t cells = 0;   ///< Done.
    DeviceCost spent;          ///< In all batches done.
    bool down = false;
    std::vector<MeasuredRate> rates;
};

/// What several feeders of one device have seen, as one: sums; rates by their samples.
[[nodiscard]] DeviceReport joined(std::span<const DeviceReport> feeders);

struct RouterReport {
    std::uint64_t cpu_batches = 0;
    std::uint64_t cpu_cells = 0;
    std::vector<MeasuredRate> cpu_rates;
    std::vector<DeviceReport> devices;
};
/// A few lines of text, for a log.
[[nodiscard]] std::string to_string(const RouterReport& report);

} // namespace spillway
