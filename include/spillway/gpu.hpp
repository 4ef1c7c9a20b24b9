// Alignment as a device form, and the CUDA devices to run it on. Without CUDA the same form runs on the host.
//
//     struct Window { std::vector<AlignmentTask> tasks; ... };      // a task: target, queries, and room for alignments
//
//     const auto tasks_of = [](auto& window, auto&& align) {        // also called with a const Window&
//         for (auto& task : window.tasks) align(task.target, task.queries, task.found);
//     };
//     auto calling = spillway::pipeline<Region>("calling")
//                        ...
//                        .route("align", align_on_cpu, spillway::AlignOnDevice(scores, spillway::Span::query, tasks_of),
//                               {.cells = cells_of, .full = 8'000'000})
//                        ...;
//     const spillway::CudaDevices gpus = spillway::cuda_devices();  // gpus.reason says why there is none
//     calling.run({.devices = gpus.devices});                       // {std::make_shared<HostDevice>()} does it, too
//
// Guarantee: what is found is what align() finds, byte for byte (docs/tie_rule.md), on every device. Mechanism: score and
// end of each pair on the device (docs/gpu.md), begin and CIGAR there, too, where the path has no gap, else on the host
// by a proven band. Pairs that the kernels do not take (queries over 1,024 bases, targets over 32,768, empty ones, scores
// that do not fit their tables of bytes) are aligned on the host in unpack().
#pragma once

#include "spillway/align.hpp"
#include "spillway/device.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway {

/// Queries that are aligned to one target; found[i] belongs to queries[i].
struct AlignmentTask {
    std::string_view target;
    std::span<const std::string_view> queries;
    std::span<Alignment> found;
};

/// Takes alignments through a device's staging. Thread safety: any thread; a staging, one at a time.
class DeviceAligner {
public:
    /// Throws Error(usage) on scores that align() refuses.
    DeviceAligner(const Scores& scores, Span span);

    /// Of staging: beside the tasks, and of a task at most.
    [[nodiscard]] std::size_t header_bytes() const noexcept;
    [[nodiscard]] std::size_t bytes(std::string_view target, std::span<const std::string_view> queries) const noexcept;

    /// Writes the tasks to staging.host(). Throws Error(usage) where it is too small for them, or on lengths that
    /// align() refuses.
    void pack(std::span<const AlignmentTask> tasks, Staging& staging) const;
    /// Copies in, runs, copies out; does not wait.
    void launch(Staging& staging, Stream& stream) const;
    /// After the stream has synchronised: writes what was found. The same tasks as were packed.
    void unpack(Staging& staging, std::span<const AlignmentTask> tasks) const;

private:
    Scores scores_;
    Span span_;
};

/// DeviceAligner as the device form of a routed stage. `tasks_of(candidate, align)` calls align(target, queries, found)
/// for each task of a candidate, every time the same, with queries a range of std::string_view and found one of
/// Alignment, as many (not read where the candidate is const). It is called from several threads.
template <class TasksOf>
class AlignOnDevice {
public:
    AlignOnDevice(const Scores& scores, Span span, TasksOf tasks_of)
        : aligner_(scores, span), tasks_of_(std::move(tasks_of)) {}

    [[nodiscard]] std::size_t header_bytes() const { return aligner_.header_bytes(); }
    template <class Candidate>
    [[nodiscard]] std::size_t bytes(const Candidate& candidate) const {
        std::size_t sum = 0;
        tasks_of_(candidate, [&](std::string_view target, std::span<const std::string_view> queries, const auto&) {
            sum += aligner_.bytes(target, queries);
        });
        return sum;
    }
    template <class Batch>
    void pack(Batch& candidates, Staging& staging) {
        aligner_.pack(tasks_of(candidates), staging);
    }
    void launch(Staging& staging, Stream& stream) { aligner_.launch(staging, stream); }
    template <class Batch>
    void unpack(Staging& staging, Batch& candidates) {
        aligner_.unpack(staging, tasks_of(candidates));
    }

private:
    template <class Batch>
    [[nodiscard]] std::vector<AlignmentTask> tasks_of(Batch& candidates) const {
        std::vector<AlignmentTask> tasks;
        for (auto& candidate : candidates) {
            tasks_of_(candidate, [&](std::string_view target, std::span<const std::string_view> queries,
                                     std::span<Alignment> found) { tasks.push_back({target, queries, found}); });
        }
        return tasks;
    }

    DeviceAligner aligner_;
    TasksOf tasks_of_;
};

struct CudaDevices {
    std::vector<std::shared_ptr<Device>> devices;
    std::string reason; ///< Why there is none: the versions of driver and run time where it is for them. Else empty.
};

/// The CUDA devices of this machine that the kernels run on. Never throws for want of a driver or of a device.
[[nodiscard]] CudaDevices cuda_devices();

} // namespace spillway
