#include "spillway/device.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace spillway;
using namespace std::chrono_literals;

namespace {

HostDevice device_of(bool asynchronous, std::size_t memory = 1 << 20) {
    HostDeviceOptions options;
    options.name = "stand-in";
    options.memory = memory;
    options.asynchronous = asynchronous;
    return HostDevice(std::move(options));
}

template <class F>
std::optional<DeviceFault> fault_of(F f) {
    try {
        f();
    } catch (const DeviceError& error) {
        return error.fault();
    }
    return std::nullopt;
}

// Adds one to each byte, on the device.
void add_one(Staging& staging, Stream& stream) {
    stream.copy_in(staging, 0, staging.size());
    stream.run(staging.size(), [&staging](void* native) {
        if (native != nullptr) throw std::logic_error("a host device has no native stream");
        auto* bytes = static_cast<unsigned char*>(staging.device());
        for (std::size_t i = 0; i < staging.size(); ++i) ++bytes[i];
    });
    stream.copy_out(staging, 0, staging.size());
}

} // namespace

TEST_CASE("work given to a stream is done in order, on the device's own memory") {
    for (const bool asynchronous : {false, true}) {
        CAPTURE(asynchronous);
        HostDevice device = device_of(asynchronous);
        const auto staging = device.make_staging(1000);
        const auto stream = device.make_stream();
        REQUIRE(staging->size() == 1000);
        CHECK(reinterpret_cast<std::uintptr_t>(staging->device()) % 256 == 0);
        CHECK(reinterpret_cast<std::uintptr_t>(staging->host().data()) % 256 == 0);
        std::ranges::fill(staging->host(), std::byte{1});
        for (int i = 0; i < 100; ++i) add_one(*staging, *stream); // more than the stream's ring holds
        stream->synchronise();
        CHECK(std::ranges::all_of(staging->host(), [](std::byte b) { return b == std::byte{101}; }));
        std::ranges::fill(staging->host(), std::byte{7});
        stream->copy_out(*staging, 10, 20); // the device still has what it had
        stream->synchronise();
        CHECK(staging->host()[9] == std::byte{7});
        CHECK(staging->host()[10] == std::byte{101});
        CHECK(staging->host()[29] == std::byte{101});
        CHECK(staging->host()[30] == std::byte{7});
        CHECK(stream->done());
    }
}

TEST_CASE("the next batch can be packed while the device runs one, and another stream copies") {
    HostDevice device = device_of(true);
    const auto first = device.make_staging(100), second = device.make_staging(100);
    const auto running = device.make_stream(), copying = device.make_stream();
    std::atomic<bool> go{false};
    running->run(1, [&go](void*) {
        while (!go.load()) std::this_thread::yield();
    });
    CHECK_FALSE(running->done());
    std::ranges::fill(second->host(), std::byte{3});
    add_one(*second, *copying);
    copying->synchronise();
    CHECK(second->host()[99] == std::byte{4});
    CHECK_FALSE(running->done());
    go.store(true);
    running->synchronise();
    CHECK(running->done());
}

TEST_CASE("a stream that is destroyed waits for its work") {
    HostDevice device = device_of(true);
    const auto staging = device.make_staging(100);
    {
        const auto stream = device.make_stream();
        for (int i = 0; i < 20; ++i) add_one(*staging, *stream);
    }
    CHECK(staging->host()[0] == std::byte{20});
}

TEST_CASE("a kernel's exception comes out of synchronise, once, and what followed it is not done") {
    for (const bool asynchronous : {false, true}) {
        CAPTURE(asynchronous);
        HostDevice device = device_of(asynchronous);
        const auto staging = device.make_staging(10);
        const auto stream = device.make_stream();
        stream->run(1, [](void*) { throw std::runtime_error("a kernel broke"); });
        add_one(*staging, *stream);
        CHECK_THROWS_WITH(stream->synchronise(), "a kernel broke");
        CHECK_NOTHROW(stream->synchronise());
        CHECK(staging->host()[0] == std::byte{0});
        add_one(*staging, *stream);
        stream->synchronise();
        CHECK(staging->host()[0] == std::byte{1});
    }
}

TEST_CASE("staging comes from the device's memory, and goes back") {
    HostDevice device = device_of(false, 1000);
    CHECK(device.name() == "stand-in");
    CHECK(device.free_memory() == 1000);
    {
        const auto staging = device.make_staging(600);
        CHECK(device.free_memory() == 400);
        CHECK(fault_of([&] { (void)device.make_staging(401); }) == DeviceFault::out_of_memory);
        CHECK(fault_of([&] { (void)device.make_staging(SIZE_MAX); }) == DeviceFault::out_of_memory);
        CHECK(device.make_staging(0)->size() == 0);
    }
    CHECK(device.free_memory() == 1000);
    HostDevice vast = device_of(false, SIZE_MAX);
    CHECK(fault_of([&] { (void)vast.make_staging(SIZE_MAX - 8); }) == DeviceFault::out_of_memory);
}

TEST_CASE("a copy beyond the staging is an error that names both") {
    HostDevice device = device_of(true);
    const auto staging = device.make_staging(100);
    const auto stream = device.make_stream();
    CHECK_THROWS_WITH(stream->copy_in(*staging, 90, 11), Catch::Contains("11 bytes at 90 of staging of 100"));
    CHECK_THROWS_AS(stream->copy_out(*staging, SIZE_MAX, 2), Error);
    CHECK_NOTHROW(stream->copy_in(*staging, 100, 0));
    CHECK_NOTHROW(stream->copy_in(*staging, 90, 10));
}

TEST_CASE("a rate makes runs and copies take the time it says, and times are told once") {
    HostDeviceOptions options;
    options.cells_per_second = 1e6;
    options.bytes_per_second = 1e6;
    options.latency = 1ms;
    HostDevice device(options);
    const auto staging = device.make_staging(4000);
    const auto stream = device.make_stream();
    stream->copy_in(*staging, 0, 4000);
    stream->run(3000, [](void*) {});
    stream->run(1, [](void*) {});
    stream->synchronise();
    const DeviceTimes times = stream->take_times();
    CHECK(times.copy >= 4ms);
    CHECK(times.run >= 4ms); // 3 and the least
    const DeviceTimes again = stream->take_times();
    CHECK(again.copy == 0ns);
    CHECK(again.run == 0ns);
}

TEST_CASE("device errors name the device, the fault and what the driver said") {
    const DeviceError memory(DeviceFault::out_of_memory, "NVIDIA H200 (0)", "2 GiB of staging");
    CHECK(std::string(memory.what()) == "using a device: NVIDIA H200 (0): out of memory: 2 GiB of staging");
    CHECK(memory.code() == ErrorCode::memory);
    const DeviceError lost(DeviceFault::lost, "host", "");
    CHECK(std::string(lost.what()) == "using a device: host: lost");
    CHECK(lost.code() == ErrorCode::runtime);
}

TEST_CASE("a faulty device fails at the planned calls only, and its staging can be used at once") {
    const auto inner = std::make_shared<HostDevice>();
    FaultyDevice device(inner, FaultyDevice::every(3, DeviceFault::launch_failed)); // runs and synchronises
    const auto staging = device.make_staging(10);
    const auto stream = device.make_stream();
    const auto one = [&] {
        add_one(*staging, *stream);
        stream->synchronise();
    };
    CHECK_FALSE(fault_of(one));
    CHECK(fault_of(one) == DeviceFault::launch_failed); // its run is the third call
    std::ranges::fill(staging->host(), std::byte{5});
    CHECK(staging->host()[0] == std::byte{5});
    CHECK_FALSE(fault_of(one));
    CHECK(fault_of(one) == DeviceFault::launch_failed);
    CHECK(device.faults() == 2);
}

TEST_CASE("each fault comes at calls that can have it") {
    const auto first_fault_at = [](DeviceFault fault) {
        FaultyDevice device(std::make_shared<HostDevice>(), FaultyDevice::once(1, fault));
        if (fault_of([&] { (void)device.make_stream(); })) return "make_stream";
        const auto stream = device.make_stream();
        if (fault_of([&] { (void)device.make_staging(10); })) return "make_staging";
        const auto staging = device.make_staging(10);
        if (fault_of([&] { stream->copy_in(*staging, 0, 10); })) return "copy_in";
        if (fault_of([&] { stream->run(1, [](void*) {}); })) return "run";
        return "later";
    };
    CHECK(first_fault_at(DeviceFault::no_driver) == std::string("make_stream"));
    CHECK(first_fault_at(DeviceFault::out_of_memory) == std::string("make_staging"));
    CHECK(first_fault_at(DeviceFault::launch_failed) == std::string("run"));
    CHECK(first_fault_at(DeviceFault::lost) == std::string("make_stream"));
    CHECK_THROWS_AS(FaultyDevice::every(0, DeviceFault::lost), Error);
    CHECK_THROWS_AS(FaultyDevice::once(0, DeviceFault::lost), Error);
}

TEST_CASE("a lost device stays lost until it is reset") {
    FaultyDevice device(std::make_shared<HostDevice>(), FaultyDevice::once(3, DeviceFault::lost));
    auto staging = device.make_staging(10);
    auto stream = device.make_stream();
    CHECK(fault_of([&] { stream->copy_in(*staging, 0, 10); }) == DeviceFault::lost);
    CHECK(fault_of([&] { stream->synchronise(); }) == DeviceFault::lost);
    CHECK(fault_of([&] { (void)device.make_staging(10); }) == DeviceFault::lost);
    CHECK(fault_of([&] { (void)device.free_memory(); }) == DeviceFault::lost);
    CHECK(device.faults() == 1);
    stream.reset();
    staging.reset();
    device.reset();
    CHECK_FALSE(fault_of([&] { (void)device.make_staging(10); }));
    CHECK_FALSE(fault_of([&] { (void)device.make_stream(); }));
}
