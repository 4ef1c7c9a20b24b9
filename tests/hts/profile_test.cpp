#include "spillway/profile.hpp"

#include "hts/sam_builder.hpp"

#include <catch2/catch.hpp>

using namespace spillway;
using namespace spillway::test;
using hts::Profile;

namespace {

Profile profile_with(const std::vector<std::string>& lines) {
    TemporaryDirectory directory;
    std::string text = "@HD\tVN:1.6\tSO:coordinate\n@SQ\tSN:c1\tLN:100\n";
    for (const std::string& line : lines) text += line + "\n";
    return hts::profile_of(*hts::AlignmentFile::open(directory.write("in.sam", text)));
}

} // namespace

TEST_CASE("a header tells the profile by the platforms of its read groups and by its aligner") {
    const std::string illumina = "@RG\tID:a\tSM:S\tPL:ILLUMINA", pacbio = "@RG\tID:b\tSM:S\tPL:PACBIO",
                      nanopore = "@RG\tID:c\tSM:S\tPL:ont", silent = "@RG\tID:d\tSM:S";
    CHECK(profile_with({}) == Profile::wgs);
    CHECK(profile_with({silent}) == Profile::wgs);
    CHECK(profile_with({illumina}) == Profile::wgs);
    CHECK(profile_with({pacbio}) == Profile::pacbio);
    CHECK(profile_with({nanopore}) == Profile::ont);
    CHECK(profile_with({pacbio, nanopore}) == Profile::ont);
    CHECK(profile_with({illumina, pacbio}) == Profile::hybrid);
    CHECK(profile_with({nanopore, illumina}) == Profile::hybrid);
    CHECK(profile_with({illumina, "@PG\tID:STAR\tPN:STAR"}) == Profile::rnaseq);
    CHECK(profile_with({"@PG\tID:hisat2\tPN:hisat2"}) == Profile::rnaseq);
    CHECK(profile_with({pacbio, "@PG\tID:minimap2\tPN:minimap2\tCL:minimap2 -ax splice:hq ref.fa in.fq"}) ==
          Profile::rnaseq);
    CHECK(profile_with({pacbio, "@PG\tID:minimap2\tPN:minimap2\tCL:minimap2 -ax map-hifi ref.fa in.fq"}) ==
          Profile::pacbio);
    CHECK(profile_with({illumina, "@PG\tID:restarted\tPN:bwa"}) == Profile::wgs);
}

TEST_CASE("every profile has a name of its own and a guess that can be used") {
    for (const char* name : {"wgs", "wes", "pacbio", "ont", "hybrid", "rnaseq"}) {
        const auto profile = hts::profile_named(name);
        REQUIRE(profile);
        CHECK(to_string(*profile) == name);
        CHECK(hts::first_guess(*profile).span >= 1'000'000);
        CHECK(hts::first_guess(*profile).batch_cells >= 1'000'000);
    }
    CHECK_FALSE(hts::profile_named("auto"));
    CHECK_FALSE(hts::profile_named(""));
}
