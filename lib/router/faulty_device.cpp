#include "spillway/device.hpp"

#include <atomic>
#include <utility>

namespace spillway {

struct FaultyDevice::Script {
    Script(Plan fault_plan, std::string device) : plan(std::move(fault_plan)), name(std::move(device)) {}

    /// Throws where the plan has a fault for this call, after `settle()`.
    template <class Settle>
    void step(DeviceCall call, Settle settle) {
        if (!is_lost.load(std::memory_order_relaxed)) {
            const std::optional<DeviceFault> fault = plan(call, calls.fetch_add(1, std::memory_order_relaxed) + 1);
            if (!fault) return;
            faults.fetch_add(1, std::memory_order_relaxed);
            if (*fault == DeviceFault::lost) is_lost.store(true, std::memory_order_relaxed);
            settle();
            throw DeviceError(*fault, name, "put in by a test");
        }
        settle();
        refuse_if_lost();
    }

    void refuse_if_lost() const {
        if (is_lost.load(std::memory_order_relaxed)) throw DeviceError(DeviceFault::lost, name, "put in by a test");
    }

    Plan plan;
    std::string name;
    std::atomic<std::uint64_t> calls{0};
    std::atomic<std::uint64_t> faults{0};
    std::atomic<bool> is_lost{false};
};

namespace {

class FaultyStream final : public Stream {
public:
    FaultyStream(std::unique_ptr<Stream> inner, std::shared_ptr<FaultyDevice::Script> script)
        : inner_(std::move(inner)), script_(std::move(script)) {}

    void copy_in(Staging& staging, std::size_t offset, std::size_t bytes) override {
        step(DeviceCall::copy_in);
        inner_->copy_in(staging, offset, bytes);
    }
    void run(std::size_t cells, Kernel kernel) override {
        step(DeviceCall::run);
        inner_->run(cells, std::move(kernel));
    }
    void copy_out(Staging& staging, std::size_t offset, std::size_t bytes) override {
        step(DeviceCall::copy_out);
        inner_->copy_out(staging, offset, bytes);
    }
    void synchronise() override {
        inner_->synchronise();
        step(DeviceCall::synchronise);
    }
    [[nodiscard]] bool done() override { return inner_->done(); }
    [[nodiscard]] DeviceTimes take_times() override { return inner_->take_times(); }

private:
    void step(DeviceCall call) {
        script_->step(call, [this] {
            try {
                inner_->synchronise();
            } catch (...) { // The fault put in stands for what the inner device ran into.
            }
        });
    }

    std::unique_ptr<Stream> inner_;
    std::shared_ptr<FaultyDevice::Script> script_;
};

bool can_have(DeviceCall call, DeviceFault fault) noexcept {
    switch (fault) {
    case DeviceFault::no_driver:
        return call == DeviceCall::make_staging || call == DeviceCall::make_stream;
    case DeviceFault::out_of_memory:
        return call == DeviceCall::make_staging || call == DeviceCall::run;
    case DeviceFault::launch_failed:
        return call == DeviceCall::run || call == DeviceCall::synchronise;
    case DeviceFault::lost:
        return true;
    }
    return false;
}

/// `wanted(n)` for the n-th call that can have the fault.
template <class Wanted>
FaultyDevice::Plan plan_of(DeviceFault fault, Wanted wanted) {
    auto matching = std::make_shared<std::atomic<std::uint64_t>>(0);
    return [=](DeviceCall call, std::uint64_t) -> std::optional<DeviceFault> {
        if (!can_have(call, fault)) return std::nullopt;
        if (!wanted(matching->fetch_add(1, std::memory_order_relaxed) + 1)) return std::nullopt;
        return fault;
    };
}

} // namespace

FaultyDevice::FaultyDevice(std::shared_ptr<Device> inner, Plan plan)
    : inner_(std::move(inner)), script_(std::make_shared<Script>(std::move(plan), inner_->name())) {}

FaultyDevice::~FaultyDevice() = default;

FaultyDevice::Plan FaultyDevice::every(std::uint64_t k, DeviceFault fault) {
    if (k == 0) throw Error(ErrorCode::usage, "planning faults", "every", "k must be at least 1");
    return plan_of(fault, [k](std::uint64_t n) { return n % k == 0; });
}

FaultyDevice::Plan FaultyDevice::once(std::uint64_t k, DeviceFault fault) {
    if (k == 0) throw Error(ErrorCode::usage, "planning faults", "once", "k must be at least 1");
    return plan_of(fault, [k](std::uint64_t n) { return n == k; });
}

std::string FaultyDevice::name() const {
    return script_->name;
}

std::size_t FaultyDevice::free_memory() const {
    script_->refuse_if_lost();
    return inner_->free_memory();
}

std::unique_ptr<Staging> FaultyDevice::make_staging(std::size_t bytes) {
    script_->step(DeviceCall::make_staging, [] {});
    return inner_->make_staging(bytes);
}

std::unique_ptr<Stream> FaultyDevice::make_stream() {
    script_->step(DeviceCall::make_stream, [] {});
    return std::make_unique<FaultyStream>(inner_->make_stream(), script_);
}

void FaultyDevice::reset() {
    inner_->reset();
    script_->is_lost.store(false, std::memory_order_relaxed);
}

std::uint64_t FaultyDevice::faults() const noexcept {
    return script_->faults.load(std::memory_order_relaxed);
}

} // namespace spillway
