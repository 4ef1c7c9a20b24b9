// The warp interface that kernels are written against, and what both of its forms share.
//
// A form is a type `Lanes` with a Word (32 bits of each of a warp's 32 threads), a Mask (a bool of each) and static
// functions on them: CudaLanes (cuda_lanes.cuh) keeps a thread's own value in a register, LockstepLanes
// (lockstep_lanes.hpp) all 32 in an array, so that the same kernel source runs where there is no GPU.
//
// So a kernel branches only on what is the same for the whole warp; what differs by thread is selected.
#pragma once

#ifdef __CUDACC__
#define SPILLWAY_ON_DEVICE __device__ __forceinline__
#define SPILLWAY_UNROLL _Pragma("unroll")
#define SPILLWAY_NO_UNROLL _Pragma("unroll 1")
#else
#define SPILLWAY_ON_DEVICE inline
#define SPILLWAY_UNROLL
#define SPILLWAY_NO_UNROLL
#endif
