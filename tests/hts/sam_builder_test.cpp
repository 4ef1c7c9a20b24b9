#include "hts/read_collector.hpp"
#include "hts/sam_builder.hpp"

#include <catch2/catch.hpp>

using namespace spillway;
using namespace spillway::test;

TEST_CASE("reads along a haplotype have the CIGAR that its variants give") {
    TemporaryDirectory directory;
    Genome genome;
    genome.add("c1", "ACGTACGTACGGGTTTACGATCGATCAG");
    SamBuilder sam(genome);
    sam.read_group("rg1", "S1");
    // 5 A>C, 10 C>CTT, 17 ACG>A
    sam.cover("c1", {.from = 1, .to = 28, .length = 10, .step = 3},
              {{{"c1", 5, "A", "C"}, {"c1", 10, "C", "CTT"}, {"c1", 17, "ACG", "A"}}});
    const auto reads = read_all(sam.bam(directory, "in.bam"));
    REQUIRE(reads.size() == 7);
    CHECK(reads[0].bases == "ACGTCCGTAC");
    CHECK(reads[0].cigar == "10M");
    CHECK(reads[1].position == 4);
    CHECK(reads[1].bases == "TCCGTACTTG");
    CHECK(reads[1].cigar == "7M2I1M");
    CHECK(reads[4].position == 11);
    CHECK(reads[4].bases == "GGGTTTAATC");
    CHECK(reads[4].cigar == "7M2D3M");
}

TEST_CASE("a random genome repeats no 12-mer and is always the same") {
    Genome genome;
    genome.random("c1", 5000, 3);
    const std::string& bases = genome.bases("c1");
    REQUIRE(bases.size() == 5000);
    for (std::size_t i = 0; i + 12 <= bases.size(); i += 97)
        CHECK(bases.find(bases.substr(i, 12), i + 1) == std::string::npos);
    CHECK(genome.slice("c1", 1, 12) == Genome().random("x", 12, 3).bases("x"));
    CHECK(genome.other("c1", 5) != genome.at("c1", 5));
}
