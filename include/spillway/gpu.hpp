// Alignment as a device form, and the CUDA devices to run it on. Without CUDA the same form runs on the host.
//
//     struct Task { std::string haplotype; std::vector<std::string> reads; std::vector<spillway::Alignment> found; };
//     struct Window { std::vector<Task> tasks; ... };
//
//     const auto tasks_of = [](auto& window, auto&& align) {        // also called with a const Window&
//         for (auto& task : window.tasks) align(task.haplotype, task.reads, task.found);
//     };
//     auto calling = spillway::pipeline<Region>("calling")
//                        ...
//                        .route("align", align_on_cpu,
//                               spillway::AlignOnDevice(scores, spillway::Span::query, tasks_of),
//                               {.cells = cells_of, .full = 8'000'000})
//                        ...;
//     const spillway::CudaDevices gpus = spillway::cuda_devices();  // gpus.reason says why there is none
//     calling.run({.devices = gpus.devices});                       // {std::make_shared<HostDevice>()} does it, too
//
// Guarantee: what is found is what align() finds, byte for byte (docs/tie_rule.md), on every device. Mechanism: score
// and end of each pair on the device (docs/gpu.md), begin and CIGAR there, too, where the path has no gap, else on the
// host by a proven band. Pairs that the kernels do not take (queries over 1,024 bases, targets over 32,768, empty ones,
// scores that do not fit their tables of bytes) are aligned on the host in unpack().
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

    /// Of staging: what a batch takes beside its tasks, and what a target and a query of this size take, at most.
    [[nodiscard]] static std::size_t header_bytes() noexcept;
    [[nodiscard]] static std::size_t target_bytes(std::size_t size) noexcept;
    [[nodiscard]] static std::size_t query_bytes(std::size_t size) noexcept;

    /// The kernel that takes a pair of these sizes: "packed 20" sweeps two in 16 bits, 20 columns a thread, "wide 32" one
    /// in 32 bits. Empty where the host does it.
    [[nodiscard]] std::string kernel_of(std::size_t query_size, std::size_t target_size) const;

    /// Writes the tasks to staging.host(). Throws Error(usage) where it is too small for them, or on lengths that
    /// align() refuses.
    void pack(std::span<const AlignmentTask> tasks, Staging& staging) const;
    /// Copies in, runs, copies out; does not wait.
    void launch(Staging& staging, Stream& stream) const;
    /// After the stream has synchronised: writes what was found. The same tasks as were packed. Throws DeviceError where
    /// the device gave what a pair cannot have; what was found is then undefined.
    void unpack(Staging& staging, std::span<const AlignmentTask> tasks) const;

private:
    Scores scores_;
    Span span_;
};

/// DeviceAligner as the device form of a routed stage. `tasks_of(candidate, align)` calls align(target, queries, found)
/// for each task of a candidate, every time the same: a std::string_view, a range of what converts to one, and a
/// std::span<Alignment> with room for each (const where the candidate is; it is not read then). All three lie in the
/// candidate. It is called from several threads.
template <class TasksOf>
class AlignOnDevice {
public:
    AlignOnDevice(const Scores& scores, Span span, TasksOf tasks_of)
        : aligner_(scores, span), tasks_of_(std::move(tasks_of)) {}

    [[nodiscard]] std::size_t header_bytes() const { return DeviceAligner::header_bytes(); }
    template <class Candidate>
    [[nodiscard]] std::size_t bytes(const Candidate& candidate) const {
        std::size_t sum = 0;
        tasks_of_(candidate, [&](std::string_view target, const auto& queries, const auto&) {
            sum += DeviceAligner::target_bytes(target.size());
            for (const std::string_view query : queries) sum += DeviceAligner::query_bytes(query.size());
        });
        return sum;
    }
    template <class Batch>
    void pack(Batch& candidates, Staging& staging) {
        aligner_.pack(Tasks(candidates, tasks_of_).tasks, staging);
    }
    void launch(Staging& staging, Stream& stream) { aligner_.launch(staging, stream); }
    template <class Batch>
    void unpack(Staging& staging, Batch& candidates) {
        aligner_.unpack(staging, Tasks(candidates, tasks_of_).tasks);
    }

private:
    struct Tasks {
        template <class Batch>
        Tasks(Batch& candidates, const TasksOf& tasks_of) {
            std::vector<std::size_t> ends;
            for (auto& candidate : candidates) {
                tasks_of(candidate, [&](std::string_view target, const auto& of_task, std::span<Alignment> found) {
                    for (const std::string_view query : of_task) queries.push_back(query);
                    ends.push_back(queries.size());
                    tasks.push_back({target, {}, found});
                });
            }
            std::size_t begin = 0; // spans only now: the vector has moved while it grew
            for (std::size_t i = 0; i < tasks.size(); begin = ends[i++]) {
                tasks[i].queries = std::span(queries).subspan(begin, ends[i] - begin);
            }
        }
        std::vector<std::string_view> queries;
        std::vector<AlignmentTask> tasks;
    };

    DeviceAligner aligner_;
    TasksOf tasks_of_;
};

struct CudaDevices {
    std::vector<std::shared_ptr<Device>> devices;
    std::string reason; ///< Why there is none: the versions of driver and run time where it is for them. Else empty.
    bool built = true;  ///< Whether this build has CUDA at all.
};

/// The CUDA devices of this machine that the kernels run on. Never throws for want of a driver or of a device. Call it
/// once in a process, and give the same objects to all runs: a device that is lost is reset when nobody holds its object.
[[nodiscard]] CudaDevices cuda_devices();

} // namespace spillway
