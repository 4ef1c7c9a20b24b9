// Several samples read side by side: what the first shows and the others do not, from built files.
#include "hts/sam_builder.hpp"
#include "process.hpp"

#include <catch2/catch.hpp>

#include <filesystem>

using namespace spillway::test;

namespace {

/// A child with an SNV from its mother at 500, one that both parents have at 600, a new one at 700, and another at
/// 450'700 so that regions follow one another.
struct Family {
    static constexpr std::int64_t far = 450'700;

    TemporaryDirectory directory;
    Genome genome;
    std::string fasta;
    Variant maternal, common, novel, late;

    Family() {
        Genome parts;
        parts.random("head", 2000, 41).random("tail", 1000, 42);
        genome.add("c1", parts.bases("head") + std::string(448'000, 'N') + parts.bases("tail")).random("c2", 400, 43);
        fasta = genome.write(directory);
        maternal = snv(500);
        common = snv(600);
        novel = snv(700);
        late = snv(far);
    }
    [[nodiscard]] Variant snv(std::int64_t position) const {
        return {"c1", position, std::string(1, genome.at("c1", position)),
                std::string(1, genome.other("c1", position))};
    }
    [[nodiscard]] SamBuilder reads(const std::string& sample, const std::vector<Variant>& first,
                                   const std::vector<Variant>& second, const std::vector<Variant>& first_late) const {
        SamBuilder sam(genome);
        sam.read_group("rg1", sample);
        sam.cover("c1", {.from = 301, .to = 900, .step = 10}, {first, second});
        sam.cover("c1", {.from = far - 200, .to = far + 200, .step = 10}, {first_late, {}});
        return sam;
    }
    [[nodiscard]] SamBuilder child() const { return reads("child", {maternal, common}, {novel}, {late}); }
    [[nodiscard]] SamBuilder mother() const { return reads("mother", {maternal, common}, {}, {}); }
    [[nodiscard]] SamBuilder father() const { return reads("father", {common}, {}, {}); }

    [[nodiscard]] Outcome joined(const std::vector<std::string>& arguments) const {
        std::vector<std::string> all{SPILLWAY_JOINED, "-f", fasta};
        all.insert(all.end(), arguments.begin(), arguments.end());
        return run(all);
    }
    [[nodiscard]] static std::string line(const Variant& v, const std::string& depths) {
        return v.contig + '\t' + std::to_string(v.position) + '\t' + v.reference + '\t' + v.alternate + '\t' + depths +
               '\n';
    }
};

const std::string columns = "#contig\tposition\treference\tallele\t";

} // namespace

TEST_CASE("a child's new alleles are printed in order with the depths, inherited ones are not") {
    const Family family;
    // A read of 100 bases each 10 bases: 10 of each haplotype at each position.
    const std::string expected = columns + "child\tmother\tfather\n" + Family::line(family.novel, "10/20\t0/20\t0/20") +
                                 Family::line(family.late, "10/20\t0/20\t0/20");
    const std::vector<std::string> bam = {family.child().bam(family.directory, "child.bam"),
                                          family.mother().bam(family.directory, "mother.bam"),
                                          family.father().bam(family.directory, "father.bam")};
    std::vector<std::string> mixed = bam;
    mixed[0] = family.child().cram(family.directory, "child.cram", family.fasta);
    mixed[2] = family.father().cram(family.directory, "father.cram", family.fasta);
    for (const auto& files : {bam, mixed}) {
        for (const std::string threads : {"1", "3"}) {
            const Outcome outcome = family.joined({"--threads", threads, files[0], files[1], files[2]});
            CHECK(outcome.err == "");
            CHECK(outcome.status == 0);
            CHECK(outcome.out == expected);
        }
    }
    CHECK(family.joined({"-r", "c1:701-450700", bam[0], bam[1], bam[2]}).out ==
          columns + "child\tmother\tfather\n" + Family::line(family.late, "10/20\t0/20\t0/20"));
    // Tumour and normal: what the father alone does not have.
    CHECK(family.joined({"-r", "c1:1-1000", bam[0], bam[2]}).out == columns + "child\tfather\n" +
                                                                        Family::line(family.maternal, "10/20\t0/20") +
                                                                        Family::line(family.novel, "10/20\t0/20"));
}

TEST_CASE("mates that both cover the base are one template, and a parent with few reads is no witness") {
    const Family family;
    const char alternate = family.novel.alternate[0];
    SamBuilder child(family.genome), mother(family.genome);
    child.read_group("rg1", "child");
    mother.read_group("rg1", "mother");
    for (int i = 0; i < 10; ++i) {
        for (const bool second : {false, true}) {
            ReadSpec read{.name = "m" + std::to_string(i),
                          .contig = "c1",
                          .position = second ? 660 : 640,
                          .flags = second ? 147 : 99,
                          .mate_contig = "=",
                          .mate_position = second ? 640 : 660};
            if (i < 4) read.snvs = {{700, alternate}};
            child.read(read);
        }
    }
    const auto with_depth = [&](int reads) {
        SamBuilder sam = mother;
        for (int i = 0; i < reads; ++i) sam.read({.name = "p" + std::to_string(i), .contig = "c1", .position = 650});
        return sam.bam(family.directory, "mother.bam");
    };
    const std::string file = child.bam(family.directory, "child.bam"), header = columns + "child\tmother\n";
    CHECK(family.joined({file, with_depth(8)}).out == header + Family::line(family.novel, "4/10\t0/8"));
    CHECK(family.joined({file, with_depth(7)}).out == header);
    CHECK(family.joined({"--min-share", "0.5", file, with_depth(8)}).out == header);
}

TEST_CASE("what cannot be joined is an error that names the file, with the exit status of its kind") {
    const Family family;
    const std::string child = family.child().bam(family.directory, "child.bam");
    const std::string mother = family.mother().bam(family.directory, "mother.bam");
    const auto fails = [&](const std::vector<std::string>& arguments, int status, const std::string& what) {
        const Outcome outcome = family.joined(arguments);
        CHECK(outcome.status == status);
        CHECK(outcome.err.find(what) != std::string::npos);
        CHECK(outcome.out == "");
    };
    fails({child, family.directory.file("absent.bam")}, 3, "absent.bam");
    fails({child}, 2, "");
    fails({"-r", "nowhere:1-5", child, mother}, 2, "nowhere");
    Genome other;
    other.random("c1", 1000, 41);
    SamBuilder stranger(other);
    stranger.read_group("rg1", "father").cover("c1", {.from = 300, .to = 700}, {{}});
    fails({child, mother, stranger.bam(family.directory, "stranger.bam")}, 3, "stranger.bam");
    SamBuilder two(family.genome);
    two.read_group("rg1", "S1").read_group("rg2", "S2").cover("c1", {.from = 300, .to = 700}, {{}});
    fails({child, two.bam(family.directory, "two.bam")}, 2, "two.bam");
    std::filesystem::remove(mother + ".bai");
    fails({child, mother}, 3, "mother.bam: it has no index");
}
