#include "sequencer.hpp"

#include <algorithm>
#include <array>
#include <htslib/sam.h>

namespace simulate {
namespace {

/// What a base of this quality is wrong with: 10^(-quality / 10), written out so that no library rounds it.
struct Quality {
    char phred;
    double error;
};
constexpr Quality low{11, 0.0794328}, middle{25, 0.00316228}, high{37, 0.000199526};

/// Qualities fall towards a read's end, as the machine's clusters lose step.
Quality draw_quality(std::int64_t cycle, std::int64_t length, Random& random) {
    const double worn = static_cast<double>(cycle) / static_cast<double>(length);
    const double rare = 0.004 + 0.02 * worn * worn;
    const double common = 0.02 + 0.12 * worn * worn;
    return random.chance(rare) ? low : random.chance(common) ? middle : high;
}

std::int64_t reference_length(const Placement& placement) {
    return bam_cigar2rlen(static_cast<int>(placement.cigar.size()), placement.cigar.data());
}

/// Bases [begin, begin + length) of the haplotype as the machine sees them, from the right end where `reverse`.
SimulatedRead read(const Haplotype& haplotype, std::int64_t begin, std::int64_t length, bool reverse, Random& random) {
    SimulatedRead result;
    result.placement = haplotype.place(begin, length);
    result.bases = haplotype.bases().substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(length));
    result.qualities.resize(result.bases.size());
    for (std::int64_t cycle = 0; cycle < length; ++cycle) {
        const auto i = static_cast<std::size_t>(reverse ? length - 1 - cycle : cycle);
        const Quality quality = draw_quality(cycle, length, random);
        result.qualities[i] = quality.phred;
        if (!random.chance(quality.error)) continue;
        const char truth = result.bases[i];
        while (result.bases[i] == truth) result.bases[i] = "ACGT"[random.below(4)];
    }
    return result;
}

} // namespace

std::vector<SimulatedRead> sequence(const std::vector<Haplotype>& haplotypes, std::int32_t contig,
                                    const std::string& contig_name, const SequencerOptions& options, Random& random) {
    std::vector<SimulatedRead> reads;
    const auto length = static_cast<double>(haplotypes[0].bases().size());
    const auto pairs =
        static_cast<std::int64_t>(options.depth * length / (2 * static_cast<double>(options.read_length)));
    reads.reserve(static_cast<std::size_t>(2 * pairs));
    for (std::int64_t i = 0; i < pairs; ++i) {
        const Haplotype& haplotype = haplotypes[random.below(haplotypes.size())];
        const auto available = static_cast<std::int64_t>(haplotype.bases().size());
        const auto wished = static_cast<std::int64_t>(random.normal(options.insert_mean, options.insert_deviation));
        const std::int64_t insert = std::clamp(wished, options.read_length, available);
        const std::int64_t begin = random.between(0, available - insert);
        SimulatedRead left = read(haplotype, begin, options.read_length, false, random);
        SimulatedRead right = read(haplotype, begin + insert - options.read_length, options.read_length, true, random);
        left.name = right.name = contig_name + ":" + std::to_string(i);
        left.contig = right.contig = contig;
        const bool left_first = random.chance(0.5);
        left.flags = static_cast<std::uint16_t>(BAM_FPAIRED | BAM_FPROPER_PAIR | BAM_FMREVERSE |
                                                (left_first ? BAM_FREAD1 : BAM_FREAD2));
        right.flags = static_cast<std::uint16_t>(BAM_FPAIRED | BAM_FPROPER_PAIR | BAM_FREVERSE |
                                                 (left_first ? BAM_FREAD2 : BAM_FREAD1));
        left.mate_begin = right.placement.begin;
        right.mate_begin = left.placement.begin;
        const std::int64_t end = right.placement.begin + reference_length(right.placement);
        left.template_length = end - left.placement.begin;
        right.template_length = -left.template_length;
        reads.push_back(std::move(left));
        reads.push_back(std::move(right));
    }
    std::stable_sort(reads.begin(), reads.end(), [](const SimulatedRead& a, const SimulatedRead& b) {
        return a.placement.begin < b.placement.begin;
    });
    return reads;
}

} // namespace simulate
