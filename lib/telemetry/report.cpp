#include "spillway/telemetry.hpp"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>

namespace spillway {
namespace {

template <class... Values>
void line(std::string& text, const char* format, Values... values) {
    std::array<char, 256> buffer{};
    const int length = std::snprintf(buffer.data(), buffer.size(), format, values...);
    if (length > 0) text.append(buffer.data(), std::min(static_cast<std::size_t>(length), buffer.size() - 1));
}

} // namespace

std::string to_string(const Report& report) {
    std::string text;
    line(text,
         "%.3f s on at most %zu threads: %" PRIu64 " source items, %" PRIu64 " candidates, %" PRIu64
         " emitted, %" PRIu64 " dropped (%" PRIu64 " failed)\n",
         report.seconds, report.threads_peak, report.sources, report.candidates, report.emitted, report.dropped,
         report.failed);
    line(text,
         "memory: peak %zu of %zu bytes; %" PRIu64 " payloads (%" PRIu64 " bytes) spilled, %" PRIu64
         " restored; %" PRIu64 " futex calls\n",
         report.memory_peak, report.memory_budget, report.spilled, report.spilled_bytes, report.restored,
         report.futex_calls);
    for (const StageReport& stage : report.stages) {
        line(text, "  %-16s %10" PRIu64 " candidates in %" PRIu64 " calls, %.3f s\n", stage.name.c_str(),
             stage.candidates, stage.calls, stage.seconds);
    }
    return text;
}

} // namespace spillway
