// How often each base is seen at each position of an interval, in one sample.
//
//     const std::vector<joined::Depths> depths = joined::pile_up(stream, interval);
//     depths[position - interval.begin].of[0]      // templates that show A there
#pragma once

#include "spillway/hts.hpp"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace joined {

inline constexpr std::string_view alleles = "ACGT";

/// Templates at one position.
struct Depths {
    std::array<std::uint32_t, 4> of{}; ///< By what they show; see `alleles`.

    [[nodiscard]] std::uint32_t total() const { return of[0] + of[1] + of[2] + of[3]; }
};

/// Of the reads with at least mapping quality 20, the bases with at least quality 20. Mates that overlap count once.
[[nodiscard]] std::vector<Depths> pile_up(spillway::hts::ReadStream& stream, const spillway::hts::Interval& interval);

} // namespace joined
