#include "genotype.hpp"
#include "likelihoods.hpp"

#include <catch2/catch.hpp>

#include <random>

using namespace caller;

namespace {

const std::string reference = "ACGTTGCATCGGATTACAGCTTGCAACGTCCATGAAAAAAAACTGACCATGTTCGAGGTCAGTACGATCCATGCTAGTC";

/// A candidate with the reference and haplotypes of one event each.
Candidate with_events(std::vector<Variant> events) {
    Candidate candidate;
    candidate.contig = 0;
    candidate.contig_size = static_cast<std::int64_t>(reference.size());
    candidate.reference = reference;
    candidate.begin = 30;
    candidate.haplotypes.push_back({reference, {}});
    for (std::uint16_t e = 0; e < events.size(); ++e) {
        std::string bases = reference;
        bases.replace(static_cast<std::size_t>(events[e].position), static_cast<std::size_t>(events[e].deleted),
                      events[e].inserted);
        candidate.haplotypes.push_back({bases, {e}});
    }
    candidate.events = std::move(events);
    return candidate;
}

void add_read(Candidate& candidate, const std::string& bases, std::int64_t begin, std::uint64_t name,
              std::uint8_t quality = 35, std::uint8_t mapping_quality = 60) {
    candidate.queries.push_back({.name_hash = name,
                                 .begin = begin,
                                 .end = begin + static_cast<std::int64_t>(bases.size()),
                                 .first = static_cast<std::uint32_t>(candidate.read_bases.size()),
                                 .size = static_cast<std::uint32_t>(bases.size()),
                                 .mapping_quality = mapping_quality,
                                 .cut_left = false,
                                 .cut_right = false});
    candidate.read_bases += bases;
    candidate.read_qualities.insert(candidate.read_qualities.end(), bases.size(), quality);
}

std::vector<Call> called(Candidate& candidate) {
    place(candidate);
    Candidate* const all[] = {&candidate};
    align_on_cpu(all);
    settle(candidate);
    return genotype(candidate);
}

} // namespace

TEST_CASE("a gap costs less the longer the repeat it is in, and only where it keeps the repeat's unit") {
    const std::string bases = "GATTACAGTCAAAAAAAAAAAAGTCTGTCACACACACACACACACGTT";
    const Phred in_run = gap_cost(bases, 10, 1, {}), elsewhere = gap_cost(bases, 4, 1, {});
    CHECK(in_run < elsewhere);
    CHECK(gap_cost(bases, 10, 0, "A") == in_run);
    CHECK(gap_cost(bases, 10, 0, "G") == elsewhere);
    CHECK(gap_cost(bases, 29, 2, {}) < gap_cost(bases, 29, 1, {}));
    CHECK(elsewhere == gap_cost(bases, 47, 0, "C"));
}

TEST_CASE("a read's cost of its own haplotype is that of correct bases, of another what the difference costs") {
    auto candidate = with_events({{40, 1, "G"}});
    REQUIRE(candidate.haplotypes[1].bases[40] == 'G');
    add_read(candidate, candidate.haplotypes[1].bases.substr(20, 50), 20, 1);
    (void)called(candidate);
    const auto own = candidate.cost(0, 1), other = candidate.cost(0, 0);
    CHECK(own < from_phred(1));
    CHECK(to_phred(other - own) == 40); // Q35, and a third of it for the one wrong base
}

TEST_CASE("reads of both haplotypes give a heterozygous call, of one a homozygous one, of the reference none") {
    for (const int alternate : {0, 10, 20}) {
        auto candidate = with_events({{40, 1, "G"}});
        for (int i = 0; i < 20; ++i) {
            const auto& haplotype = candidate.haplotypes[i < alternate ? 1 : 0].bases;
            add_read(candidate, haplotype.substr(10 + static_cast<std::size_t>(i), 45), 10 + i,
                     100 + static_cast<std::uint64_t>(i));
        }
        const auto calls = called(candidate);
        if (alternate == 0) {
            CHECK(calls.empty());
            continue;
        }
        REQUIRE(calls.size() == 1);
        CHECK(calls[0].position == 40);
        CHECK(calls[0].reference == "A");
        CHECK(calls[0].alternates == std::vector<std::string>{"G"});
        CHECK(calls[0].genotype == std::array<std::int32_t, 2>{alternate == 20 ? 1 : 0, 1});
        CHECK(calls[0].allele_depth == std::vector<std::int32_t>{20 - alternate, alternate});
        CHECK(calls[0].depth == 20);
        CHECK(calls[0].quality > from_phred(100));
        CHECK(calls[0].likelihoods.size() == 3);
        CHECK(calls[0].likelihoods[alternate == 20 ? 2 : 1] == 0);
    }
}

TEST_CASE("PL of a heterozygous site is what the formula gives") {
    auto candidate = with_events({{40, 1, "G"}});
    for (int i = 0; i < 8; ++i)
        add_read(candidate, candidate.haplotypes[static_cast<std::size_t>(i % 2)].bases.substr(20, 50), 20,
                 100 + static_cast<std::uint64_t>(i), 20);
    const auto calls = called(candidate);
    REQUIRE(calls.size() == 1);
    // Each of 4 reads against a homozygous genotype: 20 + 4.77 more; each of 8 for a heterozygous one: about 3.01 less
    // what the other haplotype adds.
    const int expected = static_cast<int>(4 * (20 + 4.77 - 0.044) - 8 * (3.01 - 0.0144) + 0.5);
    CHECK(std::abs(calls[0].likelihoods[0] - expected) <= 1);
    CHECK(calls[0].likelihoods[1] == 0);
    CHECK(calls[0].likelihoods[2] == calls[0].likelihoods[0]);
}

TEST_CASE("two different alleles at one place are one record with both") {
    // The A8 run at 34: one haplotype has lost one A, the other two.
    auto candidate = with_events({{34, 1, ""}, {34, 2, ""}});
    for (int i = 0; i < 24; ++i) {
        add_read(candidate, candidate.haplotypes[static_cast<std::size_t>(1 + i % 2)].bases.substr(5, 60), 5,
                 100 + static_cast<std::uint64_t>(i));
    }
    const auto calls = called(candidate);
    REQUIRE(calls.size() == 1);
    CHECK(calls[0].position == 33);
    CHECK(calls[0].reference == "GAA");
    CHECK(calls[0].alternates == std::vector<std::string>{"GA", "G"});
    CHECK(calls[0].genotype == std::array<std::int32_t, 2>{1, 2});
    CHECK(calls[0].likelihoods.size() == 6);
}

TEST_CASE("mates that overlap count once, and say no more than one good read") {
    auto once = with_events({{40, 1, "G"}}), twice = with_events({{40, 1, "G"}});
    for (std::uint64_t i = 0; i < 12; ++i) {
        const std::string bases = once.haplotypes[i % 2].bases.substr(20, 50);
        add_read(once, bases, 20, i);
        add_read(twice, bases, 20, i);
        add_read(twice, bases, 20, i);
    }
    const auto a = called(once), b = called(twice);
    REQUIRE(a.size() == 1);
    REQUIRE(b.size() == 1);
    CHECK(b[0].depth == 12);
    CHECK(b[0].allele_depth == std::vector<std::int32_t>{6, 6});
    CHECK(b[0].likelihoods[0] <= 6 * 50);
}

TEST_CASE("reads that may belong elsewhere hardly count") {
    auto candidate = with_events({{40, 1, "G"}});
    for (std::uint64_t i = 0; i < 20; ++i)
        add_read(candidate, candidate.haplotypes[static_cast<std::size_t>(i % 2)].bases.substr(20, 50), 20, i, 35, 1);
    for (const auto& call : called(candidate)) CHECK(call.quality < from_phred(10));
}
