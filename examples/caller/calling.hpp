// The run: from opened inputs to a written VCF, every candidate through the pipeline.
//
//     caller::RunOptions how{.stop = stop.get_token()};
//     const caller::RunReport report = caller::run(options, how);
#pragma once

#include "options.hpp"

#include "spillway/pipeline.hpp"

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace caller {

struct RunOptions {
    std::stop_token stop;                                    ///< A request ends the run with Error(cancelled).
    std::function<void(const std::string&)> warn;            ///< Whole sentences; one call at a time.
    std::function<void(const std::string&)> tell = {};       ///< As warn, where nothing is amiss: how the run is done.
    std::function<void(const spillway::Progress&)> progress; ///< May be empty.
    std::shared_ptr<spillway::FileSystem> files = {}; ///< Of spilling, journal and output. None: the machine's own.
    std::vector<std::shared_ptr<spillway::Device>> devices = {}; ///< To align on. None: the machine's own.
    spillway::RouterOptions router = {};                         ///< When they take a batch; its gpu is the options'.
};

struct RunReport {
    spillway::Report pipeline;
    spillway::hts::Profile profile = spillway::hts::Profile::wgs; ///< Asked for, or found in the header.
    std::uint64_t calls = 0;
    std::uint64_t spans_resumed = 0; ///< That an earlier run had finished.
    std::uint64_t reads_decoded = 0; ///< By all workers; reads near the borders of spans more than once.
    std::uint64_t reads_given = 0;   ///< After the filter.
    std::uint64_t reads_without_match = 0;
    std::uint64_t reads_without_bases = 0;
    std::uint64_t reads_in_file = 0; ///< As the index says; 0 where it does not.
};

/// Calls variants. The output appears under its name only if all went well. Throws Error.
RunReport run(const CallerOptions& options, const RunOptions& how);

} // namespace caller
