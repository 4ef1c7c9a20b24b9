#include "routed.hpp"
#include "temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

using namespace spillway;
using namespace spillway::test;

namespace {

struct Result {
    std::vector<std::uint32_t> scores;
    Report report;
    std::uint64_t on_device = 0;
};

Result run_with(std::vector<std::shared_ptr<Device>> devices, RouterOptions router, std::uint32_t count,
                std::uint64_t memory = 0) {
    Result result;
    std::atomic<std::uint64_t> done{0};
    auto run =
        routed(count, done)
            .map("score",
                 [](const Pair& pair) { return pair.score + pair.bases[0] - static_cast<std::uint8_t>(pair.number); })
            .in_order("collect", [&](std::uint32_t x) { result.scores.push_back(x); });
    Pool pool({.max_threads = 2, .memory = {.memory = memory, .watch_process = false}});
    result.report = run.run(pool, {.devices = std::move(devices), .router = router});
    result.on_device = done;
    return result;
}

} // namespace

TEST_CASE("a routed stage gives the same with no device, with one, and with two") {
    const auto devices = GENERATE(0U, 1U, 2U);
    std::vector<std::shared_ptr<Device>> list;
    for (unsigned i = 0; i < devices; ++i) list.push_back(small_device());
    const Result result = run_with(list, eager(), 20000);
    CHECK(result.scores == expected(20000));
    const StageReport& stage = result.report.stages[1];
    CHECK(stage.candidates == 20000);
    CHECK(stage.device_cells == result.on_device);
    if (devices == 0) {
        CHECK(result.on_device == 0);
    } else {
        CHECK(stage.cpu_cells + stage.device_cells == 20000);
    }
}

TEST_CASE("a device that is always wanted does its share, in a run that is long enough to measure it") {
    // On until it has done some, so that the test means the same on a slow machine.
    const auto device = small_device();
    std::uint64_t on_device = 0;
    for (std::uint32_t count = 20000; on_device == 0 && count < 10'000'000; count *= 4) {
        const Result result = run_with({device}, eager(), count);
        CHECK(result.scores == expected(count));
        on_device = result.report.stages[1].device_cells;
    }
    CHECK(on_device > 0);
}

TEST_CASE("a device that fails at every k-th call loses and doubles nothing") {
    const auto fault =
        GENERATE(DeviceFault::out_of_memory, DeviceFault::launch_failed, DeviceFault::lost, DeviceFault::no_driver);
    const auto k = GENERATE(1U, 2U, 7U, 40U);
    CAPTURE(to_string(fault), k);
    auto device = std::make_shared<FaultyDevice>(small_device(), FaultyDevice::every(k, fault));
    // Until a fault has come and, where k lets a batch through, a batch: when the device gets work is up to the load.
    const auto enough = [&](std::uint64_t on_device) { return device->faults() > 0 && (k < 40 || on_device > 0); };
    std::uint64_t on_device = 0;
    std::uint32_t count = 5000;
    for (int runs = 0; runs < 60 && !enough(on_device); ++runs) {
        const Result result = run_with({device}, eager(), count);
        REQUIRE(result.scores == expected(count));
        REQUIRE(result.report.emitted == count);
        on_device += result.on_device;
        if (result.on_device == 0 && count < 2'000'000) count *= 2;
    }
    CHECK(enough(on_device));
}

TEST_CASE("a device under a small memory budget, with results on disk, gives the same") {
    std::uint64_t on_device = 0, spilled = 0; // on until there is some of both
    for (std::uint32_t count = 5000; (on_device == 0 || spilled == 0) && count < 1'000'000; count *= 2) {
        const TemporaryDirectory scratch;
        std::atomic<std::uint64_t> done{0};
        std::atomic<std::uint32_t> scored{0};
        std::vector<std::uint32_t> scores;
        auto run = routed(count, done)
                       .map("score",
                            [&](Pair& pair) { // the others' results wait for the first one's
                                const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(2);
                                while (pair.number == 0 && scored < 4000 && std::chrono::steady_clock::now() < patience)
                                    std::this_thread::yield();
                                ++scored;
                            })
                       .in_order("collect", [&](const Pair& pair) {
                           scores.push_back(pair.score + pair.bases.at(999) - static_cast<std::uint8_t>(pair.number));
                       });
        Pool pool({.max_threads = 2, .memory = {.memory = 1_MiB, .watch_process = false}});
        const auto device = std::make_shared<HostDevice>(HostDeviceOptions{.memory = 4_MiB, .cells_per_second = 2e5});
        const Report report = run.run(pool, {.spill = SpillOptions{.directory = scratch.path(), .allow_tmpfs = true},
                                             .devices = {device},
                                             .router = eager()});
        REQUIRE(scores == expected(count));
        CHECK(report.restored == report.spilled);
        CHECK(report.stages[1].device_cells == done);
        on_device += done;
        spilled += report.spilled;
    }
    CHECK(on_device > 0);
    CHECK(spilled > 0);
}

TEST_CASE("the report tells how a stage was routed, and what was measured") {
    const auto device = small_device();
    Result result;
    for (std::uint32_t count = 20000; result.on_device == 0 && count < 10'000'000; count *= 4) {
        result = run_with({device}, eager(), count);
    }
    REQUIRE(result.on_device > 0);
    const StageReport& stage = result.report.stages[1];
    CHECK(result.report.stages[0].routing.devices.empty());
    REQUIRE(stage.routing.devices.size() == 1);
    const DeviceReport& routed = stage.routing.devices[0];
    CHECK(stage.routing.cpu_cells == stage.cpu_cells);
    CHECK(routed.cells == result.on_device);
    CHECK(routed.batches == stage.device_batches);
    CHECK(routed.to_device >= routed.batches);
    std::uint64_t reasons = 0, samples = 0;
    for (const std::uint64_t count : routed.by_why) reasons += count;
    for (const MeasuredRate& rate : routed.rates) samples += rate.samples;
    CHECK(reasons == routed.decisions);
    CHECK(samples == routed.batches);
    CHECK(routed.spent.pack.count() > 0);
    CHECK(routed.spent.unpack.count() > 0);
    CHECK_FALSE(stage.routing.cpu_rates.empty());
    const std::string text = to_string(result.report);
    CHECK(text.find("    CPU: " + std::to_string(stage.cpu_cells) + " cells (") != std::string::npos);
    CHECK(text.find("    device 0: " + std::to_string(routed.cells) + " cells (") != std::string::npos);
    CHECK(text.find("    device 0: " + std::to_string(routed.decisions) + " decisions, ") != std::string::npos);
}

TEST_CASE("gpu off ignores devices, and gpu required without one does not start") {
    RouterOptions off = eager();
    off.gpu = Gpu::off;
    const Result result = run_with({std::make_shared<HostDevice>()}, off, 1000);
    CHECK(result.scores == expected(1000));
    CHECK(result.on_device == 0);
    RouterOptions required = eager();
    required.gpu = Gpu::required;
    CHECK_THROWS_WITH(run_with({}, required, 10), Catch::Contains("a device is required"));
}

namespace {

/// How far batches have come, and whether each step that should overlap another did; each kernel waits for that.
struct Steps {
    std::atomic<int> packed{0}, launched{0}, unpacked{0};
    std::atomic<bool> alone{false};

    void wait_for(const std::atomic<int>& counter, int least) {
        const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        while (counter < least && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
        if (counter < least) alone = true;
    }
};

struct Overlapping {
    Steps* steps;

    [[nodiscard]] std::size_t bytes(const int&) const { return 4; }
    void pack(batch<int>&, Staging&) { ++steps->packed; }
    void launch(Staging&, Stream& stream) {
        stream.run(1, [all = steps, number = ++steps->launched](void*) {
            if (number == 1) all->wait_for(all->packed, 2);   // the next batch is packed while this one runs
            if (number == 2) all->wait_for(all->unpacked, 1); // and this one runs while the one before is unpacked
        });
    }
    void unpack(Staging&, batch<int>& numbers) {
        for (int& number : numbers) ++number;
        ++steps->unpacked;
    }
};

/// Gives its feeder no staging before all candidates are made: what the feeder then looks at is many whole batches.
class LateDevice final : public Device {
public:
    LateDevice(const std::atomic<int>& made, int all) : made_(made), all_(all) {}

    [[nodiscard]] std::string name() const override { return inner_.name(); }
    [[nodiscard]] std::size_t free_memory() const override { return inner_.free_memory(); }
    [[nodiscard]] std::unique_ptr<Staging> make_staging(std::size_t bytes) override {
        const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        while (made_ < all_ && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
        return inner_.make_staging(bytes);
    }
    [[nodiscard]] std::unique_ptr<Stream> make_stream() override { return inner_.make_stream(); }
    void reset() override { inner_.reset(); }

private:
    const std::atomic<int>& made_;
    const int all_;
    HostDevice inner_{HostDeviceOptions{.memory = 4_MiB}};
};

} // namespace

TEST_CASE("while a device computes one batch the next is packed, and the one before unpacked") {
    constexpr int count = 900;
    Steps steps;
    std::atomic<int> made{0};
    std::vector<int> results;
    auto run = pipeline<int>("overlapping")
                   .source(std::views::iota(0, count))
                   .map("make",
                        [&](int x) {
                            ++made;
                            return x;
                        })
                   .route("add", [](batch<int>&) {}, Overlapping{&steps}, {.cells = {}, .forms = Forms::equivalent})
                   .in_order("collect", [&](int x) { results.push_back(x); });
    static_cast<void>(run.run({.threads = 2, .devices = {std::make_shared<LateDevice>(made, count)}}));
    CHECK_FALSE(steps.alone);
    CHECK(steps.unpacked == count / 30); // batches of thirty
    REQUIRE(results.size() == count);
    for (int i = 0; i < count; ++i) CHECK(results[static_cast<std::size_t>(i)] == i + 1);
}

TEST_CASE("a plain function may be the device form") {
    std::atomic<int> calls{0};
    std::vector<std::uint32_t> scores;
    auto run = pipeline<std::uint32_t>("plain")
                   .source(std::views::iota(std::uint32_t{0}, std::uint32_t{3000}))
                   .map("make",
                        [](std::uint32_t x) {
                            return Pair{x, 0, {}};
                        })
                   .route("align", on_cpu,
                          [&](batch<Pair>& pairs) {
                              ++calls;
                              on_cpu(pairs);
                          },
                          {.cells = {}, .full = 32})
                   .map("score", [](const Pair& pair) { return pair.score; })
                   .in_order("collect", [&](std::uint32_t x) { scores.push_back(x); });
    static_cast<void>(run.run({.threads = 2, .devices = {std::make_shared<HostDevice>()}, .router = eager()}));
    CHECK(scores == expected(3000));
}
