// Affine-gap alignment of reads to haplotypes: one contract, many forms, the same bytes from each.
//
//     spillway::Scores scores;                                     // 4 / -6 / 8 / 2
//     spillway::Alignment a = spillway::align("ACGTTA", "GGACGTAGG", scores, spillway::Span::local);
//     // a.score, a.query_begin .. a.query_end, a.target_begin .. a.target_end, to_string(a.cigar)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway {

/// Scores of an affine alignment; a gap of length g costs gap_open + (g - 1) * gap_extend, or g * gap_open where that is
/// less, as of g gaps. With a gap_extend of 0 nothing bounds a gap, and every pair costs its whole matrix. Alignments of
/// a and b bases need (a + b + 2) * (the largest of the five, by size) <= 2^29, so that no sum leaves 32 bits.
struct Scores {
    int match = 4;      ///< Added for equal bases; > 0.
    int mismatch = -6;  ///< Added for different bases; <= 0.
    int unknown = -6;   ///< Added where either base is not A, C, G or T (case does not matter); <= 0.
    int gap_open = 8;   ///< Cost of a gap's first base; >= 0.
    int gap_extend = 2; ///< Cost of each further base of a gap; >= 0.
};

/// What must be aligned.
enum class Span : std::uint8_t {
    local, ///< The best-scoring piece of both; what lies outside is clipped.
    query, ///< The whole query against the best-scoring piece of the target (semi-global).
};

/// One CIGAR element in htslib's packing: length << 4 | operation (0 M, 1 I, 2 D, 4 S).
using CigarElement = std::uint32_t;

/// Score 0 in local mode is one fixed empty result: all numbers 0, no CIGAR. Span::query has query_begin 0 and
/// query_end the query's length, and a score that may be negative.
struct Alignment {
    std::int32_t score = 0;
    std::int32_t query_begin = 0;  ///< 0-based, first aligned query base.
    std::int32_t query_end = 0;    ///< One past the last aligned query base.
    std::int32_t target_begin = 0; ///< 0-based, first aligned target base.
    std::int32_t target_end = 0;   ///< One past the last aligned target base.
    std::vector<CigarElement>
        cigar; ///< M, I, D of the aligned part only; the clips follow from query_begin and query_end.

    friend bool operator==(const Alignment&, const Alignment&) = default;
};

/// What is to be aligned with what.
struct SequencePair {
    std::string_view query, target;
};

/// The part of an Alignment that says how good it is and where it ends.
struct AlignmentEnd {
    std::int32_t score = 0;
    std::int32_t query_end = 0;
    std::int32_t target_end = 0;

    friend bool operator==(const AlignmentEnd&, const AlignmentEnd&) = default;
};

/// Aligns one pair: the one result that the tie rule of docs/tie_rule.md picks among those of the best score. Upper and
/// lower case are equal. An insertion may follow a deletion or a deletion an insertion; each pays its gap_open.
/// An empty query or target is legal. (query length + 32) * (target length + 32) may be at most 2^28. Takes at most 4
/// bytes for each cell of that matrix, and only if the pair is long or hardly alike: a read takes some kilobytes.
/// Throws Error(usage) on scores or lengths out of range. Thread safety: any thread. Cost: that of a batch of one.
[[nodiscard]] Alignment align(std::string_view query, std::string_view target, const Scores& scores, Span span);

/// Aligns every query to one target; out[i] belongs to queries[i]. Same results and limits as align(), faster: what
/// depends on the target alone is made once. A query that lies on the target exactly costs a look-up, one that differs
/// in a few places a narrow band of the matrix; those of which neither is proven are scored side by side. Throws
/// Error(usage) if out and queries differ in length, before anything is aligned.
void align(std::span<const std::string_view> queries, std::string_view target, const Scores& scores, Span span,
           std::span<Alignment> out);

/// Aligns every pair: out[i] is what align() gives for pairs[i]. In the same manner, so pairs of one target should
/// follow one another, and share its text. Memory is that of align() for the largest pair and of score(), however many
/// pairs there are.
void align(std::span<const SequencePair> pairs, const Scores& scores, Span span, std::span<Alignment> out);

/// Scores every pair, without its begin and CIGAR: out[i] is what align() gives for pairs[i]. Same limits; at most
/// 2^32 - 1 pairs. Reads that can be proven to have no gap cost less than 1 us; pairs of like lengths among the others
/// go side by side through the lanes of a register: of a few hundred or more each costs about 2 us for 150 x 400 bases
/// with AVX2, the fewer the more: less than eight cost what align() does; pairs of one target that follow one another
/// cost least. Takes at most 25 MiB, however many pairs there are; what align() takes, if there are pairs of more than
/// 16384 bases or too few to go side by side.
/// Throws Error(usage) if out and pairs differ in length, before anything is aligned.
void score(std::span<const SequencePair> pairs, const Scores& scores, Span span, std::span<AlignmentEnd> out);

/// "6M1D3M".
[[nodiscard]] std::string to_string(std::span<const CigarElement> cigar);

} // namespace spillway
