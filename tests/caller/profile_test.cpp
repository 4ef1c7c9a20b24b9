// A sample's profile changes how the work is cut, never the VCF.
#include "called.hpp"

#include "hts/sam_builder.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <random>

using namespace spillway::test;
using spillway::hts::Profile;

namespace {

struct Files {
    TemporaryDirectory directory;
    std::string fasta, bam;
    std::size_t variants = 0;
};

/// Reads with SNVs on both sides of the places where spans of every profile end.
void make(Files& files, const std::string& platform) {
    std::mt19937_64 random(51);
    std::string bases;
    for (int i = 0; i < 4'200'000; ++i) bases += "ACGT"[random() % 4];
    Genome genome;
    genome.add("c1", bases);
    SamBuilder sam(genome);
    sam.header_line("@RG\tID:rg1\tSM:S1\tPL:" + platform);
    for (const std::int64_t border : {1'000'000, 2'000'000, 3'000'000, 4'000'000}) {
        const Coverage coverage{.from = border - 1000, .to = border + 20'000, .length = 150, .step = 30};
        std::vector<Variant> variants;
        for (std::int64_t at = coverage.from + 200; at < coverage.to - 200; at += 230) {
            variants.push_back({"c1", at, std::string(1, genome.at("c1", at)), std::string(1, genome.other("c1", at))});
        }
        files.variants += variants.size();
        sam.cover("c1", coverage, {variants, {}});
    }
    files.fasta = genome.write(files.directory);
    files.bam = sam.bam(files.directory, "in.bam");
}

} // namespace

TEST_CASE("every profile gives the same VCF from other spans; the header's is taken unless one is asked for") {
    Files files;
    make(files, "ONT");
    const auto with = [&](std::optional<Profile> profile, std::int64_t region_length = 0) {
        return call(files.directory, {.alignments = files.bam,
                                      .reference = files.fasta,
                                      .profile = profile,
                                      .region_length = region_length,
                                      .threads = 2});
    };
    const auto found = with({});
    CHECK(found.records.size() == files.variants);
    CHECK(found.report.profile == Profile::ont);
    // A genome as small as this one is cut into spans of a quarter of the profile's length.
    const std::map<Profile, std::uint64_t> spans = {{Profile::wgs, 16}, {Profile::wes, 4},    {Profile::pacbio, 9},
                                                    {Profile::ont, 4},  {Profile::hybrid, 9}, {Profile::rnaseq, 4}};
    CHECK(found.report.pipeline.sources == spans.at(Profile::ont));
    for (const auto& [profile, expected] : spans) {
        const auto called = with(profile);
        CHECK(called.text == found.text);
        CHECK(called.report.profile == profile);
        CHECK(called.report.pipeline.sources == expected);
    }
    CHECK(with(Profile::ont, 1'000'000).report.pipeline.sources == 4);
}
