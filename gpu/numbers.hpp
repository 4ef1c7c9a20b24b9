// The two widths that scores are computed in, on either form of the lanes.
//
//     using Numbers = Packed<Lanes>;      // two pairs a word, 16 bits each;     Wide<Lanes>: one pair, 32 bits
//
// Which one holds a pair's scores is known before (fit.hpp), so nothing saturates and nothing is done twice.
#pragma once

#include "gpu/kernels.hpp"
#include "gpu/lanes.hpp"

#include <cstdint>

namespace spillway::gpu {

template <class Lanes>
struct Packed {
    using Word = typename Lanes::Word;
    using Mask = typename Lanes::Mask;

    static constexpr unsigned pairs = 2;
    static constexpr std::int32_t minus_infinity = packed_minus_infinity;

    /// A constant, for every pair.
    static SPILLWAY_ON_DEVICE std::uint32_t spread(std::int32_t value) {
        return (static_cast<std::uint32_t>(value) & 0xFFFFU) * 0x10001U;
    }
    /// Each pair's own.
    static SPILLWAY_ON_DEVICE Word join(const Word (&of)[pairs]) { return Lanes::permute(of[0], of[1], 0x5410U); }
    /// For permute: the bytes of two bases, each followed by its sign.
    static SPILLWAY_ON_DEVICE Word selector(const Word (&base)[pairs]) {
        return base[0] * 0x11U + base[1] * 0x1100U + 0x8080U;
    }

    template <class B>
    static SPILLWAY_ON_DEVICE Word add(const Word& a, const B& b) {
        return Lanes::add16(a, b);
    }
    static SPILLWAY_ON_DEVICE Word max(const Word& a, const Word& b) { return Lanes::max16(a, b); }
    static SPILLWAY_ON_DEVICE Word max(const Word& a, const Word& b, const Word& c) { return Lanes::max16(a, b, c); }
    template <class B>
    static SPILLWAY_ON_DEVICE Word add_max(const Word& a, const B& b, const Word& c) {
        return Lanes::add_max16(a, b, c);
    }
    static SPILLWAY_ON_DEVICE Word add_max_0(const Word& a, std::uint32_t b, const Word& c) {
        return Lanes::add_max_0_16(a, b, c);
    }

    /// The first of the greatest values seen, and its row: 16 bits each.
    struct Best {
        Word bound;
        Word record[pairs];

        SPILLWAY_ON_DEVICE Best(std::int32_t value, std::int32_t low_bits) {
            bound = Lanes::all(spread(value | low_bits));
            SPILLWAY_UNROLL
            for (Word& of : record) of = Lanes::all(static_cast<std::uint32_t>(value) & 0xFFFFU);
        }
        /// Bits of `low_bits` do not make a value greater; they are all set in what is least to be beaten.
        SPILLWAY_ON_DEVICE void note(const Word& value, const Word& row, std::int32_t low_bits) {
            Mask low, high;
            bound = Lanes::max16_greater(value, bound, low, high) | spread(low_bits);
            record[0] = Lanes::select(low, Lanes::permute(value, row, 0x5410U), record[0]);
            record[1] = Lanes::select(high, Lanes::permute(value, row, 0x5432U), record[1]);
        }
        SPILLWAY_ON_DEVICE Word value(unsigned pair) const {
            return Lanes::shift_right_signed(record[pair] << 16U, 16);
        }
        SPILLWAY_ON_DEVICE Word row(unsigned pair) const { return record[pair] >> 16U; }
    };
};

template <class Lanes>
struct Wide {
    using Word = typename Lanes::Word;
    using Mask = typename Lanes::Mask;

    static constexpr unsigned pairs = 1;
    static constexpr std::int32_t minus_infinity = -(1 << 28);

    static SPILLWAY_ON_DEVICE std::uint32_t spread(std::int32_t value) { return static_cast<std::uint32_t>(value); }
    static SPILLWAY_ON_DEVICE Word join(const Word (&of)[pairs]) { return of[0]; }
    static SPILLWAY_ON_DEVICE Word selector(const Word (&base)[pairs]) { return base[0] * 0x1111U + 0x8880U; }

    template <class B>
    static SPILLWAY_ON_DEVICE Word add(const Word& a, const B& b) {
        return a + b;
    }
    static SPILLWAY_ON_DEVICE Word max(const Word& a, const Word& b) { return Lanes::max(a, b); }
    static SPILLWAY_ON_DEVICE Word max(const Word& a, const Word& b, const Word& c) { return Lanes::max(a, b, c); }
    template <class B>
    static SPILLWAY_ON_DEVICE Word add_max(const Word& a, const B& b, const Word& c) {
        return Lanes::add_max(a, b, c);
    }
    static SPILLWAY_ON_DEVICE Word add_max_0(const Word& a, std::uint32_t b, const Word& c) {
        return Lanes::add_max_0(a, b, c);
    }

    struct Best {
        Word bound, best, at;

        SPILLWAY_ON_DEVICE Best(std::int32_t value, std::int32_t low_bits) {
            bound = Lanes::all(spread(value | low_bits));
            best = Lanes::all(spread(value));
            at = Lanes::all(0);
        }
        SPILLWAY_ON_DEVICE void note(const Word& value, const Word& row, std::int32_t low_bits) {
            const Mask greater = Lanes::less(bound, value);
            bound = Lanes::max(bound, value) | spread(low_bits);
            best = Lanes::select(greater, value, best);
            at = Lanes::select(greater, row, at);
        }
        SPILLWAY_ON_DEVICE Word value(unsigned) const { return best; }
        SPILLWAY_ON_DEVICE Word row(unsigned) const { return at; }
    };
};

} // namespace spillway::gpu
