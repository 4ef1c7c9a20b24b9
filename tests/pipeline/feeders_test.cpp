// Several feeders for one device, and several stages: nothing is lost or doubled, and nobody resets a device that another
// still holds.
#include "routed.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

using namespace spillway;
using namespace spillway::test;

namespace {

constexpr std::size_t feeders = 3;

/// Until what a test is about has happened: when a feeder gets work is up to the load of the machine.
constexpr int most_runs = 100;
constexpr std::uint32_t most_pairs = 500'000;

/// The device form, and who called it.
struct Watched : OnDevice {
    std::set<std::thread::id>* callers;
    std::mutex* guard;

    void pack(batch<Pair>& pairs, Staging& staging) {
        {
            const std::lock_guard lock(*guard);
            callers->insert(std::this_thread::get_id());
        }
        OnDevice::pack(pairs, staging);
    }
};

struct Result {
    std::vector<std::uint32_t> scores;
    StageReport stage;
    std::size_t callers = 0;
};

/// On a device so slow that one batch is not done before the next feeder looks.
Result run_with(const std::shared_ptr<Device>& device, std::uint32_t count, Forms forms) {
    Result result;
    std::atomic<std::uint64_t> done{0};
    std::set<std::thread::id> callers;
    std::mutex guard;
    auto run =
        pipeline<std::uint32_t>("feeding")
            .source(std::views::iota(std::uint32_t{0}, count))
            .map("make",
                 [](std::uint32_t x) {
                     return Pair{x, 0, {}};
                 })
            .route("align", on_cpu, Watched{{&done}, &callers, &guard}, {.cells = {}, .full = 64, .forms = forms})
            .in_order("collect", [&](const Pair& pair) { result.scores.push_back(pair.score); });
    const Report report = run.run({.threads = 2, .devices = {device}, .feeders = feeders, .router = eager()});
    result.stage = report.stages[1];
    result.callers = callers.size();
    CHECK(report.emitted == count);
    CHECK(result.stage.device_cells == done);
    return result;
}

std::shared_ptr<Device> slow_device() {
    return std::make_shared<HostDevice>(HostDeviceOptions{.memory = 4_MiB, .latency = std::chrono::microseconds(200)});
}

/// Knows how much of it is held, and whether it was reset all the same.
class CountedDevice final : public Device {
public:
    struct Count {
        std::atomic<int> held{0}, resets{0};
        std::atomic<bool> reset_while_held{false};
    };
    const std::shared_ptr<Count> count = std::make_shared<Count>();

    [[nodiscard]] std::string name() const override { return inner_.name(); }
    [[nodiscard]] std::size_t free_memory() const override { return inner_.free_memory(); }
    [[nodiscard]] std::unique_ptr<Staging> make_staging(std::size_t bytes) override {
        return std::make_unique<Held>(inner_.make_staging(bytes), count);
    }
    [[nodiscard]] std::unique_ptr<Stream> make_stream() override { return inner_.make_stream(); }
    void reset() override {
        if (count->held != 0) count->reset_while_held = true;
        ++count->resets;
        std::this_thread::yield();
        if (count->held != 0) count->reset_while_held = true;
    }

private:
    class Held final : public Staging {
    public:
        Held(std::unique_ptr<Staging> inner, std::shared_ptr<Count> count)
            : Staging(inner->host(), inner->device()), inner_(std::move(inner)), count_(std::move(count)) {
            ++count_->held;
        }
        ~Held() override { --count_->held; }

    private:
        std::unique_ptr<Staging> inner_;
        std::shared_ptr<Count> count_;
    };

    HostDevice inner_{HostDeviceOptions{.memory = 4_MiB}};
};

} // namespace

TEST_CASE(
    "three feeders of one device give what one gives, each of them has had batches, and the report has one device") {
    const auto forms = GENERATE(Forms::exact, Forms::equivalent);
    std::size_t callers = 0;
    std::uint32_t count = 4000;
    for (int run = 0; run < most_runs && callers < feeders; ++run) {
        const Result result = run_with(slow_device(), count, forms);
        REQUIRE(result.scores == expected(count));
        REQUIRE(result.callers <= feeders);
        callers = std::max(callers, result.callers);
        if (forms == Forms::equivalent) {
            CHECK(result.stage.device_cells == count);
        } else {
            REQUIRE(result.stage.routing.devices.size() == 1);
            const DeviceReport& device = result.stage.routing.devices[0];
            CHECK(device.cells == result.stage.device_cells);
            CHECK(device.batches == result.stage.device_batches);
            std::uint64_t samples = 0;
            for (const MeasuredRate& rate : device.rates) samples += rate.samples;
            CHECK(samples == device.batches);
        }
        count = std::min(2 * count, most_pairs);
    }
    CHECK(callers == feeders);
}

TEST_CASE("three feeders lose and double nothing, whichever of the device's calls fail") {
    const auto fault =
        GENERATE(DeviceFault::out_of_memory, DeviceFault::launch_failed, DeviceFault::lost, DeviceFault::no_driver);
    for (const std::uint64_t k : {1U, 2U, 5U, 23U}) {
        CAPTURE(to_string(fault), k);
        const auto device = std::make_shared<FaultyDevice>(slow_device(), FaultyDevice::every(k, fault));
        std::uint32_t count = 2000;
        for (int run = 0; run < most_runs && device->faults() == 0; ++run) {
            REQUIRE(run_with(device, count, Forms::exact).scores == expected(count));
            count = std::min(2 * count, most_pairs);
        }
        CHECK(device->faults() > 0);
    }
}

TEST_CASE("a lost device that two stages share is reset when all their feeders have let go of it, and works again") {
    const auto counted = std::make_shared<CountedDevice>();
    const auto count_of = counted->count;
    const auto device = std::make_shared<FaultyDevice>(counted, FaultyDevice::every(40, DeviceFault::lost));
    std::uint64_t after_reset = 0;
    std::uint32_t count = 4000;
    for (int run = 0; run < most_runs && (count_of->resets < 3 || after_reset == 0); ++run) {
        const bool was_reset = count_of->resets > 0;
        std::atomic<std::uint64_t> first{0}, second{0};
        std::vector<std::uint32_t> scores;
        auto twice = routed(count, first)
                         .route("align again", on_cpu, OnDevice{&second}, {.cells = {}, .full = 64})
                         .in_order("collect", [&](const Pair& pair) { scores.push_back(pair.score); });
        static_cast<void>(twice.run({.threads = 2, .devices = {device}, .feeders = feeders, .router = eager()}));
        REQUIRE(scores == expected(count));
        REQUIRE_FALSE(count_of->reset_while_held);
        REQUIRE(count_of->held == 0);
        if (was_reset) after_reset += first + second;
        count = std::min(2 * count, most_pairs);
    }
    CHECK(count_of->resets >= 3);
    CHECK(after_reset > 0);
}

TEST_CASE("no feeder at all is a usage error") {
    std::atomic<std::uint64_t> done{0};
    auto run = routed(10, done).in_order("ignore", [](const Pair&) {});
    CHECK_THROWS_WITH(run.run({.threads = 1, .devices = {small_device()}, .feeders = 0}), Catch::Contains("feeders"));
}
