// Alignment files of several samples, aligned to one reference, that are read side by side.
//
//     const joined::Inputs inputs("ref.fa", {"child.bam", "mother.cram", "father.bam"});
//     std::vector<spillway::hts::ReadStream> streams = inputs.open();     // one a sample; a worker's own
//     streams[1].seek(inputs.of_sample(1, interval));
#pragma once

#include "spillway/hts.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace joined {

/// Immutable; safe from any thread.
class Inputs {
public:
    /// Throws Error(input): what is missing, has no index, or was aligned to another reference than the first file;
    /// Error(usage): several samples in one file.
    Inputs(const std::string& reference, const std::vector<std::string>& paths);

    /// The first file's contigs; its indexes of contigs are meant wherever nothing else is said.
    [[nodiscard]] const std::vector<spillway::hts::Contig>& contigs() const { return files_.front()->contigs(); }
    [[nodiscard]] const std::vector<std::string>& samples() const { return samples_; }

    /// A stream for each sample.
    [[nodiscard]] std::vector<spillway::hts::ReadStream> open() const;
    /// The interval as the sample's file numbers contigs.
    [[nodiscard]] spillway::hts::Interval of_sample(std::size_t sample, spillway::hts::Interval interval) const;
    /// Throws Error(input) where the FASTA lacks the contig.
    [[nodiscard]] std::shared_ptr<const std::string> bases(std::int32_t contig) const;

private:
    spillway::hts::Reference reference_;
    std::vector<std::shared_ptr<const spillway::hts::AlignmentFile>> files_;
    std::vector<std::string> samples_;
    std::vector<std::vector<std::int32_t>> numbers_; ///< By sample and contig: the contig's index in the sample's file.
};

} // namespace joined
