// How a sample was sequenced, and the sizes that a run over its reads begins with.
//
//     const hts::Profile profile = hts::profile_of(*reads);                          // as its header tells
//     const hts::FirstGuess guess = hts::first_guess(profile);
//     const auto spans = hts::decode_spans(*reads, wanted, {.length = guess.span});
//
// A guess decides how work is cut, never what comes out. Pure functions; safe from any thread.
#pragma once

#include "spillway/hts.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace spillway::hts {

enum class Profile : std::uint8_t {
    wgs,    ///< Short reads over the whole genome.
    wes,    ///< Short reads on targets.
    pacbio, ///< PacBio reads of 10 to 25 kb.
    ont,    ///< Oxford Nanopore reads, up to 100 kb and more.
    hybrid, ///< Short and long reads of one sample.
    rnaseq, ///< Spliced reads.
};

/// "wgs", "wes" and so on: the names above.
[[nodiscard]] std::string_view to_string(Profile profile) noexcept;
/// None where it is no profile's name.
[[nodiscard]] std::optional<Profile> profile_named(std::string_view name) noexcept;

/// What the header says: rnaseq where a @PG line names a spliced aligner; by PL of the @RG lines pacbio, ont, or hybrid
/// where long and other reads are together; else wgs. That reads lie on targets no header says.
[[nodiscard]] Profile profile_of(const AlignmentFile& file);

struct FirstGuess {
    std::int64_t span = 0;       ///< SpanOptions::length, in bases.
    std::size_t batch_cells = 0; ///< Of alignment matrices, that make a batch worth its while.
};
[[nodiscard]] FirstGuess first_guess(Profile profile) noexcept;

} // namespace spillway::hts
