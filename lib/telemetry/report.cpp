#include "spillway/telemetry.hpp"

#include "base/append_line.hpp"

#include <cinttypes>

namespace spillway {

std::string to_string(const Report& report) {
    std::string text;
    append_line(text,
                "%.3f s on at most %zu threads: %" PRIu64 " source items, %" PRIu64 " candidates, %" PRIu64
                " emitted, %" PRIu64 " dropped (%" PRIu64 " failed)\n",
                report.seconds, report.threads_peak, report.sources, report.candidates, report.emitted, report.dropped,
                report.failed);
    append_line(text,
                "memory: peak %zu of %zu bytes; %" PRIu64 " payloads (%" PRIu64 " bytes) spilled, %" PRIu64
                " restored, %" PRIu64 " rebuilt; %" PRIu64 " futex calls, %" PRIu64 " page faults\n",
                report.memory_peak, report.memory_budget, report.spilled, report.spilled_bytes, report.restored,
                report.rebuilt, report.futex_calls, report.page_faults);
    for (const StageReport& stage : report.stages) {
        append_line(text, "  %-16s %10" PRIu64 " candidates in %" PRIu64 " calls, %.3f s\n", stage.name.c_str(),
                    stage.candidates, stage.calls, stage.seconds);
        if (stage.cpu_cells + stage.device_cells + stage.device_failures == 0) continue;
        append_line(text,
                    "  %-16s %10" PRIu64 " cells on the CPU, %" PRIu64 " on devices in %" PRIu64 " batches (%" PRIu64
                    " failed), %" PRIu64 " switches%s\n",
                    "", stage.cpu_cells, stage.device_cells, stage.device_batches, stage.device_failures,
                    stage.switches, stage.by_key ? "; routed by key" : "");
        if (stage.by_key) continue;
        const std::string routing = to_string(stage.routing);
        for (std::size_t begin = 0; begin < routing.size();) {
            const std::size_t end = routing.find('\n', begin) + 1;
            text += "    " + routing.substr(begin, end - begin);
            begin = end;
        }
    }
    return text;
}

} // namespace spillway
