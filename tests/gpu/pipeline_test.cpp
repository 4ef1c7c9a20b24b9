// The device form of alignment in a pipeline: on the lockstep device, and on one that fails.
#include "gpu/tasks.hpp"
#include "router/eager.hpp"
#include "spillway/gpu.hpp"
#include "spillway/pipeline.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <thread>
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

/// So slow that a device gets its share however busy the machine is.
void slowly_on_cpu(batch<Window>& windows) {
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
    on_cpu(windows);
}

struct Ran {
    std::vector<std::vector<Alignment>> found;
    std::vector<std::uint64_t> cells; ///< By device.
};

Ran run_on(std::vector<std::shared_ptr<Device>> devices, std::uint32_t windows) {
    Ran ran;
    auto run = pipeline<std::uint32_t>("aligning")
                   .source(std::views::iota(std::uint32_t{0}, std::uint32_t{windows}))
                   .map("make", window_of)
                   .route("align", slowly_on_cpu, AlignOnDevice(scores, span, tasks_of), {.cells = {}, .full = 16})
                   .in_order("collect", [&](const Window& window) { ran.found.push_back(window.found); });
    const Report report = run.run({.threads = 2, .devices = std::move(devices), .router = test::eager()});
    for (const DeviceReport& device : report.stages[1].routing.devices) ran.cells.push_back(device.cells);
    return ran;
}

/// With little memory: a device takes, and clears, its staging before its first batch, by its share of what there is.
std::shared_ptr<Device> small_device() {
    return std::make_shared<HostDevice>(HostDeviceOptions{.memory = std::size_t{2} << 20U});
}

/// Until each device has had work: when it gets some is up to the load of the machine.
constexpr int most_runs = 300;

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
    CHECK(run_on({}, 600).found == wanted);
    for (const std::size_t devices : {1U, 2U}) {
        std::vector<std::uint64_t> cells(devices);
        const auto idle = [&] { return std::find(cells.begin(), cells.end(), 0U) != cells.end(); };
        for (int run = 0; run < most_runs && idle(); ++run) {
            std::vector<std::shared_ptr<Device>> list;
            for (std::size_t i = 0; i < devices; ++i) list.push_back(small_device());
            const Ran ran = run_on(list, 600);
            REQUIRE(ran.found == wanted);
            for (std::size_t i = 0; i < devices; ++i) cells[i] += ran.cells.at(i);
        }
        CHECK_FALSE(idle());
    }
}

TEST_CASE("a pipeline whose device fails at every k-th call gives the same") {
    const auto wanted = expected(300);
    for (const DeviceFault fault :
         {DeviceFault::out_of_memory, DeviceFault::launch_failed, DeviceFault::lost, DeviceFault::no_driver}) {
        for (const std::uint64_t k : {1U, 2U, 3U, 8U, 50U}) {
            CAPTURE(to_string(fault), k);
            const auto device = std::make_shared<FaultyDevice>(small_device(), FaultyDevice::every(k, fault));
            for (int run = 0; run < most_runs && device->faults() == 0; ++run)
                REQUIRE(run_on({device}, 300).found == wanted);
            CHECK(device->faults() > 0);
        }
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
    CHECK(run_on({device}, 400).found == wanted);
}

TEST_CASE("CUDA devices are found, or the reason why there is none is told") {
    const CudaDevices found = cuda_devices();
    CHECK(found.devices.empty() != found.reason.empty());
    for (const std::shared_ptr<Device>& device : found.devices) {
        Pairs random(9);
        for (const Span each : {Span::local, Span::query}) {
            Tasks tasks;
            for (int i = 0; i < 2000; ++i) tasks.add_random(random, 300);
            tasks.align_on(*device, {}, each);
            const auto on_device = tasks.found();
            HostDevice host;
            tasks.align_on(host, {}, each);
            CHECK(on_device == tasks.found());
        }
    }
}

} // namespace
} // namespace spillway
