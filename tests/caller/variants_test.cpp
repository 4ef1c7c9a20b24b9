#include "variants.hpp"

#include "spillway/align.hpp"

#include <catch2/catch.hpp>

#include <random>
#include <string>

using namespace caller;

namespace {

/// The contig with the variant in it.
std::string spelled(const std::string& contig, const Variant& v) {
    std::string text = contig;
    text.replace(static_cast<std::size_t>(v.position), static_cast<std::size_t>(v.deleted), v.inserted);
    return text;
}

std::string random_bases(std::mt19937_64& random, std::size_t size, std::string_view alphabet) {
    std::string bases(size, 'A');
    for (char& base : bases) base = alphabet[random() % alphabet.size()];
    return bases;
}

spillway::hts::Read read_of(const std::string& bases, const std::vector<std::uint8_t>& qualities,
                            const std::vector<std::uint32_t>& elements, std::int64_t begin) {
    spillway::hts::Read read;
    read.begin = begin;
    read.bases = bases;
    read.qualities = qualities;
    read.cigar = elements;
    return read;
}

constexpr std::uint32_t M = 0, I = 1, D = 2, N = 3, S = 4;
constexpr std::uint32_t element(std::uint32_t length, std::uint32_t operation) {
    return length << 4 | operation;
}

} // namespace

TEST_CASE("a deletion moves to the left end of its repeat, and an insertion with its bases turned") {
    const std::string contig = "GCAAAAATTCTCTG";
    Variant deletion{6, 1, ""};
    left_align(deletion, Sequence(contig));
    CHECK(deletion == Variant{2, 1, ""});
    Variant insertion{13, 0, "CT"};
    left_align(insertion, Sequence(contig));
    CHECK(insertion == Variant{8, 0, "TC"});
    Variant substitution{4, 1, "G"};
    left_align(substitution, Sequence(contig));
    CHECK(substitution.position == 4);
}

TEST_CASE("left alignment spells the same sequence, stops at the same place from everywhere, and cannot go on") {
    std::mt19937_64 random(2);
    for (int i = 0; i < 3000; ++i) {
        const std::string contig = random_bases(random, 40, "AC");
        Variant variant{static_cast<std::int64_t>(5 + random() % 30), 0, ""};
        if (random() % 2 == 0) {
            variant.deleted = static_cast<std::int64_t>(1 + random() % 4);
        } else {
            variant.inserted = random_bases(random, 1 + random() % 4, "AC");
        }
        const std::string target = spelled(contig, variant);
        Variant moved = variant;
        left_align(moved, Sequence(contig));
        REQUIRE(spelled(contig, moved) == target);
        const std::int64_t freedom = right_freedom(moved.position, moved.deleted, moved.inserted, Sequence(contig));
        REQUIRE(moved.position <= variant.position);
        REQUIRE(moved.position + freedom >= variant.position);
        // No variant of the same size further left spells it.
        for (std::int64_t p = 0; p < moved.position; ++p) {
            const Variant other{p, moved.deleted, target.substr(static_cast<std::size_t>(p), moved.inserted.size())};
            REQUIRE(spelled(contig, other) != target);
        }
    }
}

TEST_CASE("a shift is bounded, so that calls can be written after a bounded wait") {
    const std::string contig(1000, 'A');
    Variant deletion{900, 1, ""};
    left_align(deletion, Sequence(contig));
    CHECK(deletion.position == 900 - max_shift);
}

TEST_CASE("a read's differences come from its CIGAR: bases, insertions, deletions, but not introns or clips") {
    //                          0         1         2         3
    //                          0123456789012345678901234567890123456789
    const std::string contig = "ACGTACGTTGCATGCAACGGTTACGATCAGTCCATGCAAT";
    const std::string bases = "GG"    // clipped
                              "TACCT" // 3..7, G>C at 6
                              "TTT"   // inserted before 8
                              "TGCA"  // 8..11
                              "GCA"   // 13..15 after one deleted
                              "GATC"; // 24..27 after an intron
    const std::vector<std::uint8_t> qualities(bases.size(), 30);
    const std::vector<std::uint32_t> elements = {element(2, S), element(5, M), element(3, I), element(4, M),
                                                 element(1, D), element(3, M), element(8, N), element(4, M)};
    std::vector<Variant> seen;
    const auto read = read_of(bases, qualities, elements, 3);
    for_each_difference(read, Sequence(contig), [&](const Difference& d) {
        CHECK(d.quality == 30);
        seen.push_back({d.position, d.deleted, std::string(d.inserted)});
    });
    CHECK(seen == std::vector<Variant>{{6, 1, "C"}, {8, 0, "TTT"}, {12, 1, ""}});
}

TEST_CASE("reference codes that stand for the read's base are no difference, and N is none on either side") {
    const std::string contig = "ACRNACGTAC", bases = "ACGTNTGTAC";
    const std::vector<std::uint8_t> qualities(bases.size(), 40);
    const std::vector<std::uint32_t> elements = {element(10, M)};
    std::vector<std::int64_t> positions;
    const auto read = read_of(bases, qualities, elements, 0);
    for_each_difference(read, Sequence(contig), [&](const Difference& d) { positions.push_back(d.position); });
    CHECK(positions == std::vector<std::int64_t>{5});
}

TEST_CASE("the variants of an alignment spell the haplotype") {
    std::mt19937_64 random(3);
    for (int i = 0; i < 500; ++i) {
        const std::string contig = random_bases(random, 120, "ACGT");
        std::string haplotype = contig;
        for (int k = 0; k < 2; ++k) {
            const std::size_t at = 30 + random() % 50;
            switch (random() % 3) {
            case 0:
                haplotype[at] = haplotype[at] == 'A' ? 'C' : 'A';
                break;
            case 1:
                haplotype.erase(at, 1 + random() % 3);
                break;
            default:
                haplotype.insert(at, random_bases(random, 1 + random() % 3, "ACGT"));
            }
        }
        const auto alignment = spillway::align(haplotype, contig, spillway::Scores{}, spillway::Span::query);
        if (alignment.target_begin != 0 || alignment.target_end != 120) continue;
        auto variants = variants_of(haplotype, alignment, 0, Sequence(contig));
        std::string text = contig;
        for (auto v = variants.rbegin(); v != variants.rend(); ++v) text = spelled(text, *v);
        // Moved apart variants may have met: then the order of two at one place is open, and nothing is claimed.
        bool met = false;
        for (std::size_t k = 1; k < variants.size(); ++k) met |= variants[k].position < variants[k - 1].end() + 12;
        if (!met) REQUIRE(text == haplotype);
    }
}
