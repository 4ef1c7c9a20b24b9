// A routed stage's device form, on a device of the host's own: CUDA need not be there.
#include <spillway/gpu.hpp>

#include <cstdio>
#include <string_view>
#include <vector>

int main() {
    const spillway::CudaDevices gpus = spillway::cuda_devices();
    if (gpus.devices.empty() == gpus.reason.empty()) return 1;
    const spillway::DeviceAligner aligner(spillway::Scores{}, spillway::Span::local);
    const std::vector<std::string_view> queries{"CCACGTACGT"};
    std::vector<spillway::Alignment> found(1);
    const std::vector<spillway::AlignmentTask> tasks{{"GGACGTACGTTT", queries, found}};
    spillway::HostDevice device;
    const auto staging = device.make_staging(10000);
    const auto stream = device.make_stream();
    aligner.pack(tasks, *staging);
    aligner.launch(*staging, *stream);
    stream->synchronise();
    aligner.unpack(*staging, tasks);
    std::printf("%d %d-%d %s\n", found[0].score, found[0].target_begin, found[0].target_end,
                spillway::to_string(found[0].cigar).c_str());
}
