// The warp interface in lockstep: all 32 threads of a warp in an array, each function done by all before the next.
//
//     using Lanes = LockstepLanes;
//     Lanes::Word place = Lanes::lane() % 8;
//     Lanes::Word left = Lanes::shift_up(place);       // thread i has what thread i - 1 had
//
// Arithmetic wraps as registers do. The suffix 16 says that a word is two signed numbers of 16 bits.
#pragma once

#include "gpu/lanes.hpp"
#include "gpu/work.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace spillway::gpu {

struct LockstepLanes {
    struct Mask {
        std::array<bool, warp_size> of;
    };

    struct alignas(64) Word {
        std::array<std::uint32_t, warp_size> of;

        template <class F>
        static Word each(const Word& a, const Word& b, F f) {
            Word result;
            for (std::size_t i = 0; i < warp_size; ++i) result.of[i] = f(a.of[i], b.of[i]);
            return result;
        }

        friend Word operator+(const Word& a, const Word& b) {
            return each(a, b, [](auto x, auto y) { return x + y; });
        }
        friend Word operator-(const Word& a, const Word& b) {
            return each(a, b, [](auto x, auto y) { return x - y; });
        }
        friend Word operator|(const Word& a, const Word& b) {
            return each(a, b, [](auto x, auto y) { return x | y; });
        }
        friend Word operator+(const Word& a, std::uint32_t b) { return a + all(b); }
        friend Word operator-(const Word& a, std::uint32_t b) { return a - all(b); }
        friend Word operator-(std::uint32_t a, const Word& b) { return all(a) - b; }
        friend Word operator|(const Word& a, std::uint32_t b) { return a | all(b); }
        friend Word operator&(const Word& a, std::uint32_t b) {
            return each(a, all(b), [](auto x, auto y) { return x & y; });
        }
        friend Word operator*(const Word& a, std::uint32_t b) {
            return each(a, all(b), [](auto x, auto y) { return x * y; });
        }
        friend Word operator/(const Word& a, std::uint32_t b) {
            return each(a, all(b), [](auto x, auto y) { return x / y; });
        }
        friend Word operator%(const Word& a, std::uint32_t b) {
            return each(a, all(b), [](auto x, auto y) { return x % y; });
        }
        friend Word operator<<(const Word& a, std::uint32_t by) {
            return each(a, all(by), [](auto x, auto y) { return x << y; });
        }
        friend Word operator>>(const Word& a, std::uint32_t by) {
            return each(a, all(by), [](auto x, auto y) { return x >> y; });
        }
    };

    using Table = const std::uint32_t (*)[2];

    static Word all(std::uint32_t value) {
        Word result;
        result.of.fill(value);
        return result;
    }
    /// Each thread's number.
    static Word lane() {
        Word result;
        for (std::uint32_t i = 0; i < warp_size; ++i) result.of[i] = i;
        return result;
    }

    static Mask equal(const Word& a, const Word& b) {
        return test(a, b, [](auto x, auto y) { return x == y; });
    }
    static Mask equal(const Word& a, std::uint32_t b) { return equal(a, all(b)); }
    static Mask less(const Word& a, const Word& b) {
        return test(a, b, [](auto x, auto y) { return number(x) < number(y); });
    }
    static Mask less(const Word& a, std::uint32_t b) { return less(a, all(b)); }
    static Mask less(std::uint32_t a, const Word& b) { return less(all(a), b); }
    static Mask both(const Mask& a, const Mask& b) {
        return join(a, b, [](bool x, bool y) { return x && y; });
    }
    static Mask either(const Mask& a, const Mask& b) {
        return join(a, b, [](bool x, bool y) { return x || y; });
    }
    static Mask none_of(const Mask& a) {
        return join(a, a, [](bool x, bool) { return !x; });
    }
    static Word select(const Mask& mask, const Word& yes, const Word& no) {
        Word result;
        for (std::size_t i = 0; i < warp_size; ++i) result.of[i] = mask.of[i] ? yes.of[i] : no.of[i];
        return result;
    }
    static Word select(const Mask& mask, std::uint32_t yes, const Word& no) { return select(mask, all(yes), no); }
    static Word select(const Mask& mask, const Word& yes, std::uint32_t no) { return select(mask, yes, all(no)); }
    static Word select(const Mask& mask, std::uint32_t yes, std::uint32_t no) {
        return select(mask, all(yes), all(no));
    }
    /// Of the whole warp.
    static bool any(const Mask& mask) {
        bool result = false;
        for (const bool of : mask.of) result |= of;
        return result;
    }

    static Word shift_right_signed(const Word& a, unsigned by) {
        return Word::each(a, all(by), [](auto x, auto y) { return static_cast<std::uint32_t>(number(x) >> y); });
    }
    static Word multiply_add(const Word& a, std::uint32_t b, std::uint32_t c) { return a * b + c; }

    static Word max(const Word& a, const Word& b) {
        return Word::each(a, b, [](auto x, auto y) { return number(x) > number(y) ? x : y; });
    }
    static Word max(const Word& a, const Word& b, const Word& c) { return max(max(a, b), c); }
    static Word add_max(const Word& a, const Word& b, const Word& c) { return max(a + b, c); }
    static Word add_max(const Word& a, std::uint32_t b, const Word& c) { return add_max(a, all(b), c); }
    static Word add_max_0(const Word& a, std::uint32_t b, const Word& c) { return max(add_max(a, b, c), all(0)); }

    static Word add16(const Word& a, const Word& b) {
        return halves(a, b, [](std::int16_t x, std::int16_t y) { return static_cast<std::int16_t>(x + y); });
    }
    static Word add16(const Word& a, std::uint32_t b) { return add16(a, all(b)); }
    static Word max16(const Word& a, const Word& b) {
        return halves(a, b, [](std::int16_t x, std::int16_t y) { return x > y ? x : y; });
    }
    static Word max16(const Word& a, const Word& b, const Word& c) { return max16(max16(a, b), c); }
    static Word add_max16(const Word& a, const Word& b, const Word& c) { return max16(add16(a, b), c); }
    static Word add_max16(const Word& a, std::uint32_t b, const Word& c) { return add_max16(a, all(b), c); }
    static Word add_max_0_16(const Word& a, std::uint32_t b, const Word& c) {
        return max16(add_max16(a, b, c), all(0));
    }
    /// The maximum of `a` and `b`, and which halves of `a` are greater than `b`'s.
    static Word max16_greater(const Word& a, const Word& b, Mask& low, Mask& high) {
        for (std::size_t i = 0; i < warp_size; ++i) {
            low.of[i] = static_cast<std::int16_t>(a.of[i]) > static_cast<std::int16_t>(b.of[i]);
            high.of[i] = static_cast<std::int16_t>(a.of[i] >> 16U) > static_cast<std::int16_t>(b.of[i] >> 16U);
        }
        return max16(a, b);
    }

    /// Four bytes chosen out of eight, `a`'s first, by the selector's four low hexadecimal digits: 0 to 7 is a byte, 8
    /// more its sign eight times.
    static Word permute(const Word& a, const Word& b, const Word& selector) {
        Word result;
        for (std::size_t i = 0; i < warp_size; ++i) {
            const std::uint64_t bytes = a.of[i] | std::uint64_t{b.of[i]} << 32U;
            std::uint32_t chosen = 0;
            for (unsigned digit = 0; digit < 4; ++digit) {
                const unsigned which = selector.of[i] >> (4 * digit);
                std::uint32_t byte = static_cast<std::uint32_t>(bytes >> (8 * (which & 7U))) & 0xFFU;
                if ((which & 8U) != 0) byte = byte >= 0x80U ? 0xFFU : 0;
                chosen |= byte << (8 * digit);
            }
            result.of[i] = chosen;
        }
        return result;
    }
    static Word permute(const Word& a, const Word& b, std::uint32_t selector) { return permute(a, b, all(selector)); }
    static void row_of(Table table, const Word& base, Word& a, Word& b) {
        for (std::size_t i = 0; i < warp_size; ++i) {
            a.of[i] = table[base.of[i]][0];
            b.of[i] = table[base.of[i]][1];
        }
    }

    /// Of the thread before; the first keeps its own.
    static Word shift_up(const Word& a) {
        Word result;
        result.of[0] = a.of[0];
        for (std::size_t i = 1; i < warp_size; ++i) result.of[i] = a.of[i - 1];
        return result;
    }
    /// Of thread `lane`, modulo 32.
    static Word from(const Word& a, const Word& lane) {
        Word result;
        for (std::size_t i = 0; i < warp_size; ++i) result.of[i] = a.of[lane.of[i] % warp_size];
        return result;
    }

    static Word load8(const std::uint8_t* base, const Word& index) {
        Word result;
        for (std::size_t i = 0; i < warp_size; ++i) result.of[i] = base[index.of[i]];
        return result;
    }
    /// The `member`-th 32 bits of each thread's struct.
    template <class T>
    static Word load(const T* base, const Word& index, unsigned member) {
        Word result;
        for (std::size_t i = 0; i < warp_size; ++i) {
            std::memcpy(&result.of[i], reinterpret_cast<const std::byte*>(base + index.of[i]) + 4 * member, 4);
        }
        return result;
    }
    template <class T>
    static void store(T* base, const Word& index, unsigned member, const Word& value, const Mask& mask) {
        for (std::size_t i = 0; i < warp_size; ++i) {
            if (!mask.of[i]) continue;
            std::memcpy(reinterpret_cast<std::byte*>(base + index.of[i]) + 4 * member, &value.of[i], 4);
        }
    }

private:
    static constexpr std::int32_t number(std::uint32_t x) { return static_cast<std::int32_t>(x); }

    template <class F>
    static Mask test(const Word& a, const Word& b, F f) {
        Mask result;
        for (std::size_t i = 0; i < warp_size; ++i) result.of[i] = f(a.of[i], b.of[i]);
        return result;
    }
    template <class F>
    static Mask join(const Mask& a, const Mask& b, F f) {
        Mask result;
        for (std::size_t i = 0; i < warp_size; ++i) result.of[i] = f(a.of[i], b.of[i]);
        return result;
    }
    template <class F>
    static Word halves(const Word& a, const Word& b, F f) {
        using Halves = std::array<std::int16_t, 2 * warp_size>;
        const auto x = std::bit_cast<Halves>(a.of), y = std::bit_cast<Halves>(b.of);
        Halves result;
        for (std::size_t i = 0; i < result.size(); ++i) result[i] = f(x[i], y[i]);
        return {std::bit_cast<std::array<std::uint32_t, warp_size>>(result)};
    }
};

} // namespace spillway::gpu
