#include "variants.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace caller {

std::string Sequence::plain(std::int64_t begin, std::int64_t end) const {
    std::string bases(bases_.substr(static_cast<std::size_t>(begin - begin_), static_cast<std::size_t>(end - begin)));
    std::ranges::transform(bases, bases.begin(), spillway::hts::vcf_base);
    return bases;
}

std::size_t first_difference(const char* a, const char* b, std::size_t at, std::size_t length) {
    if constexpr (std::endian::native == std::endian::little) {
        for (; at + 8 <= length; at += 8) {
            std::uint64_t x, y;
            std::memcpy(&x, a + at, 8);
            std::memcpy(&y, b + at, 8);
            if (x != y) return at + static_cast<std::size_t>(std::countr_zero(x ^ y)) / 8;
        }
    }
    while (at < length && a[at] == b[at]) ++at;
    return std::min(at, length);
}

void left_align(Variant& variant, const Sequence& contig) {
    if (variant.deleted > 0 && !variant.inserted.empty()) return;
    std::int64_t shift = 0;
    const std::int64_t limit = std::min(max_shift, variant.position);
    if (variant.deleted > 0) {
        while (shift < limit && contig[variant.position - shift - 1] == contig[variant.end() - shift - 1]) ++shift;
    } else {
        // Moving by one takes the last inserted base to the front, which must equal the reference base passed.
        const auto size = static_cast<std::int64_t>(variant.inserted.size());
        const auto last = [&] { return variant.inserted[static_cast<std::size_t>(size - 1 - shift % size)]; };
        while (shift < limit && contig[variant.position - shift - 1] == last()) ++shift;
        std::rotate(variant.inserted.begin(), variant.inserted.end() - shift % size, variant.inserted.end());
    }
    variant.position -= shift;
}

std::int64_t right_freedom(std::int64_t position, std::int64_t deleted, std::string_view inserted,
                           const Sequence& contig) {
    const std::int64_t limit = std::min(max_shift, static_cast<std::int64_t>(contig.size()) - position - deleted);
    std::int64_t shift = 0;
    if (deleted > 0 && inserted.empty()) {
        while (shift < limit && contig[position + shift] == contig[position + deleted + shift]) ++shift;
    } else if (deleted == 0) {
        const auto size = static_cast<std::int64_t>(inserted.size());
        while (shift < limit && contig[position + shift] == inserted[static_cast<std::size_t>(shift % size)]) ++shift;
    }
    return shift;
}

namespace detail {

Difference shifted_left(const spillway::hts::Read& read, const Sequence& contig, std::int64_t position,
                        std::int64_t deleted, std::int64_t query, std::int64_t inserted, std::int64_t run) {
    const auto read_base = [&](std::int64_t at) { return read.bases[static_cast<std::size_t>(at)]; };
    // At least one agreeing base must stay to the left, so that the place is still inside the read.
    const std::int64_t limit = std::min(max_shift, run - 1);
    std::int64_t shift = 0;
    if (deleted > 0) {
        while (shift < limit && contig[position - shift - 1] == contig[position + deleted - shift - 1]) {
            ++shift;
        }
    } else {
        while (shift < limit && read_base(query - shift - 1) == read_base(query + inserted - shift - 1)) ++shift;
    }
    position -= shift;
    query -= shift;
    const auto after = std::min(query + inserted + 1, static_cast<std::int64_t>(read.qualities.size()));
    const auto lowest = std::min_element(read.qualities.begin() + (query - 1), read.qualities.begin() + after);
    return {position, deleted, std::string_view(read.bases.data() + query, static_cast<std::size_t>(inserted)),
            *lowest};
}

} // namespace detail

std::vector<Variant> variants_of(std::string_view haplotype, const spillway::Alignment& alignment, std::int64_t begin,
                                 const Sequence& contig) {
    std::vector<Variant> variants;
    auto query = static_cast<std::size_t>(alignment.query_begin);
    std::int64_t at = begin + alignment.target_begin;
    for (const auto element : alignment.cigar) {
        const auto operation = cigar::operation(element);
        const std::int64_t length = cigar::length(element);
        if (operation == spillway::hts::cigar_match) {
            for (std::int64_t i = 0; i < length; ++i) {
                const char base = haplotype[query + static_cast<std::size_t>(i)];
                const char reference = contig[at + i];
                if (base != spillway::hts::vcf_base(reference) && differs(reference, base)) {
                    variants.push_back({at + i, 1, std::string(1, base)});
                }
            }
        } else if (operation == spillway::hts::cigar_insertion) {
            variants.push_back({at, 0, std::string(haplotype.substr(query, static_cast<std::size_t>(length)))});
            left_align(variants.back(), contig);
        } else if (operation == spillway::hts::cigar_deletion) {
            variants.push_back({at, length, {}});
            left_align(variants.back(), contig);
        }
        if (cigar::takes_read(operation)) query += static_cast<std::size_t>(length);
        if (cigar::takes_reference(operation)) at += length;
    }
    std::ranges::sort(variants);
    return variants;
}

} // namespace caller
