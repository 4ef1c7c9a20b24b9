#include "variants.hpp"

#include <algorithm>
#include <optional>

namespace simulate {
namespace {

std::string::size_type at(std::int64_t position) {
    return static_cast<std::string::size_type>(position);
}

char other_base(char base, Random& random) {
    for (;;) {
        const char drawn = "ACGT"[random.below(4)];
        if (drawn != base) return drawn;
    }
}

/// Lengths fall off as in real genomes: half are 1, the rest halve from step to step, with a tail to the longest.
std::int64_t indel_length(std::int64_t longest, Random& random) {
    if (random.chance(0.1)) return random.between(1, longest);
    std::int64_t length = 1;
    while (length < longest && random.chance(0.5)) ++length;
    return length;
}

/// Moves an indel, given with its anchor base, as far left as it goes: the VCF specification's normal form.
void align_left(const std::string& bases, Variant& variant) {
    std::string& reference = variant.reference;
    std::string& alternate = variant.alternates[0];
    while (variant.begin > 0 && reference.size() != alternate.size() && reference.back() == alternate.back()) {
        reference.pop_back();
        alternate.pop_back();
        if (!reference.empty() && !alternate.empty()) continue;
        --variant.begin;
        reference.insert(reference.begin(), bases[at(variant.begin)]);
        alternate.insert(alternate.begin(), bases[at(variant.begin)]);
    }
}

Variant snv(const std::string& bases, std::int64_t position, Random& random) {
    const char base = bases[at(position)];
    return {position, std::string(1, base), {std::string(1, other_base(base, random))}, {}};
}

Variant insertion(const std::string& bases, std::int64_t anchor, const std::string& inserted) {
    const std::string reference(1, bases[at(anchor)]);
    Variant variant{anchor, reference, {reference + inserted}, {}};
    align_left(bases, variant);
    return variant;
}

Variant deletion(const std::string& bases, std::int64_t anchor, std::int64_t length) {
    Variant variant{anchor, bases.substr(at(anchor), at(length + 1)), {std::string(1, bases[at(anchor)])}, {}};
    align_left(bases, variant);
    return variant;
}

Variant random_indel(const std::string& bases, std::int64_t position, const VariantOptions& options, Random& random) {
    const std::int64_t length = indel_length(options.longest, random);
    if (random.chance(0.5)) return deletion(bases, position, length);
    std::string inserted;
    while (static_cast<std::int64_t>(inserted.size()) < length) inserted += "ACGT"[random.below(4)];
    return insertion(bases, position, inserted);
}

/// Some units more or fewer: what polymerases do.
Variant repeat_indel(const std::string& bases, const Repeat& repeat, const VariantOptions& options, Random& random) {
    const std::int64_t most = std::max<std::int64_t>(1, std::min(options.longest / repeat.unit, repeat.copies - 1));
    std::int64_t units = 1;
    while (units < most && random.chance(0.3)) ++units;
    const std::int64_t anchor = repeat.begin - 1;
    if (random.chance(0.5)) return deletion(bases, anchor, units * repeat.unit);
    std::string inserted;
    for (std::int64_t i = 0; i < units; ++i) inserted += bases.substr(at(repeat.begin), at(repeat.unit));
    return insertion(bases, anchor, inserted);
}

/// A second alternate for the same REF: another base for an SNV, one more base for an indel.
std::string second_alternate(const Variant& variant, Random& random) {
    const std::string& first = variant.alternates[0];
    if (first.size() == 1 && variant.reference.size() == 1) {
        for (;;) {
            const char base = other_base(variant.reference[0], random);
            if (base != first[0]) return std::string(1, base);
        }
    }
    // Beside an insertion or a deletion, an SNV of the anchor would be another site's: one inserted base is not.
    for (;;) {
        const std::string alternate =
            variant.reference.substr(0, 1) + other_base(variant.reference[0], random) + variant.reference.substr(1);
        if (alternate != first) return alternate;
    }
}

void choose_genotype(Variant& variant, const VariantOptions& options, Random& random) {
    if (random.chance(options.multi_share)) {
        variant.alternates.push_back(second_alternate(variant, random));
        variant.alleles = random.chance(0.5) ? std::array{1, 2} : std::array{2, 1};
    } else if (random.chance(options.hom_share)) {
        variant.alleles = {1, 1};
    } else {
        variant.alleles = random.chance(0.5) ? std::array{0, 1} : std::array{1, 0};
    }
}

} // namespace

std::vector<Variant> plant_variants(const Contig& contig, const VariantOptions& options, Random& random) {
    const auto length = static_cast<std::int64_t>(contig.bases.size());
    const auto count = [&](double rate) { return static_cast<std::int64_t>(rate * static_cast<double>(length)); };
    std::vector<Variant> drawn;
    if (length <= 2 * options.edge + options.longest) return drawn;
    for (std::int64_t i = count(options.snv_rate); i > 0; --i)
        drawn.push_back(snv(contig.bases, random.between(0, length - 1), random));
    for (std::int64_t i = count(options.indel_rate); i > 0; --i) {
        if (!contig.repeats.empty() && random.chance(options.repeat_share)) {
            const Repeat& repeat = contig.repeats[random.below(contig.repeats.size())];
            if (repeat.begin > 0) drawn.push_back(repeat_indel(contig.bases, repeat, options, random));
        } else {
            drawn.push_back(
                random_indel(contig.bases, random.between(1, length - options.longest - 2), options, random));
        }
    }
    std::stable_sort(drawn.begin(), drawn.end(), [](const Variant& a, const Variant& b) { return a.begin < b.begin; });
    std::vector<Variant> planted;
    std::int64_t free_from = options.edge;
    for (Variant& variant : drawn) {
        if (variant.begin < free_from || variant.end() > length - options.edge) continue;
        choose_genotype(variant, options, random);
        free_from = variant.end() + options.gap;
        planted.push_back(std::move(variant));
    }
    return planted;
}

} // namespace simulate
