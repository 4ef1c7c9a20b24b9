#include "hts/expect_error.hpp"
#include "hts/handles.hpp"
#include "hts/sam_builder.hpp"
#include "spillway/hts.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <htslib/bgzf.h>

using namespace spillway;
using namespace spillway::test;

TEST_CASE("a contig is upper case with its IUPAC codes, and what is no code is N") {
    TemporaryDirectory directory;
    Genome genome;
    genome.add("c1", "acgtnACGTNrykmswbdhvRYKMu*-x").add("empty", "").add("c2", "GATTACA");
    const hts::Reference reference(genome.write(directory));
    CHECK(*reference.contig("c1") == "ACGTNACGTNRYKMSWBDHVRYKMTNNN");
    CHECK(*reference.contig("c2") == "GATTACA");
    CHECK(reference.length("c1") == 28);
    // htslib's index lists no contig without bases.
    CHECK_FALSE(reference.length("empty"));
    CHECK_FALSE(reference.length("c3"));
    CHECK(error_of([&] { static_cast<void>(reference.contig("c3")); }).code() == ErrorCode::input);
}

TEST_CASE("contigs in use are shared, and unused ones are let go") {
    TemporaryDirectory directory;
    Genome genome;
    for (const char* name : {"a", "b", "c", "d"}) genome.random(name, 1000, 1);
    const hts::Reference reference(genome.write(directory));
    const auto first = reference.contig("a");
    for (const char* name : {"b", "c", "d"}) static_cast<void>(reference.contig(name));
    CHECK(reference.contig("a") == first);
    const std::size_t held = reference.bytes();
    CHECK(held >= 3000);
    CHECK(held < 4000);
}

TEST_CASE("a bgzipped FASTA reads as the plain one") {
    TemporaryDirectory directory;
    Genome genome;
    genome.random("c1", 70'000, 1).random("c2", 300, 2);
    const std::string plain = read_file(genome.write(directory));
    const std::string path = directory.file("ref.fa.gz");
    {
        BGZF* const out = bgzf_open(path.c_str(), "w");
        REQUIRE(bgzf_write(out, plain.data(), plain.size()) == static_cast<ssize_t>(plain.size()));
        REQUIRE(bgzf_close(out) == 0);
    }
    REQUIRE(fai_build(path.c_str()) == 0);
    const hts::Reference reference(path);
    CHECK(*reference.contig("c1") == genome.bases("c1"));
    CHECK(*reference.contig("c2") == genome.bases("c2"));
}

TEST_CASE("a FASTA without an index is refused with the command that makes one, and none is made") {
    TemporaryDirectory directory;
    const std::string path = directory.write("ref.fa", ">c1\nACGT\n");
    const Error error = error_of([&] { hts::Reference reference(path); });
    CHECK(error.code() == ErrorCode::input);
    CHECK(says(error, "samtools faidx " + path));
    CHECK_FALSE(std::filesystem::exists(path + ".fai"));
    CHECK(error_of([&] { hts::Reference reference(directory.file("none.fa")); }).code() == ErrorCode::input);
}

TEST_CASE("an index of another file is an input error") {
    TemporaryDirectory directory;
    const std::string path = directory.write("ref.fa", ">c1\nACGT\n");
    directory.write("ref.fa.fai", "c1\t4000\t4\t60\t61\n");
    const hts::Reference reference(path);
    const Error error = error_of([&] { static_cast<void>(reference.contig("c1")); });
    CHECK(error.code() == ErrorCode::input);
    CHECK(says(error, "samtools faidx"));
}

TEST_CASE("contigs that the FASTA lacks are listed, and a length that differs is an error") {
    TemporaryDirectory directory;
    Genome genome;
    genome.random("c1", 1000, 1).random("c2", 500, 2).random("c3", 100, 3);
    const auto file = hts::AlignmentFile::open(SamBuilder(genome).bam(directory, "in.bam"));
    Genome fewer;
    fewer.add("c2", genome.bases("c2"));
    CHECK(hts::check_contigs(*file, hts::Reference(fewer.write(directory, "fewer.fa"))) ==
          std::vector<std::int32_t>{0, 2});
    Genome other;
    other.add("c2", genome.slice("c2", 1, 400));
    const Error error =
        error_of([&] { return hts::check_contigs(*file, hts::Reference(other.write(directory, "other.fa"))); });
    CHECK(error.code() == ErrorCode::input);
    CHECK(says(error, "c2 has length 500 but 400"));
}

TEST_CASE("REF has the first base that an IUPAC code stands for") {
    // VCF specification 4.3, section 1.6.1, REF: "should be reduced to a concrete base by using the one that is first
    // alphabetically".
    const std::string codes = "ACGTNRYSWKMBDHV", expected = "ACGTNACCAGACAAA";
    for (std::size_t i = 0; i < codes.size(); ++i) {
        CHECK(hts::vcf_base(codes[i]) == expected[i]);
        CHECK(hts::vcf_base(static_cast<char>(codes[i] - 'A' + 'a')) == expected[i]);
    }
    CHECK(hts::vcf_base('*') == 'N');
}

TEST_CASE("a base agrees with the codes that stand for it") {
    CHECK(hts::compatible('R', 'A'));
    CHECK(hts::compatible('R', 'G'));
    CHECK_FALSE(hts::compatible('R', 'C'));
    CHECK(hts::compatible('N', 'T'));
    CHECK(hts::compatible('a', 'A'));
    CHECK_FALSE(hts::compatible('A', 'C'));
    CHECK_FALSE(hts::compatible('A', 'N'));
    CHECK_FALSE(hts::compatible('*', 'A'));
}

TEST_CASE("MD5 is that of RFC 1321") {
    CHECK(hts::md5("") == "d41d8cd98f00b204e9800998ecf8427e");
    CHECK(hts::md5("abc") == "900150983cd24fb0d6963f7d28e17f72");
}
