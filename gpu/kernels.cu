// The kernels compiled for CUDA, and their launch.
#include "gpu/cuda_lanes.cuh"
#include "gpu/kernels.hpp"
#include "gpu/sweep.hpp"
#include "gpu/walk.hpp"

#include <cuda_runtime.h>

namespace spillway::gpu {

[[noreturn]] void throw_cuda_error(int error); // cuda_device.cpp

namespace {

constexpr unsigned block_threads = 128;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1000
constexpr bool hopper = true; // its 20 columns fit in fewer registers than those of its neighbours
#else
constexpr bool hopper = false;
#endif

/// So many blocks on a multiprocessor that its 65,536 registers hold the columns of all, three registers each.
constexpr int blocks_at_once(std::uint32_t columns) {
    return columns > 20 ? 3 : columns > 10 ? (hopper ? 5 : 4) : 6;
}

template <std::uint32_t columns, bool packed, bool local>
__global__ void __launch_bounds__(block_threads, blocks_at_once(columns)) sweep_tiles(const Work work) {
    __shared__ uint2 table[8];
    if (threadIdx.x < 8) table[threadIdx.x] = make_uint2(work.rows[threadIdx.x][0], work.rows[threadIdx.x][1]);
    __syncthreads();
    const std::uint32_t number = blockIdx.x * (block_threads / warp_size) + threadIdx.x / warp_size;
    if (number >= work.count) return;
    const Tile tile = work.tiles[number];
    constexpr PackForm form = has_dpx ? PackForm::together : PackForm::one_by_one;
    sweep_tile<CudaLanes, form, columns, packed, local>(work, tile, table);
}

template <bool local>
__global__ void __launch_bounds__(block_threads) walk_pairs(const Work work) {
    walk<CudaLanes, local>(work, blockIdx.x * block_threads + threadIdx.x / warp_size * warp_size);
}

void check() {
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) throw_cuda_error(error);
}

} // namespace

void launch_on_cuda(const Launch& launch, void* stream) {
    const auto on = static_cast<cudaStream_t>(stream);
    for (std::uint32_t shape = 0; shape < shape_count; ++shape) {
        if (launch.tiles[shape] == 0) continue;
        Work work = launch.work;
        work.tiles += launch.first_tile[shape];
        work.count = launch.tiles[shape];
        const unsigned warps = block_threads / warp_size;
        with_kernel(shape, launch.local, [&](auto kernel) {
            using K = decltype(kernel);
            work.rank_scale = 1U << column_bits<K::columns>;
            sweep_tiles<K::columns, K::packed, K::local>
                <<<(work.count + warps - 1) / warps, block_threads, 0, on>>>(work);
        });
        check();
    }
    if (launch.pairs == 0) return;
    Work work = launch.work;
    work.count = launch.pairs;
    const unsigned blocks = (work.count + block_threads - 1) / block_threads;
    if (launch.local) {
        walk_pairs<true><<<blocks, block_threads, 0, on>>>(work);
    } else {
        walk_pairs<false><<<blocks, block_threads, 0, on>>>(work);
    }
    check();
}

} // namespace spillway::gpu
