#include "haplotype.hpp"

#include <algorithm>
#include <htslib/sam.h>

namespace simulate {

Haplotype::Haplotype(const Contig& contig, const std::vector<Variant>& variants, std::size_t which) {
    const auto append_reference = [&](std::int64_t begin, std::int64_t end) {
        bases_.append(contig.bases, static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
        append(end - begin, begin, false);
    };
    std::int64_t position = 0;
    for (const Variant& variant : variants) {
        const int allele = variant.alleles[which];
        if (allele == 0) continue;
        const std::string& alternate = variant.alternates[static_cast<std::size_t>(allele - 1)];
        append_reference(position, variant.begin);
        // What REF and ALT share at their ends lies on the reference, and so does a substituted middle; what is longer
        // on one side is inserted or deleted. The end goes first: so an indel comes to lie as far left as it can.
        const std::size_t shorter = std::min(alternate.size(), variant.reference.size());
        std::size_t suffix = 0, prefix = 0;
        while (suffix + 1 < shorter &&
               alternate[alternate.size() - 1 - suffix] == variant.reference[variant.reference.size() - 1 - suffix])
            ++suffix;
        while (prefix + suffix < shorter && alternate[prefix] == variant.reference[prefix]) ++prefix;
        const auto kept = static_cast<std::int64_t>(prefix + (shorter - prefix - suffix));
        const auto tail = static_cast<std::int64_t>(suffix);
        bases_ += alternate;
        append(kept, variant.begin, false);
        append(static_cast<std::int64_t>(alternate.size()) - kept - tail, variant.begin + kept, true);
        append(tail, variant.end() - tail, false);
        position = variant.end();
    }
    append_reference(position, static_cast<std::int64_t>(contig.bases.size()));
}

void Haplotype::append(std::int64_t length, std::int64_t reference, bool inserted) {
    if (length == 0) return;
    if (!blocks_.empty()) {
        Block& last = blocks_.back();
        if (!inserted && !last.inserted && last.reference + last.length == reference) {
            last.length += length;
            return;
        }
    }
    const std::int64_t begin = blocks_.empty() ? 0 : blocks_.back().begin + blocks_.back().length;
    blocks_.push_back({begin, length, reference, inserted});
}

Placement Haplotype::place(std::int64_t begin, std::int64_t length, std::int64_t anchor) const {
    const std::int64_t end = begin + length;
    auto block = std::upper_bound(blocks_.begin(), blocks_.end(), begin,
                                  [](std::int64_t position, const Block& b) { return position < b.begin; });
    --block; // the first block begins at 0
    std::vector<Block> pieces;
    for (; block != blocks_.end() && block->begin < end; ++block) {
        Block piece = *block;
        const std::int64_t cut = std::max<std::int64_t>(begin - piece.begin, 0);
        piece.begin += cut;
        piece.length = std::min(piece.begin - cut + piece.length, end) - piece.begin;
        if (!piece.inserted) piece.reference += cut;
        pieces.push_back(piece);
    }
    // The longest run stays in any case, so that every read is aligned.
    const auto longest = std::max_element(pieces.begin(), pieces.end(), [](const Block& a, const Block& b) {
        return (a.inserted ? 0 : a.length) < (b.inserted ? 0 : b.length);
    });
    const auto weak = [&](const Block& piece) { return piece.inserted || piece.length < anchor; };
    auto first = std::find_if_not(pieces.begin(), longest, weak);
    auto last =
        std::find_if_not(std::make_reverse_iterator(pieces.end()), std::make_reverse_iterator(longest + 1), weak)
            .base();
    Placement placement;
    placement.begin = first->reference;
    const auto add = [&](std::int64_t count, std::uint32_t operation) {
        if (count > 0) placement.cigar.push_back(static_cast<std::uint32_t>(count) << BAM_CIGAR_SHIFT | operation);
    };
    add(first->begin - begin, BAM_CSOFT_CLIP);
    for (auto piece = first; piece != last; ++piece) {
        if (piece != first) {
            const Block& before = *(piece - 1);
            add(piece->reference - (before.inserted ? before.reference : before.reference + before.length), BAM_CDEL);
        }
        add(piece->length, piece->inserted ? BAM_CINS : BAM_CMATCH);
    }
    const Block& back = *(last - 1);
    add(end - (back.begin + back.length), BAM_CSOFT_CLIP);
    return placement;
}

} // namespace simulate
