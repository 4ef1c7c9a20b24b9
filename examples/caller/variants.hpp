// Variants in one normal form, and what a read or a haplotype spells differently from the reference.
//
//     caller::Variant deletion{299, 1, ""};                                   // one base gone at 0-based 299
//     caller::left_align(deletion, caller::Sequence(contig));                 // now at the left end of its repeat
//     caller::for_each_difference(read, contig, [&](const caller::Difference& d) { ... });
#pragma once

#include "spillway/align.hpp"
#include "spillway/hts.hpp"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace caller {

/// A variant moves at most so many bases to the left of where its alignment placed it, so that the order of calls is
/// known after a bounded wait; longer repeats than this are out of reach for short reads anyway.
inline constexpr std::int64_t max_shift = 200;

/// Longer insertions and deletions are not called: they bound how far a window looks.
inline constexpr std::int64_t max_indel = 300;

/// Bases of a contig or of a stretch of it, addressed by the contig's own 0-based positions. A view.
class Sequence {
public:
    explicit Sequence(std::string_view whole) : bases_(whole), size_(static_cast<std::int64_t>(whole.size())) {}
    /// `bases` lie at `begin` on a contig of `size` bases; only they may be looked at.
    Sequence(std::string_view bases, std::int64_t begin, std::int64_t size)
        : bases_(bases), begin_(begin), size_(size) {}

    [[nodiscard]] char operator[](std::int64_t position) const {
        return bases_[static_cast<std::size_t>(position - begin_)];
    }
    [[nodiscard]] const char* at(std::int64_t position) const { return bases_.data() + (position - begin_); }
    /// Of the contig, not of the view.
    [[nodiscard]] std::int64_t size() const { return size_; }
    /// The bases of [begin, end) as VCF wants them: A, C, G, T or N.
    [[nodiscard]] std::string plain(std::int64_t begin, std::int64_t end) const;

private:
    std::string_view bases_;
    std::int64_t begin_ = 0;
    std::int64_t size_;
};

/// Reference bases [position, position + deleted) replaced by `inserted`. In normal form it is a substitution of one
/// base (1 for 1), an insertion (0 for n) or a deletion (n for none), and the latter two are at their leftmost place.
struct Variant {
    std::int64_t position = 0; ///< 0-based.
    std::int64_t deleted = 0;
    std::string inserted;

    [[nodiscard]] std::int64_t end() const { return position + deleted; }
    [[nodiscard]] bool is_substitution() const { return deleted == 1 && inserted.size() == 1; }

    friend auto operator<=>(const Variant&, const Variant&) = default;
    friend bool operator==(const Variant&, const Variant&) = default;
};

/// Moves an insertion or deletion as far left as it spells the same sequence, at most max_shift bases.
void left_align(Variant& variant, const Sequence& contig);

/// How many bases to the right an insertion or deletion could move, at most max_shift.
[[nodiscard]] std::int64_t right_freedom(std::int64_t position, std::int64_t deleted, std::string_view inserted,
                                         const Sequence& contig);

/// Where a read differs from the reference, as its CIGAR has it, indels moved left as far as the read itself agrees
/// with the reference. `inserted` points into the read.
struct Difference {
    std::int64_t position;
    std::int64_t deleted;
    std::string_view inserted;
    std::uint8_t quality; ///< Of the base; of an indel the lowest of those beside and in it.
};

/// CIGAR elements in htslib's packing.
namespace cigar {
[[nodiscard]] constexpr std::uint32_t operation(std::uint32_t element) {
    return element & 0xf;
}
[[nodiscard]] constexpr std::int64_t length(std::uint32_t element) {
    return element >> 4;
}
[[nodiscard]] constexpr bool takes_read(std::uint32_t o) {
    return o == spillway::hts::cigar_match || o == spillway::hts::cigar_insertion ||
           o == spillway::hts::cigar_soft_clip;
}
[[nodiscard]] constexpr bool takes_reference(std::uint32_t o) {
    return o == spillway::hts::cigar_match || o == spillway::hts::cigar_deletion || o == spillway::hts::cigar_skip;
}
} // namespace cigar

/// True where a read's base speaks for a variant: no N, and not what the reference code (IUPAC) stands for.
[[nodiscard]] inline bool differs(char reference, char base) {
    return base != 'N' && !spillway::hts::compatible(reference, base);
}

/// First index from `at` on where the two differ, `length` if none.
[[nodiscard]] std::size_t first_difference(const char* a, const char* b, std::size_t at, std::size_t length);

/// Calls `visit(const Difference&)` from left to right of the read's alignment; nothing outside the contig is visited.
/// Differences may come out of order where an indel moved left past none: positions never precede read.begin.
template <class Visit>
void for_each_difference(const spillway::hts::Read& read, const Sequence& contig, Visit&& visit);

/// The variants that an alignment of a haplotype to the reference slice at `begin` spells, in normal form, ascending.
[[nodiscard]] std::vector<Variant> variants_of(std::string_view haplotype, const spillway::Alignment& alignment,
                                               std::int64_t begin, const Sequence& contig);

// Implementation of the template.

namespace detail {
Difference shifted_left(const spillway::hts::Read& read, const Sequence& contig, std::int64_t position,
                        std::int64_t deleted, std::int64_t query, std::int64_t inserted, std::int64_t run);
}

template <class Visit>
void for_each_difference(const spillway::hts::Read& read, const Sequence& contig, Visit&& visit) {
    std::int64_t at = read.begin; // on the reference
    std::int64_t query = 0;       // in the read
    std::int64_t run = 0;         // aligned bases just before `at` that equal the reference
    for (const std::uint32_t element : read.cigar) {
        const auto operation = cigar::operation(element);
        const std::int64_t length = cigar::length(element);
        if (operation == spillway::hts::cigar_match) {
            const auto inside =
                static_cast<std::size_t>(std::max<std::int64_t>(0, std::min(length, contig.size() - at)));
            const char* bases = read.bases.data() + query;
            const char* reference = contig.at(at);
            std::size_t last = 0;
            bool any = false;
            for (std::size_t i = inside > 0 ? first_difference(bases, reference, 0, inside) : 0; i < inside;
                 i = first_difference(bases, reference, i + 1, inside)) {
                if (differs(reference[i], bases[i])) {
                    visit(Difference{at + static_cast<std::int64_t>(i), 1, std::string_view(bases + i, 1),
                                     read.qualities[static_cast<std::size_t>(query) + i]});
                }
                last = i + 1;
                any = true;
            }
            run = any ? static_cast<std::int64_t>(inside - last) : run + static_cast<std::int64_t>(inside);
        } else if (operation == spillway::hts::cigar_insertion || operation == spillway::hts::cigar_deletion) {
            const bool insertion = operation == spillway::hts::cigar_insertion;
            const bool inside = at < contig.size() && at > 0 && (insertion || at + length <= contig.size());
            if (inside && length <= max_indel && query > 0 && run > 0) {
                visit(
                    detail::shifted_left(read, contig, at, insertion ? 0 : length, query, insertion ? length : 0, run));
            }
            run = 0;
        } else {
            run = 0;
        }
        if (cigar::takes_read(operation)) query += length;
        if (cigar::takes_reference(operation)) at += length;
    }
}

} // namespace caller
