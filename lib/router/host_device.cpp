#include "router/task_ring.hpp"
#include "spillway/device.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace spillway {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

/// One that does one thing at a time, at its own speed: the time it is booked until.
class Engine {
public:
    /// Does `work` and returns when it, and the `least` time booked for it, are over. How long it took once begun.
    template <class Work>
    nanoseconds run(nanoseconds least, Work work) {
        const nanoseconds now = Clock::now().time_since_epoch();
        nanoseconds::rep booked = until_.load(std::memory_order_relaxed);
        nanoseconds::rep begin = 0;
        do {
            begin = std::max(booked, now.count());
        } while (!until_.compare_exchange_weak(booked, begin + least.count(), std::memory_order_relaxed));
        work();
        const Clock::time_point end{Clock::duration(begin + least.count())};
        if (least.count() > 0) std::this_thread::sleep_until(end);
        return std::max(least, Clock::now().time_since_epoch() - nanoseconds(begin));
    }

private:
    std::atomic<nanoseconds::rep> until_{0};
};

nanoseconds at_rate(std::size_t amount, double a_second) noexcept {
    if (a_second <= 0) return nanoseconds(0);
    return nanoseconds(static_cast<nanoseconds::rep>(static_cast<double>(amount) / a_second * 1e9));
}

} // namespace

struct HostDevice::Engines {
    explicit Engines(HostDeviceOptions device_options) : options(std::move(device_options)) {}
    const HostDeviceOptions options;
    std::atomic<std::size_t> used{0};
    Engine in, out, compute;
};

namespace {

class HostStaging final : public Staging {
public:
    static constexpr std::size_t alignment = 256;
    static constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max() - alignment;

    HostStaging(std::shared_ptr<HostDevice::Engines> engines, std::size_t bytes)
        : HostStaging(std::move(engines), bytes, Buffer(bytes + alignment), Buffer(bytes + alignment)) {}
    ~HostStaging() override { engines_->used.fetch_sub(size(), std::memory_order_relaxed); }

private:
    using Buffer = std::vector<std::byte>;

    HostStaging(std::shared_ptr<HostDevice::Engines> engines, std::size_t bytes, Buffer host_buffer,
                Buffer device_buffer)
        : Staging({aligned(host_buffer), bytes}, aligned(device_buffer)), engines_(std::move(engines)),
          host_(std::move(host_buffer)), device_(std::move(device_buffer)) {}

    static std::byte* aligned(Buffer& buffer) noexcept {
        void* at = buffer.data();
        std::size_t room = buffer.size();
        return static_cast<std::byte*>(std::align(alignment, room - alignment, at, room));
    }

    std::shared_ptr<HostDevice::Engines> engines_;
    Buffer host_, device_; // moved, so the addresses stay
};

/// Does its work in a thread of its own, where the device is asynchronous.
class HostStream final : public Stream {
public:
    explicit HostStream(std::shared_ptr<HostDevice::Engines> engines) : engines_(std::move(engines)) {
        if (!engines_->options.asynchronous) return;
        try {
            thread_ = std::thread([this] { tasks_.work([this](const Task& task) { execute(task); }); });
        } catch (const std::system_error& error) {
            throw DeviceError(DeviceFault::out_of_memory, engines_->options.name,
                              std::string("no thread for a stream: ") + error.what());
        }
    }

    ~HostStream() override {
        if (!thread_.joinable()) return;
        tasks_.close();
        thread_.join();
    }

    void copy_in(Staging& staging, std::size_t offset, std::size_t bytes) override {
        check(staging, offset, bytes);
        give([this, &staging, offset, bytes] {
            const double rate = engines_->options.bytes_per_second;
            spend(copy_, engines_->in.run(at_rate(bytes, rate), [&] {
                if (bytes > 0) std::memcpy(on_device(staging) + offset, staging.host().data() + offset, bytes);
            }));
        });
    }

    void run(std::size_t cells, Kernel kernel) override {
        give([this, cells, does = std::move(kernel)] {
            const nanoseconds least =
                std::max(engines_->options.latency, at_rate(cells, engines_->options.cells_per_second));
            spend(run_, engines_->compute.run(least, [&] { does(nullptr); }));
        });
    }

    void copy_out(Staging& staging, std::size_t offset, std::size_t bytes) override {
        check(staging, offset, bytes);
        give([this, &staging, offset, bytes] {
            const double rate = engines_->options.bytes_per_second;
            spend(copy_, engines_->out.run(at_rate(bytes, rate), [&] {
                if (bytes > 0) std::memcpy(staging.host().data() + offset, on_device(staging) + offset, bytes);
            }));
        });
    }

    void synchronise() override {
        tasks_.wait();
        if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    }

    [[nodiscard]] bool done() override { return tasks_.done(); }

    [[nodiscard]] DeviceTimes take_times() override {
        return {nanoseconds(copy_.exchange(0, std::memory_order_relaxed)),
                nanoseconds(run_.exchange(0, std::memory_order_relaxed))};
    }

private:
    using Task = std::function<void()>;
    static constexpr std::size_t most_tasks = 64; // a batch gives three or so

    static std::byte* on_device(const Staging& staging) noexcept { return static_cast<std::byte*>(staging.device()); }

    void check(const Staging& staging, std::size_t offset, std::size_t bytes) const {
        if (offset <= staging.size() && bytes <= staging.size() - offset) return;
        throw Error(ErrorCode::runtime, "copying for a device", engines_->options.name,
                    std::to_string(bytes) + " bytes at " + std::to_string(offset) + " of staging of " +
                        std::to_string(staging.size()));
    }

    static void spend(std::atomic<nanoseconds::rep>& total, nanoseconds spent) noexcept {
        total.fetch_add(spent.count(), std::memory_order_relaxed);
    }

    void give(Task task) {
        if (thread_.joinable()) {
            tasks_.give(std::move(task));
        } else {
            execute(task);
        }
    }

    void execute(const Task& task) noexcept {
        if (error_) return; // what follows a failure in a stream is not done
        try {
            task();
        } catch (...) {
            error_ = std::current_exception();
        }
    }

    std::shared_ptr<HostDevice::Engines> engines_;
    TaskRing<Task, most_tasks> tasks_;
    std::exception_ptr error_; // the worker's while work is pending, else the giver's
    std::atomic<nanoseconds::rep> copy_{0}, run_{0};
    std::thread thread_; // last: it uses all of the above
};

} // namespace

HostDevice::HostDevice(HostDeviceOptions options) : engines_(std::make_shared<Engines>(std::move(options))) {}

HostDevice::~HostDevice() = default;

std::string HostDevice::name() const {
    return engines_->options.name;
}

std::size_t HostDevice::free_memory() const {
    return engines_->options.memory - engines_->used.load(std::memory_order_relaxed);
}

std::unique_ptr<Staging> HostDevice::make_staging(std::size_t bytes) {
    std::size_t used = engines_->used.load(std::memory_order_relaxed);
    do {
        if (bytes > engines_->options.memory - used || bytes > HostStaging::most)
            throw DeviceError(DeviceFault::out_of_memory, engines_->options.name,
                              std::to_string(bytes) + " bytes of staging, " +
                                  std::to_string(engines_->options.memory - used) + " are free");
    } while (!engines_->used.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    try {
        return std::make_unique<HostStaging>(engines_, bytes);
    } catch (const std::bad_alloc&) {
        engines_->used.fetch_sub(bytes, std::memory_order_relaxed);
        throw DeviceError(DeviceFault::out_of_memory, engines_->options.name,
                          std::to_string(bytes) + " bytes of staging: the host has no more");
    }
}

std::unique_ptr<Stream> HostDevice::make_stream() {
    return std::make_unique<HostStream>(engines_);
}

} // namespace spillway
