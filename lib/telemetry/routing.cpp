#include "spillway/routing.hpp"

#include "base/append_line.hpp"

#include <algorithm>
#include <cinttypes>

namespace spillway {
namespace {

/// "; cells a second: 1e+06 in 2^6 (10 samples), ...".
void add_rates(std::string& text, const std::vector<MeasuredRate>& rates) {
    const char* between = "; cells a second: ";
    for (const MeasuredRate& rate : rates) {
        append_line(text, "%s%.4g in 2^%" PRIu32 " (%" PRIu32 ")", between, 1e9 / rate.nanoseconds_a_cell,
                    rate.log2_cells, rate.samples);
        between = ", ";
    }
    text += '\n';
}

/// "kept 3, switched 1": what there is of it.
template <class Kind, std::size_t size>
void add_counts(std::string& text, const std::array<std::uint64_t, size>& counts) {
    const char* between = "";
    for (std::size_t kind = 0; kind < size; ++kind) {
        if (counts[kind] == 0) continue;
        text += between;
        text += to_string(static_cast<Kind>(kind));
        text += ' ' + std::to_string(counts[kind]);
        between = ", ";
    }
}

double seconds(std::chrono::nanoseconds spent) noexcept {
    return std::chrono::duration<double>(spent).count();
}

} // namespace

std::string_view to_string(Why why) noexcept {
    switch (why) {
    case Why::off:
        return "off";
    case Why::down:
        return "down";
    case Why::unknown:
        return "unknown";
    case Why::low_load:
        return "low load";
    case Why::kept:
        return "kept";
    case Why::switched:
        return "switched";
    case Why::last_cells:
        return "last cells";
    case Why::trial:
        return "trial";
    case Why::exploration:
        return "exploration";
    case Why::half_open:
        return "half open";
    }
    return "unknown";
}

DeviceReport joined(std::span<const DeviceReport> feeders) {
    DeviceReport all;
    all.down = true;
    for (const DeviceReport& one : feeders) {
        all.decisions += one.decisions;
        for (std::size_t why = 0; why < whys; ++why) all.by_why[why] += one.by_why[why];
        all.to_device += one.to_device;
        all.switches += one.switches;
        for (std::size_t fault = 0; fault < device_faults; ++fault) all.failures[fault] += one.failures[fault];
        all.times_down += one.times_down;
        all.batches += one.batches;
        all.cells += one.cells;
        all.spent.pack += one.spent.pack;
        all.spent.copy += one.spent.copy;
        all.spent.run += one.spent.run;
        all.spent.unpack += one.spent.unpack;
        all.down = all.down && one.down;
        for (const MeasuredRate& rate : one.rates) {
            const auto at = std::lower_bound(
                all.rates.begin(), all.rates.end(), rate.log2_cells,
                [](const MeasuredRate& known, std::uint32_t log2_cells) { return known.log2_cells < log2_cells; });
            if (at == all.rates.end() || at->log2_cells != rate.log2_cells) {
                all.rates.insert(at, rate);
                continue;
            }
            const double before = at->samples, more = rate.samples;
            at->nanoseconds_a_cell =
                (before * at->nanoseconds_a_cell + more * rate.nanoseconds_a_cell) / (before + more);
            at->samples += rate.samples;
        }
    }
    return all;
}

std::string to_string(const RouterReport& report) {
    std::uint64_t all = report.cpu_cells;
    for (const DeviceReport& device : report.devices) all += device.cells;
    const auto share = [all](std::uint64_t cells) {
        return all == 0 ? 0.0 : 100.0 * static_cast<double>(cells) / static_cast<double>(all);
    };
    std::string text;
    append_line(text, "CPU: %" PRIu64 " cells (%.1f%%) in %" PRIu64 " batches", report.cpu_cells,
                share(report.cpu_cells), report.cpu_batches);
    add_rates(text, report.cpu_rates);
    for (std::size_t i = 0; i < report.devices.size(); ++i) {
        const DeviceReport& device = report.devices[i];
        append_line(text, "device %zu%s: %" PRIu64 " cells (%.1f%%) in %" PRIu64 " batches", i,
                    device.down ? " (down)" : "", device.cells, share(device.cells), device.batches);
        append_line(text, "; pack %.3f, copy %.3f, run %.3f, unpack %.3f s", seconds(device.spent.pack),
                    seconds(device.spent.copy), seconds(device.spent.run), seconds(device.spent.unpack));
        add_rates(text, device.rates);
        append_line(text, "device %zu: %" PRIu64 " decisions, %" PRIu64 " for it (", i, device.decisions,
                    device.to_device);
        add_counts<Why>(text, device.by_why);
        append_line(text, "); %" PRIu64 " switches, %" PRIu64 " times down", device.switches, device.times_down);
        if (device.failures != decltype(device.failures){}) {
            text += "; failures: ";
            add_counts<DeviceFault>(text, device.failures);
        }
        text += '\n';
    }
    return text;
}

} // namespace spillway
