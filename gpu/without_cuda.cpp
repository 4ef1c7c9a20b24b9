// What stands for kernels.cu and cuda_device.cpp in a build without CUDA.
#include "gpu/kernels.hpp"
#include "spillway/gpu.hpp"

namespace spillway {

CudaDevices cuda_devices() {
    return {.devices = {}, .reason = "this build of Spillway has no CUDA (SPILLWAY_CUDA)", .built = false};
}

void gpu::launch_on_cuda(const Launch&, void*) {
    throw DeviceError(DeviceFault::launch_failed, "CUDA", cuda_devices().reason);
}

} // namespace spillway
