// Which kernels there are, and how a batch's are started, on CUDA or in lockstep.
//
//     Launch launch = ...;                        // as packing.hpp laid it out
//     launch_on_cuda(launch, stream);             // enqueues; kernels.cu
//     run_in_lockstep(launch);                    // does it; lockstep.cpp
#pragma once

#include "gpu/work.hpp"

namespace spillway::gpu {

/// A tile shape: columns of a query that each thread keeps, and the width of scores.
struct Shape {
    std::uint32_t columns;
    bool packed; ///< Two pairs, 16 bits each; else one of 32 bits.
};
/// Few, since each is compiled twice for each kind of device. 20 columns suit reads of 100 and 150 bases (5 and 8
/// threads, none of 32 idle but 2), 32 those of 250; 10 what is shorter than two times 20.
inline constexpr Shape shapes[] = {{10, true}, {20, true}, {32, true}, {32, false}};
inline constexpr std::uint32_t shape_count = sizeof shapes / sizeof shapes[0];

/// Scores of a local alignment are followed by this many bits for the column.
template <std::uint32_t columns>
inline constexpr unsigned column_bits = columns <= 16 ? 4 : 5;

/// Less than any number of a pair that may be packed.
inline constexpr std::int32_t packed_minus_infinity = -30000;

/// A batch. Tiles are sorted by shape.
struct Launch {
    Work work;
    std::uint32_t first_tile[shape_count] = {};
    std::uint32_t tiles[shape_count] = {};
    std::uint32_t pairs = 0;
    bool local = true;
};

/// Calls `f` with shape and span as types: f(Kernel<columns, packed, local>{}).
template <std::uint32_t columns_, bool packed_, bool local_>
struct Kernel {
    static constexpr std::uint32_t columns = columns_;
    static constexpr bool packed = packed_, local = local_;
};
template <class F, std::uint32_t shape = 0>
void with_kernel(std::uint32_t wanted, bool local, F f) {
    if constexpr (shape < shape_count) {
        if (wanted != shape) {
            with_kernel<F, shape + 1>(wanted, local, f);
        } else if (local) {
            f(Kernel<shapes[shape].columns, shapes[shape].packed, true>{});
        } else {
            f(Kernel<shapes[shape].columns, shapes[shape].packed, false>{});
        }
    }
}

/// How the two pairs of a pack are swept in a packed shape.
enum class PackForm : std::uint8_t {
    together,   ///< In the halves of each word: where that is an instruction, from sm_90 on.
    one_by_one, ///< In a word each, one after the other: below sm_90 two halves cost more than twice one word.
};

/// Enqueues on a cudaStream_t. Throws DeviceError(launch_failed); also where this build has no CUDA.
void launch_on_cuda(const Launch& launch, void* stream);
void run_in_lockstep(const Launch& launch, PackForm form = PackForm::together);

} // namespace spillway::gpu
