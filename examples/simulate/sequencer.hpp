// Paired reads of the haplotypes, with the errors and base qualities of an Illumina machine.
#pragma once

#include "haplotype.hpp"
#include "random.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace simulate {

struct SequencerOptions {
    double depth = 30; ///< Mean, over both haplotypes.
    std::int64_t read_length = 150;
    double insert_mean = 350; ///< From the first read's begin to the second's end.
    double insert_deviation = 50;
};

struct SimulatedRead {
    std::string name;
    std::int32_t contig = 0;
    Placement placement;
    std::string bases, qualities; ///< In the reference's direction; qualities as numbers.
    std::uint16_t flags = 0;
    std::int64_t mate_begin = 0;
    std::int64_t template_length = 0;
};

/// The reads of one contig, by place.
[[nodiscard]] std::vector<SimulatedRead> sequence(const std::vector<Haplotype>& haplotypes, std::int32_t contig,
                                                  const std::string& contig_name, const SequencerOptions& options,
                                                  Random& random);

} // namespace simulate
