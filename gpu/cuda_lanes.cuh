// The warp interface in CUDA's registers: what each function does stands in lockstep_lanes.hpp.
#pragma once

#include "gpu/lanes.hpp"
#include "gpu/work.hpp"

#include <cuda_runtime.h>

#include <cstdint>

namespace spillway::gpu {

/// Whether the functions with the suffix 16 are an instruction each: Hopper and later, as nvcc 12 and later compiles.
#if CUDART_VERSION >= 12000 && (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900)
inline constexpr bool has_dpx = true;
#else
inline constexpr bool has_dpx = false;
#endif

struct CudaLanes {
    using Word = std::uint32_t;
    using Mask = bool;
    using Table = const uint2*; // in shared memory: eight rows of eight bytes lie in banks of their own

    static constexpr unsigned whole_warp = 0xFFFFFFFFU;

    static __device__ __forceinline__ Word all(std::uint32_t value) { return value; }
    static __device__ __forceinline__ Word lane() { return threadIdx.x % warp_size; }

    static __device__ __forceinline__ Mask equal(Word a, Word b) { return a == b; }
    static __device__ __forceinline__ Mask less(Word a, Word b) {
        return static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b);
    }
    static __device__ __forceinline__ Mask both(Mask a, Mask b) { return a && b; }
    static __device__ __forceinline__ Mask either(Mask a, Mask b) { return a || b; }
    static __device__ __forceinline__ Mask none_of(Mask a) { return !a; }
    static __device__ __forceinline__ Word select(Mask mask, Word yes, Word no) { return mask ? yes : no; }
    static __device__ __forceinline__ bool any(Mask mask) { return __any_sync(whole_warp, mask); }

    static __device__ __forceinline__ Word shift_right_signed(Word a, unsigned by) {
        return static_cast<Word>(static_cast<std::int32_t>(a) >> by);
    }
    static __device__ __forceinline__ Word multiply_add(Word a, Word b, Word c) { return a * b + c; }

    static __device__ __forceinline__ Word max(Word a, Word b) { return less(a, b) ? b : a; }
    static __device__ __forceinline__ Word max(Word a, Word b, Word c) { return max(max(a, b), c); }
    static __device__ __forceinline__ Word add_max(Word a, Word b, Word c) { return max(a + b, c); }
    static __device__ __forceinline__ Word add_max_0(Word a, Word b, Word c) { return max(max(a + b, c), 0); }

#if CUDART_VERSION >= 12000
    static __device__ __forceinline__ Word add16(Word a, Word b) {
        return __vadd2(a, b);
    }
    static __device__ __forceinline__ Word max16(Word a, Word b) {
        return __vmaxs2(a, b);
    }
    static __device__ __forceinline__ Word max16(Word a, Word b, Word c) {
        return __vimax3_s16x2(a, b, c);
    }
    static __device__ __forceinline__ Word add_max16(Word a, Word b, Word c) {
        return __viaddmax_s16x2(a, b, c);
    }
    static __device__ __forceinline__ Word add_max_0_16(Word a, Word b, Word c) {
        return __viaddmax_s16x2_relu(a, b, c);
    }
    static __device__ __forceinline__ Word max16_greater(Word a, Word b, Mask& low, Mask& high) {
        bool high_not = false, low_not = false; // whether b's half is at least a's
        const Word most = __vibmax_s16x2(b, a, &high_not, &low_not);
        low = !low_not;
        high = !high_not;
        return most;
    }
#endif

    /// PTX's own, since __byte_perm leaves out the mode that repeats a sign.
    static __device__ __forceinline__ Word permute(Word a, Word b, Word selector) {
        Word result;
        asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(selector));
        return result;
    }
    static __device__ __forceinline__ void row_of(Table table, Word base, Word& a, Word& b) {
        const uint2 row = table[base];
        a = row.x;
        b = row.y;
    }

    static __device__ __forceinline__ Word shift_up(Word a) {
        return __shfl_up_sync(whole_warp, a, 1);
    }
    static __device__ __forceinline__ Word from(Word a, Word lane) {
        return __shfl_sync(whole_warp, a, lane);
    }

    static __device__ __forceinline__ Word load8(const std::uint8_t* base, Word index) {
        return base[index];
    }
    template <class T>
    static __device__ __forceinline__ Word load(const T* base, Word index, unsigned member) {
        return reinterpret_cast<const Word*>(base + index)[member];
    }
    template <class T>
    static __device__ __forceinline__ void store(T* base, Word index, unsigned member, Word value, Mask mask) {
        if (mask) reinterpret_cast<Word*>(base + index)[member] = value;
    }
};

} // namespace spillway::gpu
