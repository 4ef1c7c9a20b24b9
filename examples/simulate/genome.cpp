#include "genome.hpp"

namespace simulate {
namespace {

/// 41% of a human genome's bases are G or C.
char random_base(Random& random) {
    const std::uint64_t draw = random.below(200);
    return draw < 59 ? 'A' : draw < 118 ? 'T' : draw < 159 ? 'C' : 'G';
}

/// A unit that is no repeat of a shorter one: AAAA would be a homopolymer.
std::string random_unit(std::int64_t length, Random& random) {
    for (;;) {
        std::string unit;
        while (static_cast<std::int64_t>(unit.size()) < length) unit += random_base(random);
        // A rotation equal to the unit itself shows a shorter period.
        if ((unit + unit).find(unit, 1) == unit.size()) return unit;
    }
}

void append_repeat(Contig& contig, Random& random) {
    const std::int64_t unit_length = random.chance(0.5) ? 1 : random.between(2, 6);
    const std::int64_t copies = unit_length == 1 ? random.between(6, 14) : random.between(3, 10);
    const std::string unit = random_unit(unit_length, random);
    contig.repeats.push_back({static_cast<std::int64_t>(contig.bases.size()), unit_length, copies});
    for (std::int64_t i = 0; i < copies; ++i) contig.bases += unit;
}

} // namespace

std::vector<Contig> make_genome(const GenomeOptions& options, Random& random) {
    std::vector<Contig> contigs;
    for (int i = 0; i < options.contigs; ++i) {
        Contig contig;
        contig.name = "chr" + std::to_string(i + 1);
        const std::int64_t length = options.length / options.contigs;
        // Room for the longest repeat is kept, so that none is cut.
        constexpr std::int64_t longest_repeat = 60;
        while (static_cast<std::int64_t>(contig.bases.size()) < length) {
            const bool room = static_cast<std::int64_t>(contig.bases.size()) + longest_repeat < length;
            if (room && random.chance(options.repeats_per_kilobase / 1000))
                append_repeat(contig, random);
            else
                contig.bases += random_base(random);
        }
        contigs.push_back(std::move(contig));
    }
    return contigs;
}

} // namespace simulate
