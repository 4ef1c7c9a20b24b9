// Alignment on a device: the same VCF, whoever aligns, and whatever fails.
#include "called.hpp"

#include "hts/sam_builder.hpp"
#include "router/eager.hpp"
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
    std::uint64_t on_first = 0, on_second = 0;
    for (int run = 0; run < most_runs && (on_first == 0 || on_second == 0); ++run) {
        const Called two = call(files.directory, files.options, on({host_device(), host_device()}));
        REQUIRE(two.text == expected.text);
        on_first += align_stage(two).routing.devices.at(0).cells;
        on_second += align_stage(two).routing.devices.at(1).cells;
    }
    CHECK(on_first > 0);
    CHECK(on_second > 0);
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

TEST_CASE("a GPU that is not there is said once where the build could use one, and the CPU aligns") {
    if (!spillway::cuda_devices().devices.empty()) return;
    Files files;
    make(files);
    const auto told = [&](spillway::Gpu gpu, int verbosity) {
        caller::CallerOptions options = files.options;
        options.gpu = gpu;
        options.verbosity = verbosity;
        std::size_t times = 0;
        caller::RunOptions how;
        how.tell = [&](const std::string& text) {
            times += text.find(spillway::cuda_devices().reason) != std::string::npos ? 1U : 0U;
        };
        CHECK(call(files.directory, options, std::move(how)).records.size() > 200);
        return times;
    };
    CHECK(told(spillway::Gpu::automatic, 1) == (spillway::cuda_devices().built ? 1U : 0U));
    CHECK(told(spillway::Gpu::automatic, 2) == 1);
    CHECK(told(spillway::Gpu::off, 2) == 0);
}

TEST_CASE("under little memory a slow device gives the same VCF") {
    Files files;
    make(files);
    files.options.region_length = 200;
    files.options.memory = least_memory(files.directory, files.options) + (std::uint64_t{1} << 20U);
    const Called expected = call(files.directory, files.options);
    auto slow = std::make_shared<spillway::HostDevice>(
        spillway::HostDeviceOptions{.memory = std::size_t{8} << 20U, .cells_per_second = 2e8});
    const Called called = call(files.directory, files.options, on({slow}));
    CHECK(called.text == expected.text);
}
