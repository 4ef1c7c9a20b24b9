// The index of a CRAM file (.crai) as we read it: what htslib keeps to itself and spans need.
#pragma once

#include "hts/alignment_state.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace spillway::hts {

/// The slices of mapped reads, by contig and begin. Throws Error(input) naming the line.
[[nodiscard]] std::vector<CramSlice> read_cram_index(const std::string& path, std::size_t contigs);

/// Records in the container at `offset`, from its header; 0 where it cannot be read.
[[nodiscard]] std::uint64_t records_of_container(int descriptor, std::int64_t offset);

} // namespace spillway::hts
