// A device that stages may run on, as the core sees it: staging memory, streams, and errors with a type.
//
//     std::unique_ptr<Staging> staging = device.make_staging(64 << 20);
//     std::unique_ptr<Stream> stream = device.make_stream();
//     ... pack into staging->host() ...
//     stream->copy_in(*staging, 0, packed);
//     stream->run(cells, [&](void* native) { align(staging->device(), native); });
//     stream->copy_out(*staging, results_at, results);
//     stream->synchronise();                                  // results are in staging->host()
//
// Guarantee: work given to one stream is done in order, work of several streams may overlap, and nothing but staging is
// ever written by a device. Order of destruction: streams, then staging, then the device.
#pragma once

#include "spillway/error.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace spillway {

namespace detail {
class Feeder;
}

enum class DeviceFault : std::uint8_t {
    no_driver,     ///< There is no driver, or it is too old: no retry helps.
    out_of_memory, ///< A smaller batch may fit.
    launch_failed, ///< This work failed; the device may do other work.
    lost,          ///< Everything on the device is gone. It may come back after reset().
};
inline constexpr std::size_t device_faults = 4;

/// "out of memory".
[[nodiscard]] std::string_view to_string(DeviceFault fault) noexcept;

/// Thrown by devices, and by device forms for what they run into. Its code() is memory or runtime.
class DeviceError : public Error {
public:
    /// `detail` is what the driver said, versions included where the fault is no_driver.
    DeviceError(DeviceFault fault, std::string device, const std::string& detail);
    [[nodiscard]] DeviceFault fault() const noexcept { return fault_; }

private:
    DeviceFault fault_;
};

/// Pinned host memory and as much memory on the device. Thread safety: none; between a stream's copy and its
/// synchronise() it belongs to the stream.
class Staging {
public:
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;
    virtual ~Staging() = default;

    [[nodiscard]] std::span<std::byte> host() const noexcept { return host_; }
    /// An address on the device, for kernels only. Aligned to 256 bytes or more, as is host().
    [[nodiscard]] void* device() const noexcept { return device_; }
    [[nodiscard]] std::size_t size() const noexcept { return host_.size(); }

protected:
    Staging(std::span<std::byte> host, void* device) noexcept : host_(host), device_(device) {}

private:
    std::span<std::byte> host_;
    void* device_;
};

/// What a stream did, in nanoseconds of the device's own clock.
struct DeviceTimes {
    std::chrono::nanoseconds copy{0}; ///< In and out.
    std::chrono::nanoseconds run{0};
};

/// Work on a device, in order. Used by one thread. Everything but synchronise() returns before the work is done, where
/// the device can. Any call may throw DeviceError, also for work given before it; what was going on is then undefined
/// until synchronise() returns or throws, or the stream is destroyed: staging must not be touched before.
class Stream {
public:
    /// Computes on what is in Staging::device(). `native` is the device's own stream (a cudaStream_t) to enqueue on;
    /// null where the work is to be done in the call itself. Must own what it captures, or keep it alive until the
    /// stream has synchronised.
    using Kernel = std::function<void(void* native)>;

    Stream() = default;
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    /// Waits until nothing of it is running.
    virtual ~Stream() = default;

    /// host() to device(), `bytes` at `offset` of both. Staging of the same device.
    virtual void copy_in(Staging& staging, std::size_t offset, std::size_t bytes) = 0;
    /// `cells` is the work's cost in the stage's units: what a rate-limited device goes by.
    virtual void run(std::size_t cells, Kernel kernel) = 0;
    /// device() to host().
    virtual void copy_out(Staging& staging, std::size_t offset, std::size_t bytes) = 0;

    /// Waits for all work given so far. Throws its error once; the stream is then empty.
    virtual void synchronise() = 0;
    /// Whether synchronise() would return or throw at once. Does not throw what the work ran into.
    [[nodiscard]] virtual bool done() = 0;
    /// Of the work done since the last call. Call after synchronise().
    [[nodiscard]] virtual DeviceTimes take_times() = 0;
};

/// Thread safety: any thread.
class Device {
public:
    Device() = default;
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    virtual ~Device() = default;

    /// For messages and reports: "NVIDIA H200 (0)".
    [[nodiscard]] virtual std::string name() const = 0;
    /// Bytes that may still be had. Throws DeviceError.
    [[nodiscard]] virtual std::size_t free_memory() const = 0;
    /// Slow: taken once and reused. Throws DeviceError.
    [[nodiscard]] virtual std::unique_ptr<Staging> make_staging(std::size_t bytes) = 0;
    [[nodiscard]] virtual std::unique_ptr<Stream> make_stream() = 0;
    /// Tries to bring a lost device back. Called with none of its staging and streams left, whoever shares it. Throws
    /// DeviceError where it is still gone.
    virtual void reset() {}

private:
    friend class detail::Feeder;
    std::atomic<std::uint32_t> use_{0}; // who has staging and streams of it: router/device_use.hpp
};

struct HostDeviceOptions {
    std::string name = "host";
    std::size_t memory = std::size_t{1} << 30; ///< Bytes of staging in all; beyond: out_of_memory.
    bool asynchronous = true;                  ///< A thread for each stream; else calls return when their work is done.
    double cells_per_second = 0;               ///< Of run(), all streams together; 0: as fast as the kernel is.
    double bytes_per_second = 0;               ///< Of copies, each direction on its own; 0: as fast as memory is.
    std::chrono::nanoseconds latency{0};       ///< Least time of each run().
};

/// Runs kernels on the host: a stand-in for tests and benches, as slow or fast as wanted. Its device memory is a second
/// buffer, so that a forgotten copy shows. Where it has a rate, runs of several streams take their turns, as do copies
/// of one direction; runs and copies overlap.
class HostDevice final : public Device {
public:
    explicit HostDevice(HostDeviceOptions options = {});
    ~HostDevice() override;

    [[nodiscard]] std::string name() const override;
    [[nodiscard]] std::size_t free_memory() const override;
    [[nodiscard]] std::unique_ptr<Staging> make_staging(std::size_t bytes) override;
    [[nodiscard]] std::unique_ptr<Stream> make_stream() override;

    struct Engines; // its rates and memory, shared with staging and streams

private:
    std::shared_ptr<Engines> engines_;
};

enum class DeviceCall : std::uint8_t { make_staging, make_stream, copy_in, run, copy_out, synchronise };

/// Another device with faults put in. A lost device stays lost until reset(). What a stream had been given before a
/// fault is waited for, so that staging may be reused at once.
class FaultyDevice final : public Device {
public:
    /// The fault of the `number`-th call (from 1, over all kinds of call), or none. Called from any thread.
    using Plan = std::function<std::optional<DeviceFault>(DeviceCall call, std::uint64_t number)>;

    FaultyDevice(std::shared_ptr<Device> inner, Plan plan);
    ~FaultyDevice() override;

    /// `fault` at every k-th call that can have it, k at least 1: out_of_memory at make_staging and run, launch_failed
    /// at run and synchronise, no_driver at make_staging and make_stream, lost at any.
    [[nodiscard]] static Plan every(std::uint64_t k, DeviceFault fault);
    /// As every(), at the k-th only.
    [[nodiscard]] static Plan once(std::uint64_t k, DeviceFault fault);

    [[nodiscard]] std::string name() const override;
    [[nodiscard]] std::size_t free_memory() const override;
    [[nodiscard]] std::unique_ptr<Staging> make_staging(std::size_t bytes) override;
    [[nodiscard]] std::unique_ptr<Stream> make_stream() override;
    void reset() override;

    /// Faults so far, those of a device that stays lost not counted again.
    [[nodiscard]] std::uint64_t faults() const noexcept;

    struct Script; // the plan and the state of the device, shared with streams

private:
    std::shared_ptr<Device> inner_;
    std::shared_ptr<Script> script_;
};

} // namespace spillway
