// What the command line asks for.
//
//     const caller::CommandLine asked = caller::parse(argc, argv);     // prints help and version, or what was wrong
//     if (!asked.options) return asked.exit_code;
#pragma once

#include "spillway/hts.hpp"
#include "spillway/profile.hpp"
#include "spillway/router.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace caller {

struct CallerOptions {
    std::string alignments = {};           ///< BAM, CRAM or SAM; "-" is standard input.
    std::string reference = {};            ///< FASTA.
    std::vector<std::string> regions = {}; ///< -r, each a list as samtools writes them.
    std::string regions_file = {};         ///< -R, BED.
    std::string output = "-";
    spillway::hts::VcfFormat format = spillway::hts::VcfFormat::automatic;
    std::string sample_name = {};      ///< Picks one of several samples, or names a sample that has no name.
    bool skip_missing_contigs = false; ///< Reads on contigs that the FASTA lacks are left out, not an error.
    std::optional<spillway::hts::Profile> profile = {}; ///< None: as the header tells.
    /// Bases that one task decodes; 0: the profile's guess. The command line raises it to shortest_span.
    std::int64_t region_length = 0;
    std::size_t threads = 0;  ///< 0: what the machine allows.
    std::uint64_t memory = 0; ///< Bytes; 0: what the machine allows.
    spillway::Gpu gpu = spillway::Gpu::automatic;
    std::vector<std::string> temporary_directories = {}; ///< For spilled candidates; none: the library's choice.
    std::uint64_t temporary_limit = 0;                   ///< Bytes in each of them; 0: 90% of what is free.
    std::string resume_directory = {};                   ///< Of the journal; empty: a killed run starts anew.
    bool progress = false;                               ///< Asked for, terminal or not.
    int verbosity = 1;                                   ///< 0 errors, 1 warnings, 2 a report.
};

struct CommandLine {
    std::optional<CallerOptions> options; ///< None: end with exit_code.
    int exit_code = 0;
};

[[nodiscard]] CommandLine parse(int argc, const char* const* argv);

} // namespace caller
