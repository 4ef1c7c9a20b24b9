#include "align/finish.hpp"
#include "align/isa.hpp"
#include "align/limits.hpp"
#include "gpu/fit.hpp"
#include "gpu/kernels.hpp"
#include "gpu/packing.hpp"
#include "spillway/error.hpp"
#include "spillway/gpu.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace spillway {
namespace {

/// Whether the end is one that a pair of these sizes may have: inside it, with a score no higher than if all of it
/// matched, for which its numbers were chosen, and no lower than if none of it did.
bool possible(const gpu::End& end, const gpu::Launch& launch, std::size_t query_size, std::size_t target_size) {
    const gpu::ReducedScores& scores = launch.work.scores;
    const auto query = static_cast<std::int32_t>(query_size), target = static_cast<std::int32_t>(target_size);
    const std::int32_t highest = scores.match * std::min(query, target);
    const std::int32_t lowest = launch.local ? 0 : -scores.gap_open - scores.gap_extend * (query - 1);
    const bool inside = end.target_end >= 0 && end.target_end <= target && end.query_end >= 0 &&
                        end.query_end <= query && (launch.local || end.query_end == query);
    // Where there is a begin, the path has as many bases of the query as of the target.
    const bool begins = end.target_begin == -1 || (end.target_begin >= 0 && end.target_begin <= end.target_end &&
                                                   end.target_end - end.target_begin <= end.query_end);
    return inside && begins && end.score >= lowest && end.score <= highest;
}

} // namespace

DeviceAligner::DeviceAligner(const Scores& scores, Span span) : scores_(with_cheapest_extension(scores)), span_(span) {
    check_scores(scores);
}

std::size_t DeviceAligner::header_bytes() noexcept {
    return gpu::Packing::header_bytes();
}

std::size_t DeviceAligner::target_bytes(std::size_t size) noexcept {
    return gpu::Packing::bytes_of_target(size);
}

std::size_t DeviceAligner::query_bytes(std::size_t size) noexcept {
    return gpu::Packing::bytes_of_pair(size);
}

std::string DeviceAligner::kernel_of(std::size_t query_size, std::size_t target_size) const {
    const std::optional<gpu::Tiling> tiling = gpu::Fit(scores_, span_).of(query_size, target_size);
    if (!tiling) return {};
    const gpu::Shape& shape = gpu::shapes[tiling->shape];
    return (shape.packed ? "packed " : "wide ") + std::to_string(shape.columns);
}

void DeviceAligner::pack(std::span<const AlignmentTask> tasks, Staging& staging) const {
    const gpu::Fit fit(scores_, span_);
    gpu::Packing packing(fit);
    for (const AlignmentTask& task : tasks) {
        if (task.queries.size() != task.found.size()) {
            throw Error(ErrorCode::usage, "aligning on a device", "a task",
                        std::to_string(task.queries.size()) + " queries but room for " +
                            std::to_string(task.found.size()) + " alignments; give one for each query");
        }
        packing.next_target(task.target);
        for (const std::string_view query : task.queries) {
            check_lengths(query.size(), task.target.size(), scores_);
            packing.add(query);
        }
    }
    packing.write(staging.host());
}

void DeviceAligner::launch(Staging& staging, Stream& stream) const {
    const gpu::Layout& layout = gpu::Layout::of(staging.host());
    if (layout.launch.pairs == 0) return;
    stream.copy_in(staging, 0, layout.ends_at);
    stream.run(layout.cells, [launch = layout.at(static_cast<std::byte*>(staging.device()))](void* native) {
        if (native != nullptr) {
            gpu::launch_on_cuda(launch, native);
        } else {
            gpu::run_in_lockstep(launch);
        }
    });
    stream.copy_out(staging, layout.ends_at, layout.size - layout.ends_at);
}

void DeviceAligner::unpack(Staging& staging, std::span<const AlignmentTask> tasks) const {
    const gpu::Layout& layout = gpu::Layout::of(staging.host());
    const std::int32_t divisor = layout.launch.work.scores.divisor;
    const gpu::Fit fit(scores_, span_);
    Finisher finisher(scores_, span_, instructions_of(chosen_isa()));
    auto end = layout.ends(staging.host()).begin();
    for (const AlignmentTask& task : tasks) {
        for (std::size_t i = 0; i < task.queries.size(); ++i) {
            const std::string_view query = task.queries[i];
            Alignment& found = task.found[i];
            if (!fit.of(query.size(), task.target.size())) {
                found = align(query, task.target, scores_, span_);
                continue;
            }
            if (!possible(*end, layout.launch, query.size(), task.target.size())) {
                throw DeviceError(DeviceFault::launch_failed, "aligning",
                                  "it gave an end or a score that its pair cannot have");
            }
            found.score = end->score * divisor;
            found.query_end = end->query_end;
            found.target_end = end->target_end;
            if (end->target_begin < 0) {
                finisher.finish(query, task.target, found);
            } else {
                const std::int32_t length = end->target_end - end->target_begin;
                found.query_begin = end->query_end - length;
                found.target_begin = end->target_begin;
                found.cigar.clear();
                if (length > 0) found.cigar.push_back(static_cast<CigarElement>(length) << 4U);
            }
            ++end;
        }
    }
}

} // namespace spillway
