#include "align/finish.hpp"
#include "align/limits.hpp"
#include "gpu/fit.hpp"
#include "gpu/kernels.hpp"
#include "gpu/packing.hpp"
#include "spillway/error.hpp"
#include "spillway/gpu.hpp"

#include <string>

namespace spillway {

DeviceAligner::DeviceAligner(const Scores& scores, Span span) : scores_(scores), span_(span) {
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
    Finisher finisher(scores_, span_);
    auto end = layout.ends(staging.host()).begin();
    for (const AlignmentTask& task : tasks) {
        for (std::size_t i = 0; i < task.queries.size(); ++i) {
            const std::string_view query = task.queries[i];
            Alignment& found = task.found[i];
            if (!fit.of(query.size(), task.target.size())) {
                found = align(query, task.target, scores_, span_);
                continue;
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
