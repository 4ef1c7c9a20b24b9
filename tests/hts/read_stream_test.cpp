#include "hts/expect_error.hpp"
#include "hts/read_collector.hpp"
#include "hts/sam_builder.hpp"

#include <catch2/catch.hpp>

using namespace spillway;
using namespace spillway::test;

namespace {

struct Fixture {
    TemporaryDirectory directory;
    Genome genome;
    SamBuilder sam{genome};

    Fixture() {
        genome.random("c1", 1000, 1);
        sam.read_group("rg1", "S1");
    }
    std::vector<SeenRead> reads(hts::ReadFilter filter = {}) {
        return read_all(sam.bam(directory, "in.bam"), {}, std::move(filter));
    }
    hts::ReadCounts counts(hts::ReadFilter filter = {}) {
        hts::ReadStream stream(hts::AlignmentFile::open(sam.bam(directory, "in.bam")), std::move(filter));
        drain(stream);
        return stream.counts();
    }
};

} // namespace

TEST_CASE("a read comes with its place, bases, qualities, flags and CIGAR") {
    Fixture f;
    f.sam.read({.name = "r1",
                .contig = "c1",
                .position = 11,
                .cigar = "2S3M1I2M2D4M",
                .bases = "TTACGAGGCCCC",
                .qualities = "!\"#$%&'()*+,",
                .flags = 0x1 | 0x10 | 0x40,
                .mapping_quality = 37,
                .mate_contig = "=",
                .mate_position = 101});
    const auto file = hts::AlignmentFile::open(f.sam.bam(f.directory, "in.bam"));
    hts::ReadStream stream(file, {});
    const auto block = stream.next();
    REQUIRE(block);
    REQUIRE(block->reads().size() == 1);
    const hts::Read& read = block->reads()[0];
    CHECK(read.contig == 0);
    CHECK(read.begin == 10);
    CHECK(read.end == 10 + 3 + 2 + 2 + 4);
    CHECK(read.flags == 0x51);
    CHECK(read.mapping_quality == 37);
    CHECK(read.mate_contig == 0);
    CHECK(read.mate_begin == 100);
    CHECK(std::string(read.bases.begin(), read.bases.end()) == "TTACGAGGCCCC");
    REQUIRE(read.qualities.size() == 12);
    CHECK(read.qualities[0] == 0);
    CHECK(read.qualities[11] == 11);
    CHECK(cigar_text(read.cigar) == "2S3M1I2M2D4M");
    // FNV-1a, 64 bits, of "r1", worked out apart from this code.
    CHECK(read.name_hash == 0x08dc8307b57be76cU);
    CHECK(block->bytes() >= sizeof(hts::Read) + 12 + 12 + 5 * 4);
    CHECK_FALSE(stream.next());
    CHECK_FALSE(stream.next());
}

TEST_CASE("= and X are M, and elements of no length, hard clips and padding are gone") {
    Fixture f;
    f.sam.read({.name = "a", .contig = "c1", .position = 1, .cigar = "10=1X9="});
    f.sam.read({.name = "b", .contig = "c1", .position = 2, .cigar = "0S10M0I10M0D"});
    f.sam.read({.name = "c", .contig = "c1", .position = 3, .cigar = "5H4S10M2I1P2I6M3H"});
    const auto reads = f.reads();
    REQUIRE(reads.size() == 3);
    CHECK(reads[0].cigar == "20M");
    CHECK(reads[1].cigar == "20M");
    CHECK(reads[2].cigar == "4S10M4I6M");
    CHECK(reads[2].bases.size() == 24);
}

TEST_CASE("an intron stays an intron and is no deletion") {
    Fixture f;
    f.sam.read({.name = "a", .contig = "c1", .position = 101, .cigar = "50M300N50M"});
    const auto reads = f.reads();
    REQUIRE(reads.size() == 1);
    CHECK(reads[0].cigar == "50M300N50M");
    CHECK(reads[0].last == 500);
}

TEST_CASE("a deletion at a read's end is evidence of nothing") {
    Fixture f;
    f.sam.read({.name = "a", .contig = "c1", .position = 101, .cigar = "5S3D20M4D2S"});
    f.sam.read({.name = "b", .contig = "c1", .position = 102, .cigar = "20M4D2I"});
    const auto reads = f.reads();
    REQUIRE(reads.size() == 2);
    CHECK(reads[0].cigar == "5S3N20M2S");
    CHECK(reads[0].position == 101);
    CHECK(reads[0].last == 123);
    CHECK(reads[1].cigar == "20M2I");
    CHECK(reads[1].last == 121);
}

TEST_CASE("what hangs over the contig's end is a soft clip") {
    Fixture f;
    f.sam.read({.name = "a", .contig = "c1", .position = 961, .cigar = "60M"});
    f.sam.read({.name = "b", .contig = "c1", .position = 971, .cigar = "20M5D10M2I10M3S"});
    f.sam.read({.name = "c", .contig = "c1", .position = 981, .cigar = "20M5I10M"});
    f.sam.read({.name = "d", .contig = "c1", .position = 991, .cigar = "5M20D10M"});
    const auto reads = f.reads();
    REQUIRE(reads.size() == 4);
    CHECK(reads[0].cigar == "40M20S");
    CHECK(reads[0].last == 1000);
    CHECK(reads[1].cigar == "20M5D5M20S");
    CHECK(reads[2].cigar == "20M5I10S");
    CHECK(reads[3].cigar == "5M10S");
    CHECK(reads[3].last == 995);
    CHECK(f.counts().clipped == 4);
}

TEST_CASE("missing qualities become the documented default and are counted") {
    Fixture f;
    f.sam.read({.name = "a", .contig = "c1", .position = 1, .cigar = "4M", .qualities = "*"});
    f.sam.read({.name = "b", .contig = "c1", .position = 2, .cigar = "4M"});
    CHECK(f.reads()[0].qualities == "5555"); // Q20
    CHECK(f.reads({.missing_quality = 7})[0].qualities == "((((");
    CHECK(f.counts().missing_quality == 1);
}

TEST_CASE("reads without bases or without an aligned base are left out and counted") {
    Fixture f;
    f.sam.read({.name = "star", .contig = "c1", .position = 1, .cigar = "50M", .bases = "*"});
    f.sam.read({.name = "clipped", .contig = "c1", .position = 2, .cigar = "50S"});
    f.sam.read({.name = "inserted", .contig = "c1", .position = 3, .cigar = "50I"});
    f.sam.read({.name = "skipped", .contig = "c1", .position = 4, .cigar = "25S10N25S"});
    f.sam.read({.name = "no cigar", .contig = "c1", .position = 5, .cigar = "*", .bases = "ACGT"});
    f.sam.read({.name = "good", .contig = "c1", .position = 6, .cigar = "50M"});
    const auto reads = f.reads();
    REQUIRE(reads.size() == 1);
    CHECK(reads[0].position == 6);
    const hts::ReadCounts counts = f.counts();
    CHECK(counts.decoded == 6);
    CHECK(counts.given == 1);
    CHECK(counts.without_bases == 1);
    CHECK(counts.filtered + counts.without_match == 4);
}

TEST_CASE("what is no base is N") {
    Fixture f;
    f.sam.read({.name = "a", .contig = "c1", .position = 1, .cigar = "17M", .bases = "=ACMGRSVTWYHKDBNa"});
    CHECK(f.reads()[0].bases == "NACNGNNNTNNNNNNNA");
}

TEST_CASE("flags, mapping quality and sample choose reads") {
    Fixture f;
    f.sam.read_group("rg2", "S2").read_group("rg3", "S1");
    const auto add = [&](const std::string& name, int flags, int mapping_quality, const std::string& group) {
        f.sam.read({.name = name,
                    .contig = "c1",
                    .position = 1,
                    .cigar = "10M",
                    .flags = flags,
                    .mapping_quality = mapping_quality,
                    .read_group = group});
    };
    add("good", 0, 60, "rg1");
    add("unmapped", 0x4, 60, "rg1");
    add("secondary", 0x100, 60, "rg1");
    add("qc", 0x200, 60, "rg1");
    add("duplicate", 0x400, 60, "rg1");
    add("supplementary", 0x800, 60, "rg1");
    add("low", 0, 3, "rg1");
    add("unknown", 0, 255, "rg1");
    add("other sample", 0, 60, "rg2");
    add("same sample", 0, 60, "rg3");
    add("no group", 0, 60, "");
    const auto names = [&](hts::ReadFilter filter) {
        std::vector<std::uint64_t> hashes;
        for (const SeenRead& read : f.reads(std::move(filter))) hashes.push_back(read.name_hash);
        return hashes;
    };
    const auto hashes = [](std::vector<std::string> wanted) {
        std::vector<std::uint64_t> result;
        for (const std::string& name : wanted) result.push_back(hts::hash_name(name));
        return result;
    };
    CHECK(names({}) == hashes({"good", "supplementary", "low", "unknown", "other sample", "same sample", "no group"}));
    CHECK(names({.exclude = 0xf04, .min_mapping_quality = 20, .sample = "S1"}) ==
          hashes({"good", "unknown", "same sample"}));
    CHECK(names({.sample = "S2"}) == hashes({"other sample"}));
    CHECK(error_of([&] { f.reads({.sample = "S3"}); }).code() == ErrorCode::usage);
    const hts::ReadCounts counts = f.counts();
    CHECK(counts.decoded == 11);
    CHECK(counts.given == 7);
    CHECK(counts.filtered == 4);
}

TEST_CASE("in a file of one sample, reads without a group are that sample's") {
    Fixture f;
    f.sam.read({.name = "a", .contig = "c1", .position = 1, .cigar = "10M", .read_group = ""});
    CHECK(f.reads({.sample = "S1"}).size() == 1);
}

TEST_CASE("blocks hold reads of one contig, in order, at most 256") {
    Fixture f;
    f.genome.random("c2", 1000, 2);
    for (int i = 0; i < 600; ++i)
        f.sam.read({.name = "a" + std::to_string(i), .contig = "c1", .position = 1 + i, .cigar = "10M"});
    for (int i = 0; i < 3; ++i)
        f.sam.read({.name = "b" + std::to_string(i), .contig = "c2", .position = 1 + i, .cigar = "10M"});
    hts::ReadStream stream(hts::AlignmentFile::open(f.sam.bam(f.directory, "in.bam")), {});
    std::vector<std::size_t> sizes;
    std::int64_t last = -1;
    while (const auto block = stream.next()) {
        sizes.push_back(block->reads().size());
        std::int64_t end = 0;
        for (const hts::Read& read : block->reads()) {
            CHECK(read.contig == block->contig());
            if (block->contig() == 0) CHECK(read.begin > last);
            last = read.begin;
            end = std::max(end, read.end);
        }
        CHECK(block->begin() == block->reads().front().begin);
        CHECK(block->end() == end);
    }
    CHECK(sizes == std::vector<std::size_t>{256, 256, 88, 3});
}

TEST_CASE("a span gives the reads that overlap it, in BAM and in CRAM, as often as it is sought") {
    Fixture f;
    f.genome.random("c2", 40'000, 2);
    f.sam.cover("c2", {.from = 1, .to = 40'000, .length = 100, .step = 7}, {{}});
    const std::string fasta = f.genome.write(f.directory);
    const std::string bam = f.sam.bam(f.directory, "in.bam");
    const std::string cram = f.sam.cram(f.directory, "in.cram", fasta);
    const auto all = read_all(bam);
    REQUIRE(all.size() > 5000);
    CHECK(read_all(cram, fasta) == all);
    for (const std::string& path : {bam, cram}) {
        hts::ReadStream stream(hts::AlignmentFile::open(path, fasta), {});
        for (const auto& [begin, end] : std::vector<std::pair<std::int64_t, std::int64_t>>{{20'000, 20'001},
                                                                                           {16'384, 32'768},
                                                                                           {0, 40'000},
                                                                                           {39'999, 50'000},
                                                                                           {-5, 1},
                                                                                           {100, 100},
                                                                                           {31'000, 31'500}}) {
            stream.seek({1, begin, end});
            std::vector<SeenRead> expected;
            for (const SeenRead& read : all)
                if (read.contig == 1 && read.position - 1 < end && read.last > begin && begin < end)
                    expected.push_back(read);
            CHECK(drain(stream) == expected);
        }
        stream.seek({0, 0, 1000});
        CHECK(drain(stream).empty());
    }
}

TEST_CASE("a seek drops what the span before it had left") {
    Fixture f;
    f.sam.cover("c1", {.from = 1, .to = 1000, .step = 1}, {{}});
    hts::ReadStream stream(hts::AlignmentFile::open(f.sam.bam(f.directory, "in.bam")), {});
    stream.seek({0, 0, 1000});
    REQUIRE(stream.next());
    stream.seek({0, 0, 1});
    const auto reads = drain(stream);
    REQUIRE(reads.size() == 1);
    CHECK(reads[0].position == 1);
}

TEST_CASE("a read that is out of order is named with its place") {
    Fixture f;
    f.sam.keep_order();
    f.sam.read({.name = "first", .contig = "c1", .position = 500, .cigar = "10M"});
    f.sam.read({.name = "early", .contig = "c1", .position = 300, .cigar = "10M"});
    const Error error = error_of([&] { f.reads(); });
    CHECK(error.code() == ErrorCode::input);
    CHECK(says(error, "in.bam"));
    CHECK(says(error, "read early at c1:300"));
    CHECK(says(error, "c1:500"));
    CHECK(says(error, "samtools sort"));
}

TEST_CASE("reads without a place at the end of a file are passed over") {
    Fixture f;
    f.sam.read({.name = "a", .contig = "c1", .position = 1, .cigar = "10M"});
    f.sam.read({.name = "u", .contig = "*", .position = 0, .cigar = "*", .bases = "ACGT", .flags = 4});
    CHECK(f.reads().size() == 1);
    CHECK(f.counts().decoded == 2);
}

TEST_CASE("each decoded read is counted for one reason") {
    Fixture f;
    f.sam.cover("c1", {.from = 1, .to = 1000}, {{}});
    f.sam.read({.name = "s", .contig = "c1", .position = 10, .cigar = "50M", .bases = "*"});
    f.sam.read({.name = "d", .contig = "c1", .position = 10, .cigar = "50M", .flags = 0x400});
    f.sam.read({.name = "c", .contig = "c1", .position = 10, .cigar = "50S"});
    const hts::ReadCounts c = f.counts();
    CHECK(c.decoded == c.given + c.filtered + c.without_bases + c.without_match);
    CHECK(c.filtered == 1);
    CHECK(c.without_bases == 1);
    CHECK(c.without_match == 1);
}
