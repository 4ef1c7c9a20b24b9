// The device form of alignment in a pipeline: on the lockstep device, and on one that fails.
#include "gpu/tasks.hpp"
#include "router/eager.hpp"
#include "router/random_faults.hpp"
#include "spillway/gpu.hpp"
#include "spillway/pipeline.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <ranges>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace spillway {
namespace {

constexpr Scores scores{};
constexpr Span span = Span::query;

struct Window {
    std::string haplotype;
    std::vector<std::string> reads;
    std::vector<Alignment> found;
};

Window window_of(std::uint32_t number) {
    Pairs random(number);
    Window window;
    window.haplotype = random.bases(60 + random.under(100), "ACGT");
    for (std::size_t count = random.under(7); count > 0; --count) {
        std::string read = window.haplotype.substr(random.under(40), 20 + random.under(40));
        for (std::size_t edits = random.under(3); edits > 0; --edits) random.edit(read);
        window.reads.push_back(std::move(read));
    }
    window.found.resize(window.reads.size());
    return window;
}

const auto tasks_of = [](auto& window, auto&& align_task) { align_task(window.haplotype, window.reads, window.found); };

void on_cpu(batch<Window>& windows) {
    for (Window& window : windows) {
        const std::vector<std::string_view> reads(window.reads.begin(), window.reads.end());
        align(reads, window.haplotype, scores, span, window.found);
    }
}

/// Makes sure that devices get work, which is else up to the load of the machine: from the second batch on the CPU form
/// waits until each device has begun a batch meanwhile, and the source's last window is not drawn before few are left,
/// so that the router sees plenty to come. Not once `enough` says so; nor for ever.
class Turns {
public:
    Turns(std::uint32_t windows, std::size_t devices, std::function<bool()> enough)
        : left_(windows), devices_(devices), enough_(std::move(enough)) {}

    /// In its feeder's thread, and each device has one.
    void on_device(std::size_t windows) {
        const std::lock_guard lock(guard_);
        ++begun_[std::this_thread::get_id()];
        left_ -= static_cast<std::int64_t>(windows);
    }
    void on_cpu(std::size_t windows) {
        std::unique_lock lock(guard_);
        left_ -= static_cast<std::int64_t>(windows);
        if (!std::exchange(measured_, true)) return; // without a rate of the CPU's no device is asked
        const auto before = begun_;
        wait(lock, [&] {
            const auto has_begun = [&](const auto& device) {
                const auto was = before.find(device.first);
                return was == before.end() || was->second < device.second;
            };
            return begun_.size() == devices_ && std::all_of(begun_.begin(), begun_.end(), has_begun);
        });
    }
    void at_the_last() {
        std::unique_lock lock(guard_);
        wait(lock, [] { return false; });
    }

private:
    template <class Done>
    void wait(std::unique_lock<std::mutex>& lock, Done done) {
        const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        while (!done() && left_ >= few && !enough_() && std::chrono::steady_clock::now() < patience) {
            lock.unlock();
            std::this_thread::sleep_for(std::chrono::microseconds(200));
            lock.lock();
        }
    }

    /// More than a worker draws of the source at once, and than it takes to the CPU form.
    static constexpr std::int64_t few = 64;

    std::mutex guard_;
    std::int64_t left_; ///< To be begun; less where a device failed at some, and they were begun again.
    std::map<std::thread::id, int> begun_;
    bool measured_ = false;
    const std::size_t devices_;
    const std::function<bool()> enough_;
};

struct Ran {
    std::vector<std::vector<Alignment>> found;
    std::vector<std::uint64_t> cells; ///< By device.
};

Ran run_on(std::vector<std::shared_ptr<Device>> devices, std::uint32_t windows, std::function<bool()> enough) {
    Ran ran;
    Turns turns(windows, devices.size(), std::move(enough));
    const auto drawn = [&](std::uint32_t number) {
        if (number + 1 == windows) turns.at_the_last();
        return true;
    };
    using Form = decltype(AlignOnDevice(scores, span, tasks_of));
    struct Counted : Form {
        Turns* turns;
        void pack(batch<Window>& windows, Staging& staging) {
            turns->on_device(windows.size());
            Form::pack(windows, staging);
        }
    };
    auto run = pipeline<std::uint32_t>("aligning")
                   .source(std::views::iota(std::uint32_t{0}, std::uint32_t{windows}) | std::views::filter(drawn))
                   .map("make", window_of)
                   .route("align",
                          [&](batch<Window>& some) {
                              turns.on_cpu(some.size());
                              on_cpu(some);
                          },
                          Counted{AlignOnDevice(scores, span, tasks_of), &turns}, {.cells = {}, .full = 16})
                   .limit(1) // the other worker goes on making windows
                   .in_order("collect", [&](const Window& window) { ran.found.push_back(window.found); });
    const Report report = run.run({.threads = 2, .devices = std::move(devices), .router = test::eager()});
    for (const DeviceReport& device : report.stages[1].routing.devices) ran.cells.push_back(device.cells);
    return ran;
}

/// With little memory: a device takes, and clears, its staging before its first batch, by its share of what there is.
std::shared_ptr<Device> small_device() {
    return std::make_shared<HostDevice>(HostDeviceOptions{.memory = std::size_t{2} << 20U});
}

/// Until each device has had work, or a fault has come.
constexpr int most_runs = 30;

bool always() {
    return true;
}
bool never() {
    return false;
}

std::vector<std::vector<Alignment>> expected(std::uint32_t windows) {
    std::vector<std::vector<Alignment>> all;
    for (std::uint32_t number = 0; number < windows; ++number) {
        const Window window = window_of(number);
        std::vector<Alignment> found;
        for (const std::string& read : window.reads) {
            found.push_back(align_scalar(read, window.haplotype, scores, span));
        }
        all.push_back(std::move(found));
    }
    return all;
}

TEST_CASE("a pipeline gives the same with no device, on the lockstep device, and on two") {
    const auto wanted = expected(600);
    CHECK(run_on({}, 600, always).found == wanted);
    for (const std::size_t devices : {1U, 2U}) {
        std::vector<std::uint64_t> cells(devices);
        const auto idle = [&] { return std::find(cells.begin(), cells.end(), 0U) != cells.end(); };
        for (int run = 0; run < most_runs && idle(); ++run) {
            std::vector<std::shared_ptr<Device>> list;
            for (std::size_t i = 0; i < devices; ++i) list.push_back(small_device());
            const Ran ran = run_on(list, 600, never);
            REQUIRE(ran.found == wanted);
            for (std::size_t i = 0; i < devices; ++i) cells[i] += ran.cells.at(i);
        }
        CHECK_FALSE(idle());
    }
}

/// Runs until the device has failed and, where it lets some batch through, aligned.
void check_faulty(const FaultyDevice::Plan& plan, bool aligns, const std::vector<std::vector<Alignment>>& wanted) {
    const auto device = std::make_shared<FaultyDevice>(small_device(), plan);
    std::uint64_t cells = 0;
    for (int run = 0; run < most_runs && (device->faults() == 0 || (aligns && cells == 0)); ++run) {
        const std::uint64_t before = device->faults();
        const Ran ran =
            run_on({device}, static_cast<std::uint32_t>(wanted.size()), [&] { return device->faults() > before; });
        REQUIRE(ran.found == wanted);
        cells += ran.cells.at(0);
    }
    CHECK(device->faults() > 0);
    if (aligns) CHECK(cells > 0);
}

TEST_CASE("a pipeline whose device fails at every k-th call gives the same") {
    const auto wanted = expected(300);
    for (const DeviceFault fault :
         {DeviceFault::out_of_memory, DeviceFault::launch_failed, DeviceFault::lost, DeviceFault::no_driver}) {
        for (const std::uint64_t k : {1U, 2U, 3U, 8U}) {
            CAPTURE(to_string(fault), k);
            check_faulty(FaultyDevice::every(k, fault), false, wanted);
        }
    }
}

TEST_CASE("a pipeline whose device fails at every k-th batch gives the same, and others are the device's") {
    const auto wanted = expected(300);
    for (const DeviceFault fault : {DeviceFault::out_of_memory, DeviceFault::launch_failed, DeviceFault::lost}) {
        for (const std::uint64_t k : {2U, 5U}) {
            CAPTURE(to_string(fault), k);
            check_faulty(test::faults_of_batches(k, fault), true, wanted);
        }
    }
}

TEST_CASE("a pipeline whose device fails at random calls in random ways gives the same") {
    const auto wanted = expected(300);
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        CAPTURE(seed);
        const bool seldom = seed % 2 == 1;
        check_faulty(test::random_faults(seed, seldom ? 25 : 4), seldom, wanted);
    }
}

struct Fed {
    std::vector<std::vector<Alignment>> found;
    int on_device = 0, on_cpu = 0;
};

/// As a feeder does it, but always: each batch through the device, and on the CPU where that fails.
Fed feed(Device& device, std::uint32_t windows, std::uint32_t batch_size) {
    const auto form = detail::make_device_form<Window>(AlignOnDevice(scores, span, tasks_of));
    std::vector<detail::Payload> payloads(windows);
    std::vector<detail::Item> items;
    for (std::uint32_t number = 0; number < windows; ++number) {
        payloads[number].emplace<Window>(window_of(number));
        items.push_back({&payloads[number]});
    }
    Fed fed;
    std::unique_ptr<Staging> staging;
    std::unique_ptr<Stream> stream;
    for (std::size_t at = 0; at < items.size(); at += batch_size) {
        const auto some = std::span(items).subspan(at, std::min<std::size_t>(batch_size, items.size() - at));
        std::size_t bytes = form->header_bytes();
        for (const detail::Item& item : some) bytes += form->bytes(*item.payload);
        try {
            if (!staging || staging->size() < bytes) staging = device.make_staging(bytes);
            if (!stream) stream = device.make_stream();
            form->pack(some, *staging);
            form->launch(*staging, *stream);
            stream->synchronise();
            form->unpack(*staging, some);
            ++fed.on_device;
        } catch (const DeviceError& error) {
            stream.reset();
            if (error.fault() == DeviceFault::lost) {
                staging.reset();
                device.reset();
            }
            batch<Window> batch(some);
            on_cpu(batch);
            ++fed.on_cpu;
        }
    }
    for (const detail::Payload& payload : payloads) fed.found.push_back(payload.as<Window>().found);
    return fed;
}

TEST_CASE("batches of the form are the same on a device, whichever of its calls fail") {
    const auto wanted = expected(150);
    HostDevice sound;
    const Fed all = feed(sound, 150, 7);
    CHECK(all.found == wanted);
    CHECK(all.on_cpu == 0);
    for (const DeviceFault fault :
         {DeviceFault::out_of_memory, DeviceFault::launch_failed, DeviceFault::lost, DeviceFault::no_driver}) {
        for (std::uint64_t k = 1; k <= 30; k += FAULT_STEP) {
            CAPTURE(to_string(fault), k);
            FaultyDevice device(std::make_shared<HostDevice>(HostDeviceOptions{.asynchronous = k % 2 == 0}),
                                FaultyDevice::every(k, fault));
            const Fed fed = feed(device, 150, 15);
            CHECK(fed.found == wanted);
            CHECK(fed.on_cpu + fed.on_device == 10);
            if (k == 1) CHECK(fed.on_device == 0);
            if (fault == DeviceFault::launch_failed && k <= 20) CHECK(fed.on_cpu > 0);
        }
    }
}

TEST_CASE("a device with next to no memory gives the same") {
    const auto wanted = expected(400);
    const auto device = std::make_shared<HostDevice>(HostDeviceOptions{.memory = 24000});
    const Ran ran = run_on({device}, 400, never);
    CHECK(ran.found == wanted);
    CHECK(ran.cells.at(0) > 0);
}

TEST_CASE("CUDA devices align as the oracle does in each kernel, or the reason why there is none is told") {
    const CudaDevices found = cuda_devices();
    CHECK(found.devices.empty() != found.reason.empty());
    if (found.devices.empty()) std::cout << "SKIPPED: on a GPU: " << found.reason << '\n';
    struct Kind {
        Scores scores;
        std::size_t longest;
        int tasks;
    };
    Pairs random(9);
    for (const Span each : {Span::local, Span::query}) {
        std::array<std::size_t, gpu::shape_count> by_shape{};
        for (const Kind& kind : {Kind{{}, 300, 2000}, Kind{{}, 1000, 200}, Kind{coarse, 1000, 200}}) {
            Tasks tasks;
            for (int i = 0; i < kind.tasks; ++i) tasks.add_random(random, kind.longest);
            tasks.count(gpu::Fit(kind.scores, each), by_shape);
            for (const std::shared_ptr<Device>& device : found.devices) tasks.check_on(*device, kind.scores, each);
        }
        for (const std::size_t pairs : by_shape) CHECK(pairs >= 50); // each kernel is run
    }
}

} // namespace
} // namespace spillway
