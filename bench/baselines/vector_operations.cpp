// No aligner: what a machine takes for the vector operations of the recurrence alone, all independent and in registers.
// Beside it in the same table stands how close the lane kernels come to that bound, whatever the clock does meanwhile.
#include <cstdlib>
#include <limits>
#include <string_view>

#include "aligner.hpp"

namespace bench {

#if defined(__x86_64__)
namespace {

// Four cells, as lib/align/lanes.hpp counts: an addition, a subtraction, four maxima; and two for the pair, if the
// target is not shared. One register's name a line, so that no operation waits for another.
#define BENCH_CELL(r, add, a, b)                                                                                       \
    add " %%" r "15, %%" r "14, %%" r a "\n vpsubw %%" r "15, %%" r "14, %%" r b "\n"                                  \
        "vpmaxsw %%" r "15, %%" r "14, %%" r a "\n vpmaxsw %%" r "15, %%" r "14, %%" r b "\n"                          \
        "vpmaxsw %%" r "15, %%" r "14, %%" r a "\n vpmaxsw %%" r "15, %%" r "14, %%" r b "\n"
#define BENCH_CELLS(r)                                                                                                 \
    BENCH_CELL(r, "vpaddw", "0", "1")                                                                                  \
    BENCH_CELL(r, "vpaddw", "2", "3") BENCH_CELL(r, "vpaddw", "4", "5") BENCH_CELL(r, "vpaddw", "6", "7")
#define BENCH_PAIR(a, b) "vpxor %%ymm15, %%ymm14, %%ymm" a "\n vpshufb %%ymm15, %%ymm14, %%ymm" b "\n"
#define BENCH_WIDE_PAIR(a, b) "vpxord %%zmm15, %%zmm14, %%zmm" a "\n vpshufb %%zmm15, %%zmm14, %%zmm" b "\n"
#define BENCH_PAIRS(pair) pair("8", "9") pair("10", "11") pair("8", "9") pair("10", "11")
#define BENCH_CLOBBERS "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11"

/// Of registers of 32 bytes, or 64.
void make_cells(std::size_t fours, bool pairs, bool wide) {
    for (std::size_t k = 0; k < fours; ++k) {
        if (wide && pairs) {
            __asm__ volatile(BENCH_CELLS("zmm") BENCH_PAIRS(BENCH_WIDE_PAIR)::: BENCH_CLOBBERS);
        } else if (wide) {
            __asm__ volatile(BENCH_CELLS("zmm")::: BENCH_CLOBBERS);
        } else if (pairs) {
            __asm__ volatile(BENCH_CELLS("ymm") BENCH_PAIRS(BENCH_PAIR)::: BENCH_CLOBBERS);
        } else {
            __asm__ volatile(BENCH_CELLS("ymm")::: BENCH_CLOBBERS);
        }
    }
}

class VectorOperations : public Aligner {
public:
    VectorOperations(std::size_t lane_bytes, bool shares_target, bool wide)
        : lanes_((wide ? 64U : 32U) / lane_bytes), shares_target_(shares_target), wide_(wide) {}
    [[nodiscard]] std::string name() const override {
        return wide_ ? "bound: the operations alone, AVX-512" : "bound: the operations alone, AVX2";
    }
    void align(std::span<const spillway::SequencePair> pairs) override {
        std::size_t cells = 0, ends = 0;
        for (const auto& pair : pairs) {
            cells += pair.query.size() * pair.target.size();
            // 24 rows where a path may begin take one operation more a cell, and 28 where it may end two.
            ends += pair.target.size() * (24 + 28 * 2);
            found_scores.push_back(std::numeric_limits<std::int32_t>::min());
        }
        make_cells(cells / lanes_ / 4, !shares_target_, wide_);
        make_cells(ends / lanes_ / 24, false, wide_);
    }

private:
    std::size_t lanes_;
    bool shares_target_, wide_;
};

} // namespace
#endif

void add_bound(Aligners& to, std::size_t lane_bytes, bool shares_target) {
#if defined(__x86_64__)
    const char* const isa = std::getenv("SPILLWAY_ISA");
    const std::string_view wanted = isa == nullptr ? "" : isa;
    const bool wide = __builtin_cpu_supports("avx512bw") && (wanted.empty() || wanted == "avx512");
    if (!wide && (!__builtin_cpu_supports("avx2") || (!wanted.empty() && wanted != "avx2"))) return;
    to.push_back(std::make_unique<VectorOperations>(lane_bytes, shares_target, wide));
#else
    (void)to, (void)lane_bytes, (void)shares_target;
#endif
}

} // namespace bench
