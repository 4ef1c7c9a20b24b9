// What the simulation leaves on disk, with indexes.
#pragma once

#include "genome.hpp"
#include "sequencer.hpp"
#include "variants.hpp"

#include <string>
#include <vector>

namespace simulate {

/// ref.fa and ref.fa.fai.
void write_reference(const std::string& path, const std::vector<Contig>& contigs);

/// BAM with .bai, or CRAM with .crai for a path that ends in .cram. Reads by contig, then place.
void write_reads(const std::string& path, const std::string& reference, const std::vector<Contig>& contigs,
                 const std::string& sample, const std::vector<std::vector<SimulatedRead>>& reads);

/// The planted variants, phased, as bgzipped VCF with .tbi. Variants by contig.
void write_truth(const std::string& path, const std::vector<Contig>& contigs, const std::string& sample,
                 const std::vector<std::vector<Variant>>& variants);

/// Where the truth is the truth and reads are deep: contigs without `edge` bases at their ends.
void write_regions(const std::string& path, const std::vector<Contig>& contigs, std::int64_t edge);

} // namespace simulate
