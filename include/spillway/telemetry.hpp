// What a run did: its report, and the progress of one that is going on.
//
//     spillway::Report report = calling.run(options);
//     std::clog << report.candidates << " candidates, " << report.spilled_bytes << " bytes spilled\n"
//               << to_string(report);
#pragma once

#include "spillway/routing.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spillway {

struct StageReport {
    std::string name;
    bool by_key = false;          ///< Its forms are equivalent, not exact: routed by key, never by load.
    std::uint64_t candidates = 0; ///< That went in.
    std::uint64_t calls = 0;      ///< Of the stage's function or, for a stage of single candidates, of groups of them.
    std::uint64_t cpu_cells = 0;  ///< Routed stages with a device: work done by workers, in cells,
    std::uint64_t device_cells = 0; ///< and by devices.
    std::uint64_t device_batches = 0;
    std::uint64_t device_failures = 0; ///< Batches that went to the CPUs instead or, where routed by key, were retried.
    std::uint64_t switches = 0;        ///< Between the sides.
    RouterReport routing;              ///< Routed by load, with a device: how, and what was measured. Else empty.
    double seconds = 0; ///< CPU-side time inside, all workers together. Sampled where candidates are cheap.
};

struct Report {
    std::uint64_t sources = 0;    ///< Items that the source gave.
    std::uint64_t candidates = 0; ///< Made by the source and by fan-outs.
    std::uint64_t emitted = 0;    ///< That reached the sink.
    std::uint64_t dropped = 0;    ///< Filtered out by a stage, or failed and dropped by on_error's choice.
    std::uint64_t failed = 0;     ///< Of these, failed.
    std::uint64_t spilled = 0;    ///< Payloads written to disk.
    std::uint64_t spilled_bytes = 0;
    std::uint64_t restored = 0;    ///< Payloads read back.
    std::uint64_t rebuilt = 0;     ///< Payloads that were dropped and made again.
    std::uint64_t futex_calls = 0; ///< Sleeps and wake-ups of workers.
    std::uint64_t page_faults = 0; ///< Of the whole process meanwhile: many for each candidate mean that the allocator
                                   ///< gives memory back and fetches it again.
    std::size_t memory_budget = 0; ///< Bytes, after the machine's limits.
    std::size_t memory_peak = 0;   ///< Highest seen of the bytes that the governor counts.
    std::size_t threads_peak = 0;  ///< Most workers that the pool had meanwhile.
    double seconds = 0;
    std::vector<StageReport> stages;
};

/// A few lines of text, for a log.
[[nodiscard]] std::string to_string(const Report& report);

struct Progress {
    std::uint64_t sources = 0;  ///< Items taken from the source.
    std::uint64_t finished = 0; ///< Of these, passed by the ordered sink.
    std::uint64_t expected = 0; ///< Items that the source has in all; 0 is unknown.
    std::size_t memory = 0;     ///< Bytes that the governor counts now.
    std::uint64_t spilled_bytes = 0;
    double seconds = 0;
};

} // namespace spillway
