// Several feeders for one device, and several stages: nothing is lost or doubled, and nobody resets a device that another
// still holds.
#include "routed.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
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

/// Knows how much of it is and was held, and whether it was reset all the same. However much it says to have, its
/// stagings are small.
class CountedDevice final : public Device {
public:
    struct Count {
        std::atomic<int> held{0}, made{0}, resets{0};
        std::atomic<std::size_t> asked{0}, held_bytes{0}; // of all that were made, and of those that are held
        std::atomic<bool> reset_while_held{false};
    };
    const std::shared_ptr<Count> count = std::make_shared<Count>();

    explicit CountedDevice(std::size_t memory = 4_MiB) : memory_(memory) {}

    [[nodiscard]] std::string name() const override { return inner_.name(); }
    [[nodiscard]] std::size_t free_memory() const override { return memory_ - count->held_bytes; }
    [[nodiscard]] std::unique_ptr<Staging> make_staging(std::size_t bytes) override {
        return std::make_unique<Held>(inner_.make_staging(std::min<std::size_t>(bytes, 256_KiB)), bytes, count);
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
        Held(std::unique_ptr<Staging> inner, std::size_t bytes, std::shared_ptr<Count> count)
            : Staging(inner->host(), inner->device()), inner_(std::move(inner)), bytes_(bytes),
              count_(std::move(count)) {
            ++count_->held;
            ++count_->made;
            count_->asked += bytes_;
            count_->held_bytes += bytes_;
        }
        ~Held() override {
            count_->held_bytes -= bytes_;
            --count_->held;
        }

    private:
        std::unique_ptr<Staging> inner_;
        std::size_t bytes_;
        std::shared_ptr<Count> count_;
    };

    const std::size_t memory_;
    HostDevice inner_{HostDeviceOptions{.memory = 16_MiB}};
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

TEST_CASE("a device that one pipeline loses is let go of by another that has nothing to do, and works again") {
    const auto counted = std::make_shared<CountedDevice>();
    const auto count_of = counted->count;
    // Each takes three stagings and three streams; then the other pipeline's work begins.
    const auto device = std::make_shared<FaultyDevice>(counted, FaultyDevice::once(16, DeviceFault::lost));
    const Options options{.threads = 1, .devices = {device}, .router = eager()};
    std::atomic<std::uint64_t> never{0}, done{0};
    auto idle = pipeline<std::uint32_t>("idle")
                    .map("make",
                         [](std::uint32_t x) {
                             return Pair{x, 0, {}};
                         })
                    .route("align", on_cpu, OnDevice{&never}, {.cells = {}, .full = 64})
                    .in_order("ignore", [](const Pair&) {});
    Pool pool({.max_threads = 1});
    auto handle = idle.start(pool, options);
    while (count_of->made < 3) std::this_thread::yield();
    std::vector<std::uint32_t> scores;
    auto other = pipeline<std::uint32_t>("other")
                     .source(std::views::iota(std::uint32_t{0}, std::uint32_t{1000}))
                     .map("make",
                          [](std::uint32_t x) {
                              return Pair{x, 0, {}};
                          })
                     .route("align", on_cpu, OnDevice{&done}, {.cells = {}, .full = 64, .forms = Forms::equivalent})
                     .in_order("collect", [&](const Pair& pair) { scores.push_back(pair.score); });
    static_cast<void>(other.run(options)); // by key: no end without the device
    CHECK(scores == expected(1000));
    CHECK(device->faults() == 1);
    CHECK(count_of->resets == 1);
    CHECK_FALSE(count_of->reset_while_held);
    handle.close();
    static_cast<void>(handle.wait());
    CHECK(count_of->held == 0);
}

TEST_CASE("without a fault each feeder of each stage takes its staging once, for three batches under way") {
    const auto device = std::make_shared<CountedDevice>();
    std::atomic<std::uint64_t> first{0}, second{0};
    std::vector<std::uint32_t> scores;
    auto twice = routed(4000, first)
                     .route("align again", on_cpu, OnDevice{&second}, {.cells = {}, .full = 64})
                     .in_order("collect", [&](const Pair& pair) { scores.push_back(pair.score); });
    static_cast<void>(twice.run({.threads = 2, .devices = {device}, .feeders = feeders, .router = eager()}));
    REQUIRE(scores == expected(4000));
    CHECK(device->count->made == static_cast<int>(3 * feeders * 2));
    CHECK(device->count->held == 0);
}

TEST_CASE("the feeders of a stage take half of what a device has free, 256 MiB at most, however many they are") {
    for (const std::size_t memory : {std::size_t{4_MiB}, std::size_t{1_GiB}}) {
        for (const std::size_t each : {1U, 3U, 16U}) {
            CAPTURE(memory, each);
            const auto device = std::make_shared<CountedDevice>(memory);
            std::atomic<std::uint64_t> done{0};
            std::vector<std::uint32_t> scores;
            auto run = routed(200, done).in_order("collect", [&](const Pair& pair) { scores.push_back(pair.score); });
            static_cast<void>(run.run({.threads = 1, .devices = {device}, .feeders = each, .router = eager()}));
            REQUIRE(scores == expected(200));
            const std::size_t most = std::min<std::size_t>(memory / 2, 256_MiB);
            CHECK(device->count->asked <= most);
            // Each asks what is free, when some others have taken theirs, and takes its share of that.
            CHECK(device->count->asked > most / 2);
        }
    }
}

TEST_CASE("no feeder at all is a usage error") {
    std::atomic<std::uint64_t> done{0};
    auto run = routed(10, done).in_order("ignore", [](const Pair&) {});
    CHECK_THROWS_WITH(run.run({.threads = 1, .devices = {small_device()}, .feeders = 0}), Catch::Contains("feeders"));
}

TEST_CASE("64 feeders of all devices are the most there may be: one more is a usage error") {
    const std::vector<std::shared_ptr<Device>> devices(8, small_device());
    std::atomic<std::uint64_t> done{0};
    std::vector<std::uint32_t> scores;
    auto most = routed(500, done).in_order("collect", [&](const Pair& pair) { scores.push_back(pair.score); });
    static_cast<void>(most.run({.threads = 1, .devices = devices, .feeders = 8, .router = eager()}));
    CHECK(scores == expected(500));
    auto more = routed(10, done).in_order("ignore", [](const Pair&) {});
    CHECK_THROWS_WITH(more.run({.threads = 1, .devices = devices, .feeders = 9}), Catch::Contains("64 feeders"));
}
