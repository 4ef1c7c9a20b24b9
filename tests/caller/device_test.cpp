// Alignment on a device: the same VCF, whoever aligns, and whatever fails.
#include "called.hpp"

#include "hts/sam_builder.hpp"
#include "process.hpp"
#include "router/eager.hpp"
#include "router/random_faults.hpp"
#include "spillway/gpu.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>

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
    return std::make_shared<spillway::HostDevice>(spillway::HostDeviceOptions{.memory = std::size_t{2} << 20U});
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

std::size_t times_in(const std::string& text, const std::string& what) {
    std::size_t times = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++times;
    return times;
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
    off.threads = 1; // its order of work is one and the same
    const Called alone = call(files.directory, off);
    CHECK(alone.text == expected.text);
    CHECK(2 * align_stage(alone).calls < align_stage(alone).candidates); // batches go across candidates
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
    // Until it has failed and, unless it always does before its first batch, aligned.
    const auto check_faulty = [&](const spillway::FaultyDevice::Plan& plan, bool aligns) {
        const auto device = std::make_shared<spillway::FaultyDevice>(host_device(), plan);
        std::uint64_t cells = 0;
        for (int run = 0; run < most_runs && (device->faults() == 0 || (aligns && cells == 0)); ++run) {
            const Called called = call(files.directory, files.options, on({device}));
            REQUIRE(called.text == expected.text);
            cells += align_stage(called).device_cells;
        }
        CHECK(device->faults() > 0);
        if (aligns) CHECK(cells > 0);
    };
    for (const auto fault :
         {spillway::DeviceFault::out_of_memory, spillway::DeviceFault::launch_failed, spillway::DeviceFault::lost}) {
        CAPTURE(to_string(fault));
        check_faulty(faults_of_batches(1, fault), false);
        check_faulty(faults_of_batches(2, fault), true);
    }
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        CAPTURE(seed);
        check_faulty(random_faults(seed, seed % 2 == 0 ? 8 : 12), true);
    }
}

TEST_CASE("with more devices than the workers can feed singly the VCF is the same") {
    Files files;
    make(files);
    files.options.threads = 18; // nine feeders of each of eight devices would be more than there may be
    caller::CallerOptions off = files.options;
    off.gpu = spillway::Gpu::off;
    const Called expected = call(files.directory, off);
    std::vector<std::shared_ptr<spillway::Device>> eight;
    for (int i = 0; i < 8; ++i)
        eight.push_back(
            std::make_shared<spillway::HostDevice>(spillway::HostDeviceOptions{.memory = std::size_t{1} << 20U}));
    const Called called = call(files.directory, files.options, on(eight));
    CHECK(called.text == expected.text);
    CHECK(align_stage(called).routing.devices.size() == 8);
}

TEST_CASE("the VCF is the same on the CUDA devices of this machine as without one") {
    const spillway::CudaDevices found = spillway::cuda_devices();
    if (found.devices.empty()) {
        std::cout << "SKIPPED: " << found.reason << '\n';
        return;
    }
    Files files;
    make(files);
    caller::CallerOptions off = files.options;
    off.gpu = spillway::Gpu::off;
    const Called expected = call(files.directory, off);
    std::uint64_t on_device = 0;
    for (int run = 0; run < most_runs && on_device == 0; ++run) {
        const Called called = call(files.directory, files.options, on(found.devices));
        REQUIRE(called.text == expected.text);
        on_device += align_stage(called).device_cells;
    }
    CHECK(on_device > 0);
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

TEST_CASE("the binary without a GPU refuses where one is required, by both versions of CUDA, and else calls") {
    const spillway::CudaDevices found = spillway::cuda_devices();
    if (!found.devices.empty()) return;
    Files files;
    make(files);
    const auto with = [&](const std::string& gpu) {
        return run({SPILLWAY_CALL, "--gpu", gpu, "--threads", "2", "-f", files.options.reference, "-o",
                    files.directory.file(gpu + ".vcf"), files.options.alignments});
    };
    const Outcome required = with("required");
    CHECK(required.status == 2);
    CHECK_THAT(required.err, Catch::Contains(found.reason));
    if (found.built) {
        CHECK_THAT(required.err, Catch::Matches("(.|\n)*(no driver|driver for CUDA [0-9]+\\.[0-9]+), "
                                                "built with CUDA run time [0-9]+\\.[0-9]+(.|\n)*"));
    }
    CHECK_FALSE(std::filesystem::exists(files.directory.file("required.vcf")));
    const Outcome automatic = with("auto"), off = with("off");
    CHECK(automatic.status == 0);
    CHECK(off.status == 0);
    CHECK(times_in(automatic.err, found.reason) == (found.built ? 1U : 0U));
    CHECK(times_in(off.err, found.reason) == 0);
    CHECK(read_file(files.directory.file("auto.vcf")) == read_file(files.directory.file("off.vcf")));
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
    std::uint64_t on_device = 0;
    for (int run = 0; run < most_runs && on_device == 0; ++run) {
        auto slow = std::make_shared<spillway::HostDevice>(
            spillway::HostDeviceOptions{.memory = std::size_t{8} << 20U, .cells_per_second = 2e8});
        const Called called = call(files.directory, files.options, on({slow}));
        REQUIRE(called.text == expected.text);
        on_device += align_stage(called).device_cells;
    }
    CHECK(on_device > 0);
}
