// A small genome: random bases, with the homopolymers and tandem repeats in which indels happen.
#pragma once

#include "random.hpp"

#include <string>
#include <vector>

namespace simulate {

/// A stretch of a contig that repeats a unit.
struct Repeat {
    std::int64_t begin = 0; ///< 0-based.
    std::int64_t unit = 1;  ///< Bases of a unit: 1 is a homopolymer.
    std::int64_t copies = 0;
};

struct Contig {
    std::string name, bases;
    std::vector<Repeat> repeats; ///< By begin.
};

struct GenomeOptions {
    std::int64_t length = 200'000; ///< Of all contigs together.
    int contigs = 2;
    double repeats_per_kilobase = 1.5;
};

[[nodiscard]] std::vector<Contig> make_genome(const GenomeOptions& options, Random& random);

} // namespace simulate
