// Odd but legal inputs, and bad ones: what the caller makes of each, from built files to the VCF.
#include "called.hpp"

#include "hts/expect_error.hpp"
#include "hts/sam_builder.hpp"

#include <catch2/catch.hpp>

#include <functional>

using namespace spillway::test;
using spillway::ErrorCode;

namespace {

/// One contig of 1000 bases with a heterozygous SNV at 500, and what a test does to it before it is called.
struct Control {
    TemporaryDirectory directory;
    Genome genome;
    std::string snv; ///< As texts() has it.
    std::vector<Variant> variants;

    explicit Control(const std::function<void(std::string&)>& change = {}) {
        Genome plain;
        plain.random("c1", 1000, 11);
        std::string bases = plain.bases("c1");
        if (change) change(bases);
        genome.add("c1", bases);
        const std::string reference(1, genome.at("c1", 500)), alternate(1, genome.other("c1", 500));
        variants = {{"c1", 500, reference, alternate}};
        snv = "c1:500 " + reference + ">" + alternate + " 0/1";
    }

    [[nodiscard]] SamBuilder reads(const std::string& read_group = "rg1") const {
        SamBuilder sam(genome);
        if (!read_group.empty()) sam.read_group(read_group, "S1");
        sam.cover("c1", {.from = 300, .to = 700, .read_group = read_group}, {{}, variants});
        return sam;
    }
    [[nodiscard]] Called call(const SamBuilder& sam, caller::CallerOptions options = {}) const {
        options.alignments = sam.bam(directory, "in.bam");
        options.reference = genome.write(directory);
        return spillway::test::call(directory, options);
    }
    void expect_snv(const SamBuilder& sam) const { CHECK(texts(call(sam).records) == std::vector{snv}); }
};

} // namespace

TEST_CASE("a heterozygous SNV is called with depths and likelihoods, under a header that users expect") {
    const Control control;
    const auto called = control.call(control.reads());
    REQUIRE(texts(called.records) == std::vector{control.snv});
    const auto& record = called.records[0];
    CHECK(record.filter == "PASS");
    CHECK(record.quality > 100);
    CHECK(record.format.at("DP") == "66");
    CHECK(record.format.at("AD") == "33,33");
    CHECK(record.format.at("GQ") == "99");
    CHECK(called.sample == "S1");
    CHECK(called.warnings.empty());
    for (const char* line :
         {"##fileformat=VCFv4", "##source=spillway-call", "##contig=<ID=c1,length=1000", "##FORMAT=<ID=PL,Number=G"}) {
        CHECK(called.text.find(line) != std::string::npos);
    }
    CHECK(called.text.find(control.directory.path().string()) == std::string::npos);
}

TEST_CASE("missing base qualities count as poor ones") {
    const Control control;
    SamBuilder sam(control.genome);
    sam.read_group("rg1", "S1");
    for (int i = 0; i < 20; ++i) {
        const auto& v = control.variants[0];
        ReadSpec read{.name = "r" + std::to_string(i), .contig = "c1", .position = 420 + i, .qualities = "*"};
        if (i % 2 == 0) read.snvs = {{v.position, v.alternate[0]}};
        sam.read(read);
    }
    control.expect_snv(sam);
}

TEST_CASE("reads without bases, and reads without an aligned base, are left out and the call kept") {
    const Control control;
    auto sam = control.reads();
    for (int i = 0; i < 30; ++i) {
        sam.read({.name = "star" + std::to_string(i), .contig = "c1", .position = 450, .bases = "*", .qualities = "*"});
        sam.read({.name = "clip" + std::to_string(i), .contig = "c1", .position = 450, .cigar = "100S"});
    }
    control.expect_snv(sam);
}

TEST_CASE("zero-length operations and = and X are read as what they are") {
    const Control control;
    SamBuilder sam(control.genome);
    sam.read_group("rg1", "S1");
    for (int i = 0; i < 20; ++i) {
        const bool alternate = i % 2 == 0;
        ReadSpec read{.name = "r" + std::to_string(i), .contig = "c1", .position = 450, .cigar = "0S50M0I0D50M"};
        if (i % 3 == 0) read.cigar = alternate ? "50=1X49=" : "100=";
        if (alternate) read.snvs = {{500, control.variants[0].alternate[0]}};
        sam.read(read);
    }
    control.expect_snv(sam);
}

TEST_CASE("an intron is no deletion, and reads that skip a site say nothing about it") {
    Genome genome;
    genome.random("c1", 200'000, 12);
    TemporaryDirectory directory;
    SamBuilder sam(genome);
    sam.read_group("rg1", "S1");
    for (int i = 0; i < 20; ++i) {
        ReadSpec read{.name = "r" + std::to_string(i), .contig = "c1", .position = 80, .cigar = "50M150000N50M"};
        if (i % 2 == 0) read.snvs = {{100, genome.other("c1", 100)}};
        sam.read(read);
    }
    const std::string inside(1, genome.at("c1", 90'000)), other(1, genome.other("c1", 90'000));
    sam.cover("c1", {.from = 89'800, .to = 90'200}, {{}, {{"c1", 90'000, inside, other}}});
    const auto called =
        call(directory, {.alignments = sam.bam(directory, "in.bam"), .reference = genome.write(directory)});
    REQUIRE(called.records.size() == 2);
    CHECK(called.records[0].position == 100);
    CHECK(called.records[0].format.at("AD") == "10,10");
    CHECK(called.records[1].position == 90'000);
    CHECK(called.records[1].format.at("DP") == "66");
}

TEST_CASE("reads that hang over the contig's end are cut there, and variants at both ends are called") {
    Genome genome;
    genome.random("c1", 60, 13);
    TemporaryDirectory directory;
    SamBuilder sam(genome);
    sam.read_group("rg1", "S1");
    for (int i = 0; i < 20; ++i) {
        ReadSpec read{.name = "r" + std::to_string(i), .contig = "c1", .position = 1, .cigar = "60M"};
        if (i % 2 == 0) read.snvs = {{1, genome.other("c1", 1)}, {60, genome.other("c1", 60)}};
        sam.read(read);
    }
    sam.read({.name = "over",
              .contig = "c1",
              .position = 31,
              .cigar = "60M",
              .bases = genome.slice("c1", 31, 60) + std::string(30, 'A')});
    const auto called =
        call(directory, {.alignments = sam.bam(directory, "in.bam"), .reference = genome.write(directory)});
    REQUIRE(called.records.size() == 2);
    CHECK(called.records[0].position == 1);
    CHECK(called.records[1].position == 60);
}

TEST_CASE("REF is in upper case and never ambiguous; a base that the reference's code allows is no variant") {
    const Control lower([](std::string& bases) {
        for (char& base : bases) base = static_cast<char>(base + ('a' - 'A'));
    });
    const Control upper;
    TemporaryDirectory directory;
    auto sam = upper.reads();
    const auto called =
        call(directory, {.alignments = sam.bam(directory, "in.bam"), .reference = lower.genome.write(directory)});
    CHECK(texts(called.records) == std::vector{upper.snv});

    Genome coded;
    std::string bases = upper.genome.bases("c1");
    const char reference = bases[499], alternate = upper.variants[0].alternate[0];
    const auto code_of = [](char a, char b) {
        const std::string pair = {std::min(a, b), std::max(a, b)};
        return pair == "AC"   ? 'M'
               : pair == "AG" ? 'R'
               : pair == "AT" ? 'W'
               : pair == "CG" ? 'S'
               : pair == "CT" ? 'Y'
                              : 'K';
    };
    bases[499] = code_of(reference, alternate);
    coded.add("c1", bases);
    TemporaryDirectory other;
    CHECK(call(other, {.alignments = sam.bam(other, "in.bam"), .reference = coded.write(other)}).records.empty());

    // A code that stands for neither of them: a variant, whose REF is the code's first base.
    std::string both = "ACGT";
    std::erase_if(both, [&](char c) { return c == reference || c == alternate; });
    bases[499] = code_of(both[0], both[1]);
    Genome apart;
    apart.add("c1", bases);
    TemporaryDirectory third;
    const auto odd = call(third, {.alignments = sam.bam(third, "in.bam"), .reference = apart.write(third)});
    REQUIRE(odd.records.size() == 1);
    CHECK(odd.records[0].reference == std::string(1, both[0]));
    CHECK(odd.records[0].format.at("GT") == "1/2");

    bases.replace(450, 100, std::string(100, 'N'));
    Genome unknown;
    unknown.add("c1", bases);
    TemporaryDirectory fourth;
    CHECK(call(fourth, {.alignments = sam.bam(fourth, "in.bam"), .reference = unknown.write(fourth)}).records.empty());
}

TEST_CASE(
    "a contig that the FASTA lacks is an error where its reads are wanted, a warning by option, nothing otherwise") {
    Genome both, one;
    both.random("c1", 1000, 14).random("decoy", 500, 15);
    one.add("c1", both.bases("c1"));
    SamBuilder sam(both);
    sam.read_group("rg1", "S1");
    const std::string reference(1, both.at("c1", 500)), alternate(1, both.other("c1", 500));
    sam.cover("c1", {.from = 300, .to = 700}, {{}, {{"c1", 500, reference, alternate}}});
    sam.cover("decoy", {.from = 100, .to = 300}, {{}});
    TemporaryDirectory directory;
    caller::CallerOptions options{.alignments = sam.bam(directory, "in.bam"), .reference = one.write(directory)};
    const auto error = error_of([&] { (void)call(directory, options); });
    CHECK(error.code() == ErrorCode::input);
    CHECK(says(error, "decoy"));
    options.regions = {"c1"};
    CHECK(call(directory, options).records.size() == 1);
    options.regions.clear();
    options.skip_missing_contigs = true;
    const auto skipped = call(directory, options);
    CHECK(skipped.records.size() == 1);
    CHECK(skipped.warnings.size() == 1);
}

TEST_CASE("contigs after empty ones are called") {
    Genome genome;
    genome.random("c1", 300, 16).random("c2", 300, 17).random("c3", 1000, 18);
    SamBuilder sam(genome);
    sam.read_group("rg1", "S1");
    const std::string reference(1, genome.at("c3", 500)), alternate(1, genome.other("c3", 500));
    sam.cover("c3", {.from = 300, .to = 700}, {{}, {{"c3", 500, reference, alternate}}});
    TemporaryDirectory directory;
    const auto called =
        call(directory, {.alignments = sam.bam(directory, "in.bam"), .reference = genome.write(directory)});
    REQUIRE(called.records.size() == 1);
    CHECK(called.records[0].contig == "c3");
}

TEST_CASE("a sample without a name is called by the file's or the option's, with one warning; two need a choice") {
    const Control control;
    const auto unnamed = control.call(control.reads(""));
    CHECK(texts(unnamed.records) == std::vector{control.snv});
    CHECK(unnamed.sample == "in");
    CHECK(unnamed.warnings.size() == 1);
    const auto named = control.call(control.reads(""), {.sample_name = "NA1"});
    CHECK(named.sample == "NA1");
    CHECK(named.warnings.empty());

    auto groups = control.reads();
    groups.read_group("rg2", "S1");
    groups.cover("c1", {.from = 300, .to = 700, .read_group = "rg2"}, {{}});
    CHECK(control.call(groups).sample == "S1");

    SamBuilder two(control.genome);
    two.read_group("rg1", "S1").read_group("rg2", "S2");
    two.cover("c1", {.from = 300, .to = 700}, {{}, control.variants});
    two.cover("c1", {.from = 300, .to = 700, .read_group = "rg2"}, {{}});
    const auto error = error_of([&] { (void)control.call(two); });
    CHECK(error.code() == ErrorCode::usage);
    CHECK(says(error, "S1, S2"));
    CHECK(texts(control.call(two, {.sample_name = "S1"}).records) == std::vector{control.snv});
    CHECK(control.call(two, {.sample_name = "S2"}).records.empty());
}

TEST_CASE("duplicates, secondary, failed and unmapped reads are no evidence") {
    const Control control;
    SamBuilder sam(control.genome);
    sam.read_group("rg1", "S1");
    sam.cover("c1", {.from = 300, .to = 700}, {{}});
    int i = 0;
    for (const int flags : {0x400, 0x100, 0x200, 0x4}) {
        for (int k = 0; k < 10; ++k, ++i) {
            sam.read({.name = "x" + std::to_string(i),
                      .contig = "c1",
                      .position = 450,
                      .snvs = {{500, control.variants[0].alternate[0]}},
                      .flags = flags});
        }
    }
    CHECK(control.call(sam).records.empty());
}

TEST_CASE("mates that both cover the base are one template in DP and AD") {
    const Control control;
    SamBuilder sam(control.genome);
    sam.read_group("rg1", "S1");
    for (int i = 0; i < 10; ++i) {
        for (const int mate : {99, 147}) {
            ReadSpec read{.name = "m" + std::to_string(i),
                          .contig = "c1",
                          .position = mate == 99 ? 440 : 460,
                          .flags = mate,
                          .mate_contig = "=",
                          .mate_position = mate == 99 ? 460 : 440};
            if (i < 3) read.snvs = {{500, control.variants[0].alternate[0]}};
            sam.read(read);
        }
    }
    const auto called = control.call(sam);
    REQUIRE(texts(called.records) == std::vector{control.snv});
    CHECK(called.records[0].format.at("DP") == "10");
    CHECK(called.records[0].format.at("AD") == "7,3");
}

TEST_CASE("one in a hundred of very many templates is reported as a low fraction, counted over all of them") {
    const Control control;
    SamBuilder sam(control.genome);
    sam.read_group("rg1", "S1");
    for (int i = 0; i < 5000; ++i) {
        ReadSpec read{.name = "d" + std::to_string(i), .contig = "c1", .position = 440};
        if (i % 100 == 0) read.snvs = {{500, control.variants[0].alternate[0]}};
        sam.read(read);
    }
    const auto called = control.call(sam);
    REQUIRE(called.records.size() == 1);
    CHECK(called.records[0].position == 500);
    CHECK(called.records[0].filter == "LowFraction");
    CHECK(called.records[0].format.at("GT") == "0/0");
    CHECK(called.records[0].format.at("AD") == "4950,50");
}

TEST_CASE("more reads than a window takes are chosen by name, and the share of an allele is kept") {
    const Control control;
    SamBuilder sam(control.genome);
    sam.read_group("rg1", "S1");
    for (int i = 0; i < 36'000; ++i) {
        ReadSpec read{.name = "d" + std::to_string(i), .contig = "c1", .position = 480, .cigar = "40M"};
        if (i % 4 == 0) read.snvs = {{500, control.variants[0].alternate[0]}};
        sam.read(read);
    }
    const auto called = control.call(sam);
    REQUIRE(called.records.size() == 1);
    const int depth = std::stoi(called.records[0].format.at("DP"));
    CHECK(depth <= 32'768);
    CHECK(depth > 32'000);
    const auto& ad = called.records[0].format.at("AD");
    CHECK(std::stod(ad.substr(ad.find(',') + 1)) / depth == Approx(0.25).margin(0.01));
}

TEST_CASE("a deletion at the right end of a run of A is called at the run's left") {
    Genome genome;
    Genome plain;
    plain.random("c1", 1000, 19);
    std::string bases = plain.bases("c1");
    bases[298] = 'G';
    bases.replace(299, 14, std::string(14, 'A'));
    bases[313] = 'C';
    genome.add("c1", bases);
    SamBuilder sam(genome);
    sam.read_group("rg1", "S1");
    for (int i = 0; i < 24; ++i) {
        sam.read({.name = "p" + std::to_string(i),
                  .contig = "c1",
                  .position = 270 - i / 4,
                  .cigar = i % 2 ? std::to_string(43 + i / 4) + "M1D50M" : "95M"});
    }
    TemporaryDirectory directory;
    const auto called =
        call(directory, {.alignments = sam.bam(directory, "in.bam"), .reference = genome.write(directory)});
    CHECK(texts(called.records) == std::vector<std::string>{"c1:299 GA>G 0/1"});
}

TEST_CASE("a large insertion is called from reads that end in soft clips at it") {
    const Control control;
    const auto& g = control.genome;
    Genome other;
    other.random("x", 45, 77);
    const std::string inserted = other.bases("x"), base = g.slice("c1", 500, 500);
    const std::string haplotype = g.slice("c1", 301, 500) + inserted + g.slice("c1", 501, 700);
    SamBuilder sam(g);
    sam.read_group("rg1", "S1");
    sam.cover("c1", {.from = 300, .to = 700}, {{}});
    for (int i = 0; i < 40;
         ++i) { // What bwa makes of 100 bases at each place: the longer side aligned, the other clipped.
        const std::int64_t begin = 301 + 60 + 4 * i;
        const std::string bases = haplotype.substr(static_cast<std::size_t>(begin - 301), 100);
        const std::int64_t left = 500 - begin + 1, right = begin + 99 - 500 - 45;
        ReadSpec read{.name = "i" + std::to_string(i), .contig = "c1", .bases = bases};
        if (left >= right && left > 0 && left < 100) {
            read.position = begin;
            read.cigar = std::to_string(left) + "M" + std::to_string(100 - left) + "S";
        } else if (left < 100 && right > 0) {
            read.position = std::max<std::int64_t>(501, begin - 45);
            const auto aligned = std::min<std::int64_t>(100, right);
            read.cigar = aligned == 100 ? "100M" : std::to_string(100 - aligned) + "S" + std::to_string(aligned) + "M";
        } else {
            continue;
        }
        sam.read(read);
    }
    const auto called = control.call(sam);
    REQUIRE(called.records.size() == 1);
    CHECK(called.records[0].format.at("GT") == "0/1");
    // Left-aligned, so its spelling may be turned; what it spells is the insertion.
    const auto& r = called.records[0];
    const std::string before = g.slice("c1", 1, r.position - 1);
    const std::string after = g.slice("c1", r.position + static_cast<std::int64_t>(r.reference.size()), 1000);
    CHECK(before + r.alternates + after == g.slice("c1", 1, 500) + inserted + g.slice("c1", 501, 1000));
}

TEST_CASE("neighbouring SNVs are two records, in cis and in trans") {
    const Control control;
    const auto& g = control.genome;
    SamBuilder sam(g);
    sam.read_group("rg1", "S1");
    for (int i = 0; i < 24; ++i) {
        ReadSpec read{.name = "v" + std::to_string(i), .contig = "c1", .position = 420 + i, .cigar = "220M"};
        if (i % 2 == 0) {
            read.snvs = {{500, g.other("c1", 500)}, {501, g.other("c1", 501)}, {600, g.other("c1", 600)}};
        } else {
            read.snvs = {{601, g.other("c1", 601)}};
        }
        sam.read(read);
    }
    const auto called = control.call(sam);
    REQUIRE(called.records.size() == 4);
    for (const auto& record : called.records) {
        CHECK(record.format.at("GT") == "0/1");
        CHECK(record.reference.size() == 1);
        CHECK(record.format.at("AD") == "12,12");
    }
    CHECK(called.records[3].position == 601);
}

TEST_CASE("an odd BED is merged, an empty one calls nothing, and no reads give a header alone") {
    const Control control;
    const auto sam = control.reads();
    const auto with_bed = [&](const std::string& bed) {
        return control.call(sam, {.regions_file = control.directory.write("regions.bed", bed)});
    };
    CHECK(
        texts(with_bed(
                  "#h\nbrowser x\ntrack name=x\nc1\t450\t600\nc1\t400\t550\nc1\t499\t500\nc1\t10\t10\nc1\t900\t5000\n")
                  .records) == std::vector{control.snv});
    CHECK(with_bed("c1\t0\t499\nc1\t500\t1000\n").records.empty());
    const auto none = with_bed("");
    CHECK(none.records.empty());
    CHECK(none.text.find("#CHROM") != std::string::npos);
    SamBuilder empty(control.genome);
    empty.read_group("rg1", "S1");
    CHECK(control.call(empty).records.empty());
}

TEST_CASE("a file that is not sorted is an error that names the read, and leaves no output") {
    const Control control;
    SamBuilder sam(control.genome);
    sam.read_group("rg1", "S1").keep_order();
    sam.read({.name = "first", .contig = "c1", .position = 500});
    sam.read({.name = "second", .contig = "c1", .position = 400});
    const auto error = error_of([&] { (void)control.call(sam); });
    CHECK(error.code() == ErrorCode::input);
    CHECK(says(error, "second"));
    CHECK_FALSE(std::filesystem::exists(control.directory.file("called.vcf")));
}
