// Plans of a FaultyDevice: one in which both the kind of a fault and the call that has it are random, and one that lets
// it begin.
//
//     FaultyDevice device(inner, test::random_faults(seed, 10));     // of ten calls one, on average
//     FaultyDevice device(inner, test::faults_of_batches(2, DeviceFault::lost));     // the first batch comes through
#pragma once

#include "spillway/device.hpp"

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <random>

namespace spillway::test {

/// The same for the same seed and order of calls.
inline FaultyDevice::Plan random_faults(std::uint64_t seed, std::uint64_t one_in) {
    return [=](DeviceCall call, std::uint64_t number) -> std::optional<DeviceFault> {
        std::mt19937_64 random(seed * 1'000'003 + number);
        if (random() % one_in != 0) return std::nullopt;
        using enum DeviceFault;
        const auto one_of = [&](std::initializer_list<DeviceFault> faults) {
            return faults.begin()[random() % faults.size()];
        };
        switch (call) {
        case DeviceCall::make_staging:
            return one_of({no_driver, out_of_memory, lost});
        case DeviceCall::make_stream:
            return one_of({no_driver, lost});
        case DeviceCall::run:
            return one_of({out_of_memory, launch_failed, lost});
        case DeviceCall::synchronise:
            return one_of({launch_failed, lost});
        default:
            return lost;
        }
    };
}

/// `fault` of every k-th batch, where it runs; so not no_driver.
inline FaultyDevice::Plan faults_of_batches(std::uint64_t k, DeviceFault fault) {
    const auto batches = std::make_shared<std::atomic<std::uint64_t>>(0);
    return [=](DeviceCall call, std::uint64_t) -> std::optional<DeviceFault> {
        return call == DeviceCall::run && (batches->fetch_add(1) + 1) % k == 0 ? std::optional(fault) : std::nullopt;
    };
}

} // namespace spillway::test
