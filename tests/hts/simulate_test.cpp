#include "hts/handles.hpp"
#include "hts/read_collector.hpp"
#include "temporary_directory.hpp"

#include "files.hpp"
#include "haplotype.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>

using namespace spillway;
using namespace spillway::test;

namespace {

void run(const std::string& arguments) {
    const std::string command = std::string(SPILLWAY_SIMULATE) + " " + arguments + " > /dev/null";
    REQUIRE(std::system(command.c_str()) == 0);
}

struct Site {
    std::string contig;
    std::int64_t begin = 0;
    std::vector<std::string> alleles;
    std::array<int, 2> genotype{};
};

/// The truth as htslib reads it.
std::vector<Site> sites_of(const std::string& path) {
    const hts::File file(hts_open(path.c_str(), "r"));
    REQUIRE(file);
    const hts::VcfHeader header(bcf_hdr_read(file.get()));
    const hts::VcfLine line(bcf_init());
    std::vector<Site> sites;
    int* genotypes = nullptr;
    int allocated = 0;
    while (bcf_read(file.get(), header.get(), line.get()) == 0) {
        bcf_unpack(line.get(), BCF_UN_ALL);
        Site site{bcf_hdr_id2name(header.get(), line->rid), line->pos, {}, {}};
        for (int i = 0; i < static_cast<int>(line->n_allele); ++i) site.alleles.emplace_back(line->d.allele[i]);
        REQUIRE(bcf_get_genotypes(header.get(), line.get(), &genotypes, &allocated) == 2);
        site.genotype = {bcf_gt_allele(genotypes[0]), bcf_gt_allele(genotypes[1])};
        CHECK(bcf_gt_is_phased(genotypes[1]));
        sites.push_back(std::move(site));
    }
    std::free(genotypes);
    return sites;
}

/// The reference with one haplotype's alleles put in, from the right so that places stay.
std::string apply(std::string bases, const std::vector<Site>& sites, const std::string& contig, std::size_t haplotype) {
    for (auto site = sites.rbegin(); site != sites.rend(); ++site) {
        if (site->contig != contig) continue;
        const std::string& reference = site->alleles[0];
        REQUIRE(bases.compare(static_cast<std::size_t>(site->begin), reference.size(), reference) == 0);
        bases.replace(static_cast<std::size_t>(site->begin), reference.size(),
                      site->alleles.at(static_cast<std::size_t>(site->genotype[haplotype])));
    }
    return bases;
}

} // namespace

TEST_CASE("equal seeds give equal files, other seeds other ones") {
    TemporaryDirectory directory;
    const std::string common = " --length 20000 --depth 10 --out ";
    run("--seed 3" + common + directory.file("a"));
    run("--seed 3" + common + directory.file("b"));
    run("--seed 4" + common + directory.file("c"));
    for (const char* name : {"/ref.fa", "/ref.fa.fai", "/reads.bam", "/reads.bam.bai", "/truth.vcf.gz",
                             "/truth.vcf.gz.tbi", "/regions.bed"}) {
        CAPTURE(name);
        CHECK(read_file(directory.file("a") + name) == read_file(directory.file("b") + name));
    }
    CHECK(read_file(directory.file("a/ref.fa")) != read_file(directory.file("c/ref.fa")));
}

TEST_CASE("the reads are those of the haplotypes that the truth describes, in place, at the depth asked for") {
    TemporaryDirectory directory;
    run("--seed 5 --length 60000 --depth 20 --snv-rate 0.003 --indel-rate 0.003 --multi-share 0.2 --out " +
        directory.file("s"));
    run("--seed 5 --length 60000 --depth 20 --snv-rate 0.003 --indel-rate 0.003 --multi-share 0.2 --cram --out " +
        directory.file("c"));
    const std::string fasta = directory.file("s/ref.fa");
    const hts::Reference reference(fasta);
    const auto sites = sites_of(directory.file("s/truth.vcf.gz"));
    CHECK(sites.size() > 200);

    std::map<std::string, std::array<std::string, 2>> haplotypes;
    const auto file = hts::AlignmentFile::open(directory.file("s/reads.bam"));
    for (const hts::Contig& contig : file->contigs()) {
        CHECK(contig.md5 == hts::md5(*reference.contig(contig.name)));
        for (std::size_t h : {0U, 1U})
            haplotypes[contig.name][h] = apply(*reference.contig(contig.name), sites, contig.name, h);
    }
    CHECK(file->samples() == std::vector<std::string>{"SIMULATED"});
    hts::ReadStream stream(file, {});
    const auto reads = drain(stream);
    CHECK(read_all(directory.file("c/reads.cram"), fasta) == reads);
    const auto bases = std::accumulate(reads.begin(), reads.end(), std::size_t{0},
                                       [](std::size_t sum, const SeenRead& read) { return sum + read.bases.size(); });
    CHECK(static_cast<double>(bases) / 60'000 == Approx(20).epsilon(0.02));

    // A read without errors lies on a haplotype as it is; most have none.
    std::size_t found = 0, checked = 0;
    std::map<std::uint64_t, int> mates;
    for (const SeenRead& read : reads) {
        ++mates[read.name_hash];
        if (++checked % 10 != 0) continue;
        const auto& both = haplotypes[file->contigs()[static_cast<std::size_t>(read.contig)].name];
        if (both[0].find(read.bases) != std::string::npos || both[1].find(read.bases) != std::string::npos) ++found;
    }
    CHECK(static_cast<double>(found) > 0.6 * static_cast<double>(checked) / 10);
    for (const auto& [name, count] : mates) REQUIRE(count == 2);
}

TEST_CASE("errors come as often as the qualities say") {
    TemporaryDirectory directory;
    run("--seed 6 --length 50000 --depth 60 --snv-rate 0 --indel-rate 0 --out " + directory.file("s"));
    const hts::Reference reference(directory.file("s/ref.fa"));
    const auto file = hts::AlignmentFile::open(directory.file("s/reads.bam"));
    hts::ReadStream stream(file, {});
    std::map<char, std::pair<double, double>> wrong_of_all;
    for (const SeenRead& read : drain(stream)) {
        REQUIRE(read.cigar == "150M");
        const auto contig = reference.contig(file->contigs()[static_cast<std::size_t>(read.contig)].name);
        for (std::size_t i = 0; i < read.bases.size(); ++i) {
            auto& [wrong, all] = wrong_of_all[read.qualities[i]];
            wrong += read.bases[i] != (*contig)[static_cast<std::size_t>(read.position - 1) + i];
            ++all;
        }
    }
    REQUIRE(wrong_of_all.size() == 3);
    CHECK(wrong_of_all['F'].first / wrong_of_all['F'].second == Approx(0.0002).epsilon(0.15));
    CHECK(wrong_of_all[':'].first / wrong_of_all[':'].second == Approx(0.00316).epsilon(0.15));
    CHECK(wrong_of_all[','].first / wrong_of_all[','].second == Approx(0.0794).epsilon(0.1));
}

TEST_CASE("planted variants are left-aligned, apart, and of all kinds") {
    simulate::Random random(1);
    const auto contigs = simulate::make_genome({.length = 400'000, .contigs = 1}, random);
    const std::string& bases = contigs[0].bases;
    const auto variants = simulate::plant_variants(contigs[0], {.snv_rate = 0.002, .indel_rate = 0.002}, random);
    std::set<std::string> kinds;
    std::int64_t free_from = 0;
    for (const simulate::Variant& variant : variants) {
        REQUIRE(variant.begin >= free_from);
        free_from = variant.end() + 2;
        REQUIRE(bases.compare(static_cast<std::size_t>(variant.begin), variant.reference.size(), variant.reference) ==
                0);
        for (const std::string& alternate : variant.alternates) {
            REQUIRE(alternate != variant.reference);
            kinds.insert(alternate.size() > variant.reference.size()   ? "insertion"
                         : alternate.size() < variant.reference.size() ? "deletion"
                                                                       : "snv");
            // Left-aligned and trimmed: no shared end, no shared begin beyond one anchor base.
            if (variant.alternates.size() > 1) continue;
            if (alternate.size() != variant.reference.size()) REQUIRE(alternate.back() != variant.reference.back());
            REQUIRE((alternate.size() == 1 || variant.reference.size() == 1));
        }
        kinds.insert(variant.alternates.size() == 2             ? "multi"
                     : variant.alleles[0] == variant.alleles[1] ? "hom"
                                                                : "het");
    }
    CHECK(kinds == std::set<std::string>{"snv", "insertion", "deletion", "multi", "hom", "het"});
}

TEST_CASE("a read is placed along its haplotype's variants, and short anchors are clipped") {
    //                                  0123456789012345678901234567890123456789
    const simulate::Contig contig{"c1", "ACGTTGCAAGGCTTACGATCCGATAGCTAGGATCCATTGA", {}};
    const std::vector<simulate::Variant> variants{{9, "G", {"GTTT"}, {1, 0}}, {20, "CGAT", {"C"}, {1, 0}}};
    const simulate::Haplotype haplotype(contig, variants, 0), plain(contig, variants, 1);
    CHECK(plain.bases() == contig.bases);
    CHECK(haplotype.bases() == "ACGTTGCAAGTTTGCTTACGATCCAGCTAGGATCCATTGA");
    const auto placed = [&](std::int64_t begin, std::int64_t length) {
        const simulate::Placement placement = haplotype.place(begin, length);
        return std::to_string(placement.begin) + " " + cigar_text(placement.cigar);
    };
    CHECK(placed(0, 40) == "0 10M3I11M3D16M");
    CHECK(placed(3, 12) == "3 7M5S");
    CHECK(placed(6, 30) == "10 7S11M3D12M");
    CHECK(placed(11, 20) == "10 2S11M3D7M");
    CHECK(placed(13, 14) == "10 11M3S");
    CHECK(placed(24, 10) == "24 10M");
    CHECK(cigar_text(plain.place(5, 30).cigar) == "30M");
}
