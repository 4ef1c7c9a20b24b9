// NA12878 against GIAB's truth, where the data are at hand.
#include "shared_data.hpp"
#include "temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <iostream>
#include <sstream>

using namespace spillway::test;

namespace {

struct Score {
    int hits = 0, false_calls = 0, missed = 0;
};

/// The ALL line of score_haplotypes.py.
Score score(const TemporaryDirectory& directory, const std::string& data, const std::string& calls,
            const std::string& bed) {
    const std::string out = directory.file("score.txt");
    const std::string command = "python3 " + data + "/score_haplotypes.py " + calls + " " + data +
                                "/truth_HG001_GIABv3.3.2_chr20_10.0-10.1Mb.vcf.gz " + directory.file("ref.fa") + " " +
                                bed + " >" + out;
    REQUIRE(std::system(command.c_str()) == 0);
    std::istringstream lines(read_file(out));
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string name, tp, fp, fn;
        Score result;
        words >> name >> tp >> result.hits >> fp >> result.false_calls >> fn >> result.missed;
        if (name == "ALL") return result;
    }
    FAIL("no ALL line in " << out);
    return {};
}

} // namespace

TEST_CASE("NA12878: BAM and CRAM give the same calls, as good as other callers' in and outside the confident regions") {
    const auto folder = shared_data("data");
    if (!folder) return;
    if (std::system("command -v bcftools python3 >/dev/null") != 0) {
        std::cout << "SKIPPED: no bcftools or no python3\n";
        return;
    }
    const std::string& data = *folder;
    const std::string name = data + "/NA12878_S1.chr20.10_10p1mb", fasta = data + "/ucsc.hg19.chr20.unittest.fasta.gz";
    TemporaryDirectory directory;
    REQUIRE(std::system(("gzip -dc " + fasta + " >" + directory.file("ref.fa")).c_str()) == 0);
    for (const std::string kind : {"bam", "cram"}) {
        const std::string command = std::string(SPILLWAY_CALL) + " -v 0 -f " + fasta + " -o " +
                                    directory.file(kind + ".vcf.gz") + " " + name + "." + kind;
        REQUIRE(std::system(command.c_str()) == 0);
    }
    CHECK(read_file(directory.file("bam.vcf.gz")) == read_file(directory.file("cram.vcf.gz")));
    const auto inside =
        score(directory, data, directory.file("bam.vcf.gz"), data + "/test_nist.b37_chr20_100kbp_at_10mb.bed");
    CHECK(inside.hits >= 48);
    CHECK(inside.false_calls + inside.missed <= 1);
    const auto all =
        score(directory, data, directory.file("bam.vcf.gz"), directory.write("all.bed", "chr20\t10000000\t10100000\n"));
    CHECK(all.hits + all.missed == 221);
    CHECK(all.hits >= 207);
}
