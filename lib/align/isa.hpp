// Which instruction set the kernels use: the best that this machine has, or the one that SPILLWAY_ISA names.
//
//     SPILLWAY_ISA=sse4 spillway-call ...       // the same bytes, slower: for tests
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace spillway {

enum class Isa : std::uint8_t { baseline, sse4, avx2, avx512, neon };

/// What bands and waves may be made of: the widest registers that the machine has, or those that every one of its kind
/// has.
enum class Instructions : std::uint8_t { widest, baseline };

[[nodiscard]] constexpr Instructions instructions_of(Isa isa) noexcept {
    return isa == Isa::baseline || isa == Isa::sse4 ? Instructions::baseline : Instructions::widest;
}

/// "baseline", "sse4", "avx2", "avx512", "neon".
[[nodiscard]] std::string_view name_of(Isa isa) noexcept;

/// What this machine can run, ascending.
[[nodiscard]] std::vector<Isa> available_isas();

/// The last of the available ones, or that of the environment variable SPILLWAY_ISA. Throws Error(usage) if there is
/// none of that name, or this machine lacks it.
[[nodiscard]] Isa chosen_isa();

} // namespace spillway
