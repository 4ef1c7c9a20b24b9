// From texts one after the other to codes side by side: LaneKernels::pack. Included once for each ISA, by lanes.cpp.
#if defined(SPILLWAY_ALIGN_LANE_PACKING_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef SPILLWAY_ALIGN_LANE_PACKING_HPP
#undef SPILLWAY_ALIGN_LANE_PACKING_HPP
#else
#define SPILLWAY_ALIGN_LANE_PACKING_HPP
#endif

#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

#include "align/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace spillway::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Sixteen bytes of sixteen texts at a time are transposed in four steps; each puts two neighbours side by side.
template <class D8, class V = hn::Vec<D8>>
HWY_INLINE V encoded(D8 d, V text, V unknown) {
    // A, C, G and T differ in their low four bits.
    alignas(16) static constexpr std::uint8_t letter[16] = {0xFF, 'A', 0xFF, 'C', 'T', 0xFF, 0xFF, 'G'};
    alignas(16) static constexpr std::uint8_t code[16] = {0, 0, 0, 1, 3, 0, 0, 2};
    const V low = hn::And(text, hn::Set(d, std::uint8_t{0x0F})), upper = hn::And(text, hn::Set(d, std::uint8_t{0xDF}));
    const auto known = hn::Eq(upper, hn::TableLookupBytes(hn::Load(d, letter), low));
    return hn::IfThenElse(known, hn::TableLookupBytes(hn::Load(d, code), low), unknown);
}

bool pack(const LaneText& texts, std::ptrdiff_t count, std::uint8_t unknown_code, std::uint8_t* codes) {
    const hn::FixedTag<std::uint8_t, 16> d8;
    const hn::Repartition<std::uint16_t, decltype(d8)> d16;
    const hn::Repartition<std::uint32_t, decltype(d8)> d32;
    const hn::Repartition<std::uint64_t, decltype(d8)> d64;
    using V = hn::Vec<decltype(d8)>;
    const V unknown = hn::Set(d8, unknown_code);
    V any = hn::Zero(d8);
    for (std::ptrdiff_t lane = 0; lane < count; lane += 16) {
        for (std::ptrdiff_t at = 0; at < texts.length; at += 16) {
            V a[16], b[16];
#pragma GCC unroll 16
            for (std::ptrdiff_t k = 0; k < 16; ++k) {
                const char* from = texts.text + (lane + k) * texts.stride + at;
                a[k] = encoded(d8, hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(from)), unknown);
                any = hn::Or(any, a[k]);
            }
#pragma GCC unroll 8
            for (std::ptrdiff_t k = 0; k < 8; ++k) {
                b[2 * k] = hn::InterleaveLower(d8, a[2 * k], a[2 * k + 1]);
                b[2 * k + 1] = hn::InterleaveUpper(d8, a[2 * k], a[2 * k + 1]);
            }
#pragma GCC unroll 4
            for (std::ptrdiff_t k = 0; k < 16; k += 4) {
#pragma GCC unroll 2
                for (std::ptrdiff_t h = 0; h < 2; ++h) {
                    const auto low = hn::BitCast(d16, b[k + h]), high = hn::BitCast(d16, b[k + 2 + h]);
                    a[k + 2 * h] = hn::BitCast(d8, hn::InterleaveLower(d16, low, high));
                    a[k + 2 * h + 1] = hn::BitCast(d8, hn::InterleaveUpper(d16, low, high));
                }
            }
#pragma GCC unroll 2
            for (std::ptrdiff_t k = 0; k < 16; k += 8) {
#pragma GCC unroll 4
                for (std::ptrdiff_t h = 0; h < 4; ++h) {
                    const auto low = hn::BitCast(d32, a[k + h]), high = hn::BitCast(d32, a[k + 4 + h]);
                    b[k + 2 * h] = hn::BitCast(d8, hn::InterleaveLower(d32, low, high));
                    b[k + 2 * h + 1] = hn::BitCast(d8, hn::InterleaveUpper(d32, low, high));
                }
            }
#pragma GCC unroll 8
            for (std::ptrdiff_t h = 0; h < 8; ++h) {
                const auto low = hn::BitCast(d64, b[h]), high = hn::BitCast(d64, b[8 + h]);
                std::uint8_t* to = codes + (at + 2 * h) * count + lane;
                hn::StoreU(hn::BitCast(d8, hn::InterleaveLower(d64, low, high)), d8, to);
                hn::StoreU(hn::BitCast(d8, hn::InterleaveUpper(d64, low, high)), d8, to + count);
            }
        }
    }
    return !hn::AllTrue(d8, hn::Lt(any, hn::Set(d8, std::uint8_t{4})));
}

} // namespace
} // namespace spillway::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
