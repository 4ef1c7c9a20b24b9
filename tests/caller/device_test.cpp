// Alignment on a device: the same VCF, whoever aligns, and whatever fails.
#include "called.hpp"

#include "hts/sam_builder.hpp"
#include "spillway/gpu.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace spillway::test;

namespace {

struct Files {
    TemporaryDirectory directory;
    caller::CallerOptions options;
};

/// Insertions and deletions, so that reads must be aligned, on several contigs.
void make(Files& files) {
    Genome genome;
    SamBuilder sam(genome);
    sam.read_group("rg1", "S1");
    for (int i = 0; i < 6; ++i) genome.random("c" + std::to_string(i), 4000, static_cast<std::uint64_t>(31 + i));
    for (const Genome::Contig& contig : genome.contigs()) {
        std::vector<Variant> variants;
        for (std::int64_t at = 150; at < 3850; at += 90) {
            const std::string base = genome.slice(contig.name, at, at);
            variants.push_back(at % 4 == 0 ? Variant{contig.name, at, base, base + "GTA"}
                                           : Variant{contig.name, at, genome.slice(contig.name, at, at + 3), base});
        }
        sam.cover(contig.name, {.from = 1, .to = 4000, .step = 9}, {variants, {}});
    }
    files.options.reference = genome.write(files.directory);
    files.options.alignments = sam.bam(files.directory, "in.bam");
    files.options.threads = 2;
    files.options.region_length = 1000;
}

constexpr int most_runs = 500; ///< Until a device is used; far more than are ever needed.

/// Always on the device where it works, whatever the load of the machine.
spillway::RouterOptions eager() {
    spillway::RouterOptions router;
    router.low = 0;
    router.high = 0;
    router.switch_cost = 1;
    router.retry = std::chrono::milliseconds(1);
    return router;
}

std::shared_ptr<spillway::Device> host_device() {
    return std::make_shared<spillway::HostDevice>(spillway::HostDeviceOptions{.memory = std::size_t{16} << 20U});
}

caller::RunOptions on(std::vector<std::shared_ptr<spillway::Device>> devices) {
    caller::RunOptions how;
    how.devices = std::move(devices);
    how.router = eager();
    return how;
}

const spillway::StageReport& align_stage(const Called& called) {
    const auto& stages = called.report.pipeline.stages;
    return *std::find_if(stages.begin(), stages.end(), [](const auto& stage) { return stage.name == "align"; });
}

} // namespace

TEST_CASE("the VCF is the same without a device, on a device, on two, and on one that fails") {
    Files files;
    make(files);
    caller::CallerOptions off = files.options;
    off.gpu = spillway::Gpu::off;
    const Called expected = call(files.directory, off);
    REQUIRE(expected.records.size() > 200);
    CHECK(align_stage(expected).device_cells == 0);
    // Runs are so short that the workers may be through before a device gets its first batch: again, until it has had
    // one.
    std::uint64_t on_device = 0;
    for (int run = 0; run < most_runs && on_device == 0; ++run) {
        const Called one = call(files.directory, files.options, on({host_device()}));
        REQUIRE(one.text == expected.text);
        on_device += align_stage(one).device_cells;
    }
    CHECK(on_device > 0);
    const Called two = call(files.directory, files.options, on({host_device(), host_device()}));
    CHECK(two.text == expected.text);
    for (const auto fault :
         {spillway::DeviceFault::out_of_memory, spillway::DeviceFault::launch_failed, spillway::DeviceFault::lost}) {
        std::uint64_t failures = 0;
        for (int run = 0; run < most_runs && failures == 0; ++run) {
            auto device = std::make_shared<spillway::FaultyDevice>(
                host_device(), spillway::FaultyDevice::every(run % 2 == 0 ? 2 : 9, fault));
            const Called called = call(files.directory, files.options, on({device}));
            REQUIRE(called.text == expected.text);
            failures += device->faults();
        }
        CHECK(failures > 0);
    }
}

TEST_CASE("a GPU that is required and not there ends the run before it begins, and says why") {
    Files files;
    make(files);
    files.options.gpu = spillway::Gpu::required;
    if (!spillway::cuda_devices().devices.empty()) return;
    CHECK_THROWS_WITH(call(files.directory, files.options),
                      Catch::Contains("--gpu required") && Catch::Contains(spillway::cuda_devices().reason));
    CHECK_FALSE(spillway::cuda_devices().reason.empty());
}

TEST_CASE("under little memory a slow device gives the same VCF") {
    Files files;
    make(files);
    files.options.region_length = 200;
    files.options.memory = std::uint64_t{3} << 20U;
    const Called expected = call(files.directory, files.options);
    auto slow = std::make_shared<spillway::HostDevice>(
        spillway::HostDeviceOptions{.memory = std::size_t{8} << 20U, .cells_per_second = 2e8});
    const Called called = call(files.directory, files.options, on({slow}));
    CHECK(called.text == expected.text);
}
