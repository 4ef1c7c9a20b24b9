// The CUDA device: pinned staging, streams that do not wait for each other, and events for what each step took.
#include "gpu/kernels.hpp"
#include "spillway/gpu.hpp"

#include <cuda_runtime_api.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway {
namespace {

DeviceFault fault_of(cudaError_t error) {
    switch (error) {
    case cudaErrorMemoryAllocation:
        return DeviceFault::out_of_memory;
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorStubLibrary:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
        return DeviceFault::no_driver;
    // After these the context is gone: every call of the process fails until the device has been reset.
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorDevicesUnavailable:
    case cudaErrorUnknown:
        return DeviceFault::lost;
    default:
        return DeviceFault::launch_failed;
    }
}

std::string version_text(int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// "driver 12.4, run time 13.0", by which CUDA version each is for.
std::string versions() {
    int driver = 0, runtime = 0;
    static_cast<void>(cudaDriverGetVersion(&driver));
    static_cast<void>(cudaRuntimeGetVersion(&runtime));
    return (driver == 0 ? std::string("no driver") : "driver for CUDA " + version_text(driver)) +
           ", built with CUDA run time " + version_text(runtime);
}

/// Waiting must not burn a core that could align; timing is for the events that measure.
constexpr unsigned to_wait = cudaEventBlockingSync | cudaEventDisableTiming;

struct FreeHost {
    void operator()(void* memory) const noexcept { static_cast<void>(cudaFreeHost(memory)); }
};
struct FreeDevice {
    void operator()(void* memory) const noexcept { static_cast<void>(cudaFree(memory)); }
};
struct DestroyEvent {
    void operator()(cudaEvent_t event) const noexcept { static_cast<void>(cudaEventDestroy(event)); }
};
struct DestroyStream {
    void operator()(cudaStream_t stream) const noexcept {
        static_cast<void>(cudaStreamSynchronize(stream)); // ~Stream waits
        static_cast<void>(cudaStreamDestroy(stream));
    }
};
using HostMemory = std::unique_ptr<void, FreeHost>;
using DeviceMemory = std::unique_ptr<void, FreeDevice>;
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent>;
using StreamHandle = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, DestroyStream>;

/// A device's number and name, and the check of every call to it.
struct Which {
    int number = 0;
    std::string name;

    void check(cudaError_t error) const {
        if (error == cudaSuccess) return;
        static_cast<void>(cudaGetLastError()); // so that the next call is not blamed
        const DeviceFault fault = fault_of(error);
        throw DeviceError(fault, name,
                          std::string(cudaGetErrorString(error)) +
                              (fault == DeviceFault::no_driver ? " (" + versions() + ")" : ""));
    }
    /// CUDA's present device belongs to the thread, so every call sets it.
    void select() const { check(cudaSetDevice(number)); }

    [[nodiscard]] HostMemory pinned(std::size_t bytes) const {
        select();
        void* memory = nullptr;
        check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable));
        return HostMemory(memory);
    }
    [[nodiscard]] DeviceMemory on_device(std::size_t bytes) const {
        select();
        void* memory = nullptr;
        check(cudaMalloc(&memory, bytes));
        return DeviceMemory(memory);
    }
    [[nodiscard]] Event event(unsigned flags) const {
        cudaEvent_t made = nullptr;
        check(cudaEventCreateWithFlags(&made, flags));
        return Event(made);
    }
};

class CudaStaging final : public Staging {
public:
    CudaStaging(HostMemory host, DeviceMemory device, std::size_t bytes)
        : Staging({static_cast<std::byte*>(host.get()), bytes}, device.get()), host_(std::move(host)),
          device_(std::move(device)) {}

private:
    HostMemory host_;
    DeviceMemory device_;
};

class CudaStream final : public Stream {
public:
    explicit CudaStream(std::shared_ptr<const Which> which) : which_(std::move(which)) {
        which_->select();
        cudaStream_t made = nullptr;
        which_->check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
        stream_.reset(made);
        waited_for_ = which_->event(to_wait);
    }

    void copy_in(Staging& staging, std::size_t offset, std::size_t bytes) override {
        step(false, [&] {
            return cudaMemcpyAsync(static_cast<std::byte*>(staging.device()) + offset, part(staging, offset, bytes),
                                   bytes, cudaMemcpyHostToDevice, stream_.get());
        });
    }
    void run(std::size_t, Kernel kernel) override {
        step(true, [&] {
            kernel(stream_.get());
            return cudaSuccess;
        });
    }
    void copy_out(Staging& staging, std::size_t offset, std::size_t bytes) override {
        step(false, [&] {
            return cudaMemcpyAsync(part(staging, offset, bytes), static_cast<std::byte*>(staging.device()) + offset,
                                   bytes, cudaMemcpyDeviceToHost, stream_.get());
        });
    }

    void synchronise() override {
        which_->select();
        which_->check(cudaEventRecord(waited_for_.get(), stream_.get()));
        which_->check(cudaEventSynchronize(waited_for_.get()));
        // An error of the work before is what the stream itself says.
        which_->check(cudaStreamQuery(stream_.get()));
    }
    [[nodiscard]] bool done() override {
        if (cudaSetDevice(which_->number) != cudaSuccess) return true;
        return cudaStreamQuery(stream_.get()) != cudaErrorNotReady;
    }
    [[nodiscard]] DeviceTimes take_times() override {
        which_->select();
        DeviceTimes times;
        for (std::size_t i = 0; i < used_; ++i) {
            float milliseconds = 0;
            which_->check(cudaEventElapsedTime(&milliseconds, steps_[i].begin.get(), steps_[i].end.get()));
            const std::chrono::nanoseconds took(static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6));
            (steps_[i].runs ? times.run : times.copy) += took;
        }
        used_ = 0;
        return times;
    }

private:
    struct Step {
        Event begin, end;
        bool runs = false;
    };

    [[nodiscard]] std::byte* part(Staging& staging, std::size_t offset, std::size_t bytes) const {
        if (offset > staging.size() || bytes > staging.size() - offset) {
            throw Error(ErrorCode::usage, "copying to or from " + which_->name, "",
                        std::to_string(bytes) + " bytes at " + std::to_string(offset) + " are not in staging of " +
                            std::to_string(staging.size()));
        }
        return staging.host().data() + offset;
    }

    /// Events are made once and used again; a step that nobody has taken the time of keeps its own.
    template <class Do>
    void step(bool runs, Do does) {
        which_->select();
        if (used_ == steps_.size()) {
            Step made{which_->event(cudaEventDefault), which_->event(cudaEventDefault)};
            steps_.push_back(std::move(made));
        }
        Step& step = steps_[used_];
        step.runs = runs;
        which_->check(cudaEventRecord(step.begin.get(), stream_.get()));
        which_->check(does());
        which_->check(cudaEventRecord(step.end.get(), stream_.get()));
        ++used_;
    }

    std::shared_ptr<const Which> which_;
    std::vector<Step> steps_;
    std::size_t used_ = 0;
    Event waited_for_;
    StreamHandle stream_; // destroyed first: waits for all that uses the rest
};

class CudaDevice final : public Device {
public:
    explicit CudaDevice(Which which) : which_(std::make_shared<const Which>(std::move(which))) {}

    [[nodiscard]] std::string name() const override { return which_->name; }
    [[nodiscard]] std::size_t free_memory() const override {
        which_->select();
        std::size_t free = 0, all = 0;
        which_->check(cudaMemGetInfo(&free, &all));
        return free;
    }
    [[nodiscard]] std::unique_ptr<Staging> make_staging(std::size_t bytes) override {
        return std::make_unique<CudaStaging>(which_->pinned(bytes), which_->on_device(bytes), bytes);
    }
    [[nodiscard]] std::unique_ptr<Stream> make_stream() override { return std::make_unique<CudaStream>(which_); }
    void reset() override {
        static_cast<void>(cudaSetDevice(which_->number)); // of a lost device it fails, and does what is needed
        which_->check(cudaDeviceReset());
        static_cast<void>(free_memory()); // makes a context: it works again, or throws
    }

private:
    std::shared_ptr<const Which> which_;
};

/// Ampere: what the oldest kernels are compiled for.
constexpr int oldest_major = 8;

} // namespace

CudaDevices cuda_devices() {
    CudaDevices found;
    int count = 0;
    if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
        static_cast<void>(cudaGetLastError());
        found.reason =
            std::string(error == cudaSuccess ? "no CUDA device" : cudaGetErrorString(error)) + " (" + versions() + ")";
        return found;
    }
    for (int number = 0; number < count; ++number) {
        cudaDeviceProp properties{};
        if (cudaGetDeviceProperties(&properties, number) != cudaSuccess) {
            static_cast<void>(cudaGetLastError());
            continue;
        }
        const std::string name = std::string(properties.name) + " (" + std::to_string(number) + ")";
        if (properties.major < oldest_major) {
            found.reason += (found.reason.empty() ? "" : "; ") + name + " is older than compute capability 8.0";
            continue;
        }
        found.devices.push_back(std::make_shared<CudaDevice>(Which{number, name}));
    }
    if (!found.devices.empty()) {
        found.reason.clear();
    } else if (found.reason.empty()) {
        found.reason = "no CUDA device answers (" + versions() + ")";
    }
    return found;
}

namespace gpu {

// Called from kernels.cu, which is C++17 and so knows no DeviceError.
[[noreturn]] void throw_cuda_error(int error) {
    Which{0, "CUDA"}.check(static_cast<cudaError_t>(error));
    throw DeviceError(DeviceFault::launch_failed, "CUDA", "");
}

} // namespace gpu
} // namespace spillway
