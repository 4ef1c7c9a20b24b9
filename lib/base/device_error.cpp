#include "spillway/device.hpp"

#include <utility>

namespace spillway {

std::string_view to_string(DeviceFault fault) noexcept {
    switch (fault) {
    case DeviceFault::no_driver:
        return "no driver";
    case DeviceFault::out_of_memory:
        return "out of memory";
    case DeviceFault::launch_failed:
        return "launch failed";
    case DeviceFault::lost:
        return "lost";
    }
    return "unknown";
}

DeviceError::DeviceError(DeviceFault fault, std::string device, const std::string& detail)
    : Error(fault == DeviceFault::out_of_memory ? ErrorCode::memory : ErrorCode::runtime, "using a device",
            std::move(device), std::string(to_string(fault)) + (detail.empty() ? "" : ": ") + detail),
      fault_(fault) {}

} // namespace spillway
