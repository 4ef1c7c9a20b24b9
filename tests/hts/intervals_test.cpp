#include "hts/expect_error.hpp"
#include "spillway/hts.hpp"
#include "temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <htslib/bgzf.h>
#include <random>

using namespace spillway;
using namespace spillway::test;
using Intervals = std::vector<hts::Interval>;

namespace {

const std::vector<hts::Contig> contigs{{"c1", 1000, ""},         {"c2", 5'000'000, ""}, {"empty", 0, ""},
                                       {"HLA:A*01:01", 300, ""}, {"HLA", 400, ""},      {"a,b", 50, ""},
                                       {"chrX:1-100", 2000, ""}, {"track1", 100, ""}};

Intervals regions(std::string_view text) {
    return hts::parse_regions(text, contigs);
}

} // namespace

TEST_CASE("regions are written as for samtools") {
    CHECK(regions("c1") == Intervals{{0, 0, 1000}});
    CHECK(regions("c1:5-10") == Intervals{{0, 4, 10}});
    CHECK(regions("c1:5") == Intervals{{0, 4, 1000}});
    CHECK(regions("c1:5-") == Intervals{{0, 4, 1000}});
    CHECK(regions("c1:-10") == Intervals{{0, 0, 10}});
    CHECK(regions("c1:7-7") == Intervals{{0, 6, 7}});
    CHECK(regions("c2:1,000,001-2,000,000") == Intervals{{1, 1'000'000, 2'000'000}});
    CHECK(regions("c1:900-5000") == Intervals{{0, 899, 1000}});
    CHECK(regions("c1:2000-3000").empty());
    CHECK(regions("empty").empty());
}

TEST_CASE("a list of regions is sorted and merged") {
    CHECK(regions("c2:1,001-2,000,c1:5-10,c1:8-20,c1:21-30") == Intervals{{0, 4, 30}, {1, 1000, 2000}});
    CHECK(regions("c2,c1") == Intervals{{0, 0, 1000}, {1, 0, 5'000'000}});
}

TEST_CASE("a list of many regions is read to its end") {
    std::string text;
    Intervals expected;
    for (std::int64_t i = 0; i < 20'000; ++i) {
        text += (i == 0 ? "c2:" : ",c2:") + std::to_string(i * 100 + 1) + "-" + std::to_string(i * 100 + 50);
        expected.push_back({1, i * 100, i * 100 + 50});
    }
    CHECK(regions(text) == expected);
}

TEST_CASE("names with colons and commas are resolved against the header") {
    CHECK(regions("HLA:A*01:01") == Intervals{{3, 0, 300}});
    CHECK(regions("HLA:A*01:01:5-9") == Intervals{{3, 4, 9}});
    CHECK(regions("HLA:5-9") == Intervals{{4, 4, 9}});
    CHECK(regions("a,b:2-3,c1:1-1") == Intervals{{0, 0, 1}, {5, 1, 3}});
    CHECK(regions("chrX:1-100") == Intervals{{6, 0, 2000}});
    CHECK(regions("{chrX:1-100}:5-9") == Intervals{{6, 4, 9}});
    CHECK(regions("{HLA}") == Intervals{{4, 0, 400}});
}

TEST_CASE("a region that is none is a usage error that shows it") {
    for (const char* text : {"", "c9", "c1:", "c1:x", "c1:0-5", "c1:9-5", "c1:5-9x", "c1:1-2,", ",c1", "c1:,5", "{c1",
                             "{c1}x", "c1:99999999999999999999-5", "c1:-"}) {
        CAPTURE(text);
        CHECK(error_of([&] { regions(text); }).code() == ErrorCode::usage);
    }
    CHECK(says(error_of([] { regions("c1,c9:3-4"); }), "c9:3-4"));
}

TEST_CASE("a BED file gives sorted, merged intervals") {
    TemporaryDirectory directory;
    const std::string path = directory.write("r.bed", "browser position c1:1-10\n"
                                                      "track name=\"x\"\n"
                                                      "# note\n"
                                                      "\n"
                                                      "c1\t600\t700\tname\t0\t+\n"
                                                      "c1\t450\t520\r\n"
                                                      "c1\t480\t550\n"
                                                      "c1\t490\t495\n"
                                                      "c1\t500\t500\n"
                                                      "c2 5 6\n"
                                                      "track1\t1\t2\n"
                                                      "c1\t3000\t4000\n"
                                                      "c1\t900\t5000");
    const Intervals expected{{0, 450, 550}, {0, 600, 700}, {0, 900, 1000}, {1, 5, 6}, {7, 1, 2}};
    CHECK(hts::read_bed(path, contigs) == expected);

    const std::string text = read_file(path), gz = directory.file("r.bed.gz");
    BGZF* const out = bgzf_open(gz.c_str(), "w");
    REQUIRE(bgzf_write(out, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    REQUIRE(bgzf_close(out) == 0);
    CHECK(hts::read_bed(gz, contigs) == expected);
}

TEST_CASE("an empty BED file gives no intervals, column names are passed over") {
    TemporaryDirectory directory;
    CHECK(hts::read_bed(directory.write("e.bed", ""), contigs).empty());
    CHECK(hts::read_bed(directory.write("c.bed", "#only\n\n"), contigs).empty());
    CHECK(hts::read_bed(directory.write("h.bed", "chrom\tstart\tend\nc1\t1\t2\n"), contigs) == Intervals{{0, 1, 2}});
}

TEST_CASE("a bad BED line is an input error that names file and line") {
    TemporaryDirectory directory;
    for (const char* bad :
         {"c1\t5", "c1", "c1\tx\t9", "c1\t9\t5", "c1\t-1\t5", "c9\t1\t5", "c1\t1\t5x", "c1\t99999999999999999999\t5"}) {
        CAPTURE(bad);
        const std::string path = directory.write("b.bed", std::string("c1\t1\t2\n") + bad + "\n");
        const Error error = error_of([&] { return hts::read_bed(path, contigs); });
        CHECK(error.code() == ErrorCode::input);
        CHECK(says(error, "b.bed:2"));
    }
    CHECK(error_of([&] { return hts::read_bed(directory.file("none.bed"), contigs); }).code() == ErrorCode::input);
}

TEST_CASE("merging keeps exactly the covered positions, in disjoint sorted intervals") {
    std::mt19937_64 random(3);
    for (int round = 0; round < 200; ++round) {
        Intervals intervals;
        for (std::size_t i = random() % 12; i > 0; --i) {
            const auto begin = static_cast<std::int64_t>(random() % 100);
            const auto end = begin + static_cast<std::int64_t>(random() % 20);
            const auto contig = static_cast<std::int32_t>(random() % 2);
            intervals.push_back({contig, begin, end});
        }
        std::vector<std::vector<bool>> expected(2, std::vector<bool>(130)), found(2, std::vector<bool>(130));
        for (const auto& i : intervals)
            for (std::int64_t p = i.begin; p < i.end; ++p)
                expected[static_cast<std::size_t>(i.contig)][static_cast<std::size_t>(p)] = true;
        const Intervals merged = hts::merged(intervals);
        for (std::size_t i = 0; i < merged.size(); ++i) {
            CHECK(merged[i].begin < merged[i].end);
            if (i > 0 && merged[i - 1].contig == merged[i].contig) CHECK(merged[i - 1].end < merged[i].begin);
            if (i > 0) CHECK(merged[i - 1].contig <= merged[i].contig);
            for (std::int64_t p = merged[i].begin; p < merged[i].end; ++p)
                found[static_cast<std::size_t>(merged[i].contig)][static_cast<std::size_t>(p)] = true;
        }
        CHECK(found == expected);
    }
}

TEST_CASE("the whole genome leaves empty contigs out") {
    CHECK(hts::whole(std::vector<hts::Contig>{{"a", 5, ""}, {"b", 0, ""}, {"c", 7, ""}}) ==
          Intervals{{0, 0, 5}, {2, 0, 7}});
}
