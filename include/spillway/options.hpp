// How a pipeline is run: one plain struct whose defaults are right on a laptop, on 128 cores and in a container.
//
//     spillway::Report report = calling.run({.memory = 2_GiB, .threads = 8});
#pragma once

#include "spillway/candidate.hpp"
#include "spillway/device.hpp"
#include "spillway/error.hpp"
#include "spillway/governor.hpp"
#include "spillway/journal.hpp"
#include "spillway/router.hpp"
#include "spillway/spill.hpp"
#include "spillway/telemetry.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <vector>

namespace spillway {

/// What becomes of a candidate whose stage threw.
enum class Reaction : std::uint8_t {
    stop, ///< End the run with this error.
    drop, ///< Leave the candidate out, count it in the report, and go on.
};

struct Options {
    std::uint64_t memory =
        0; ///< Bytes that the run may use; 0: what the machine and its cgroup allow. On a shared pool: the pool's.
    /// Bytes that the stages come to hold during the run whatever the candidates, such as a reference that they load.
    /// With the tables, the workers' buffers and what .local() was said to take it is the least memory that a run
    /// accepts.
    std::uint64_t resident = 0;
    std::size_t threads = 0;    ///< Most workers; 0: what affinity and the cgroup allow. On a shared pool: the pool's.
    std::size_t open_items = 0; ///< Source items begun and not yet through the ordered sink, at most; 0: by the budget.
    int priority = 0;           ///< Among the pipelines of a pool, the highest is served first.
    std::optional<SpillOptions> spill =
        {}; ///< Where to spill; none: the first of $TMPDIR, /var/tmp and /tmp that is a disk, else not at all.
    /// What routed stages may use beside the CPUs; none: they run on the CPUs alone. Pipelines may share one.
    std::vector<std::shared_ptr<Device>> devices = {};
    /// Threads that pack and unpack for each device and stage, at least 1, beside the workers; all together at most 64.
    /// More where a device is faster than one of them can serve it; the device form is then called by several at once.
    std::size_t feeders = 1;
    RouterOptions router = {};  ///< When a device takes a batch. Its gpu = off ignores the devices, required wants one.
    Journal* journal = nullptr; ///< Keeps what is finished, and gives what earlier runs finished; it outlives the run.
    std::stop_token stop = {};  ///< A request ends the run with Error(cancelled).
    /// Called on a worker, perhaps on several at once. Default: stop.
    std::function<Reaction(const Error&, const Key&)> on_error = {};
    /// Called by one worker at a time, about twice a second.
    std::function<void(const Progress&)> progress = {};
    /// Called with one line of text for what a user should know: where spilling goes, that it is impossible.
    std::function<void(std::string_view)> log = {};
};

} // namespace spillway
