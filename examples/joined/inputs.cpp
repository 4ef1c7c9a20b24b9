#include "inputs.hpp"

#include <filesystem>

namespace joined {

using spillway::Error;
using spillway::ErrorCode;
using spillway::hts::AlignmentFile;
using spillway::hts::Contig;

namespace {

constexpr const char* joining = "joining alignments";

std::vector<std::int32_t> numbers_in(const AlignmentFile& file, const AlignmentFile& first) {
    std::vector<std::int32_t> numbers;
    for (const Contig& contig : first.contigs()) {
        const auto found = file.find_contig(contig.name);
        if (!found || file.contigs()[static_cast<std::size_t>(*found)].length != contig.length) {
            throw Error(ErrorCode::input, joining, file.path(),
                        "it lacks " + contig.name + " of " + std::to_string(contig.length) + " bases, which " +
                            first.path() + " has; give files that were aligned to one reference");
        }
        numbers.push_back(*found);
    }
    return numbers;
}

} // namespace

Inputs::Inputs(const std::string& reference, const std::vector<std::string>& paths) : reference_(reference) {
    for (const std::string& path : paths) {
        const auto& file = files_.emplace_back(AlignmentFile::open(path, reference));
        if (!file->has_index())
            throw Error(ErrorCode::input, joining, path, "it has no index; make one with samtools index");
        if (file->samples().size() > 1) {
            throw Error(ErrorCode::usage, joining, path,
                        "it holds " + std::to_string(file->samples().size()) + " samples; give a file for each");
        }
        samples_.push_back(file->samples().empty() ? std::filesystem::path(path).stem().string()
                                                   : file->samples().front());
        numbers_.push_back(numbers_in(*file, *files_.front()));
    }
    // Throws where a length differs; a contig that the FASTA lacks matters only once it is looked at.
    static_cast<void>(spillway::hts::check_contigs(*files_.front(), reference_));
}

std::vector<spillway::hts::ReadStream> Inputs::open() const {
    std::vector<spillway::hts::ReadStream> streams;
    for (const auto& file : files_) streams.emplace_back(file, spillway::hts::ReadFilter{});
    return streams;
}

spillway::hts::Interval Inputs::of_sample(std::size_t sample, spillway::hts::Interval interval) const {
    interval.contig = numbers_[sample][static_cast<std::size_t>(interval.contig)];
    return interval;
}

std::shared_ptr<const std::string> Inputs::bases(std::int32_t contig) const {
    const std::string& name = contigs()[static_cast<std::size_t>(contig)].name;
    if (!reference_.length(name))
        throw Error(ErrorCode::input, joining, reference_.path(), "it lacks the contig " + name);
    return reference_.contig(name);
}

} // namespace joined
