#include "spillway/router.hpp"

#include "base/append_line.hpp"

#include <cinttypes>

namespace spillway {
namespace {

void add_rates(std::string& text, const std::vector<MeasuredRate>& rates) {
    for (const MeasuredRate& rate : rates) {
        append_line(text, "    batches of 2^%" PRIu32 " cells: %.4g ns a cell, %" PRIu32 " samples\n", rate.log2_cells,
                    rate.nanoseconds_a_cell, rate.samples);
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

std::string to_string(const RouterReport& report) {
    std::string text;
    append_line(text, "CPU: %" PRIu64 " cells in %" PRIu64 " batches\n", report.cpu_cells, report.cpu_batches);
    add_rates(text, report.cpu_rates);
    for (std::size_t i = 0; i < report.devices.size(); ++i) {
        const DeviceReport& device = report.devices[i];
        append_line(text,
                    "device %zu%s: %" PRIu64 " cells in %" PRIu64
                    " batches; pack %.3f, copy %.3f, run %.3f, unpack %.3f s\n",
                    i, device.down ? " (down)" : "", device.cells, device.batches, seconds(device.spent.pack),
                    seconds(device.spent.copy), seconds(device.spent.run), seconds(device.spent.unpack));
        append_line(text,
                    "    %" PRIu64 " decisions, %" PRIu64 " for the device, %" PRIu64 " switches, %" PRIu64
                    " times down\n",
                    device.decisions, device.to_device, device.switches, device.times_down);
        for (std::size_t why = 0; why < whys; ++why) {
            if (device.by_why[why] == 0) continue;
            const std::string_view name = to_string(static_cast<Why>(why));
            append_line(text, "    %.*s: %" PRIu64 "\n", static_cast<int>(name.size()), name.data(),
                        device.by_why[why]);
        }
        for (std::size_t fault = 0; fault < device_faults; ++fault) {
            if (device.failures[fault] == 0) continue;
            const std::string_view name = to_string(static_cast<DeviceFault>(fault));
            append_line(text, "    failures, %.*s: %" PRIu64 "\n", static_cast<int>(name.size()), name.data(),
                        device.failures[fault]);
        }
        add_rates(text, device.rates);
    }
    return text;
}

} // namespace spillway
