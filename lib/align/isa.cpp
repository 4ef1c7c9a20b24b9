#include "align/isa.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "spillway/error.hpp"

namespace spillway {

std::string_view name_of(Isa isa) noexcept {
    switch (isa) {
    case Isa::sse4:
        return "sse4";
    case Isa::avx2:
        return "avx2";
    case Isa::avx512:
        return "avx512";
    case Isa::neon:
        return "neon";
    default:
        return "baseline";
    }
}

std::vector<Isa> available_isas() {
#if defined(__x86_64__)
    // Each with all that its kernels are compiled for, not only what they use.
    std::vector<Isa> available{Isa::baseline};
    if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("pclmul") || !__builtin_cpu_supports("aes")) {
        return available;
    }
    available.push_back(Isa::sse4);
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2") ||
        !__builtin_cpu_supports("fma")) {
        return available;
    }
    available.push_back(Isa::avx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw")) {
        available.push_back(Isa::avx512);
    }
    return available;
#elif defined(__aarch64__)
    return {Isa::neon};
#else
    return {Isa::baseline};
#endif
}

Isa chosen_isa() {
    const std::vector<Isa> available = available_isas();
    const char* const wanted = std::getenv("SPILLWAY_ISA");
    if (wanted == nullptr || *wanted == 0) return available.back();
    const auto found =
        std::find_if(available.begin(), available.end(), [&](Isa isa) { return name_of(isa) == wanted; });
    if (found != available.end()) return *found;
    std::string names;
    for (const Isa isa : available) names += (names.empty() ? "" : ", ") + std::string(name_of(isa));
    throw Error(ErrorCode::usage, "choosing the instruction set", "SPILLWAY_ISA=" + std::string(wanted),
                "this machine has " + names);
}

} // namespace spillway
