#include "hts/read_collector.hpp"
#include "hts/sam_builder.hpp"

#include <catch2/catch.hpp>

#include <random>

using namespace spillway;
using namespace spillway::test;
using Intervals = std::vector<hts::Interval>;

namespace {

constexpr std::int64_t length = 300'000;

/// One contig with reads all along, as BAM and as CRAM of many slices.
struct Fixture {
    TemporaryDirectory directory;
    std::vector<std::shared_ptr<const hts::AlignmentFile>> files;

    Fixture() {
        Genome genome;
        genome.random("c1", length, 1).random("c2", 100, 2);
        SamBuilder sam(genome);
        sam.read_group("rg1", "S1");
        sam.cover("c1", {.from = 1, .to = length, .length = 100, .step = 5}, {{}});
        const std::string fasta = genome.write(directory);
        files.push_back(hts::AlignmentFile::open(sam.bam(directory, "in.bam")));
        files.push_back(hts::AlignmentFile::open(sam.cram(directory, "in.cram", fasta), fasta));
    }
};

/// Reads decoded over all spans, each widened by `margin`.
std::uint64_t decoded(const std::shared_ptr<const hts::AlignmentFile>& file, const Intervals& spans,
                      std::int64_t margin) {
    hts::ReadStream stream(file, {});
    for (const hts::Interval& span : spans) {
        stream.seek({span.contig, span.begin - margin, span.end + margin});
        while (stream.next()) {
        }
    }
    return stream.counts().decoded;
}

void check_cover(const Intervals& spans, const Intervals& wanted) {
    for (std::size_t i = 1; i < spans.size(); ++i) {
        const bool apart = spans[i - 1].contig < spans[i].contig || spans[i - 1].end <= spans[i].begin;
        REQUIRE(apart);
    }
    for (const hts::Interval& interval : wanted) {
        std::int64_t covered = 0;
        for (const hts::Interval& span : spans)
            if (span.contig == interval.contig)
                covered +=
                    std::max<std::int64_t>(0, std::min(span.end, interval.end) - std::max(span.begin, interval.begin));
        REQUIRE(covered == interval.end - interval.begin);
    }
}

} // namespace

TEST_CASE("spans cover what is wanted once, and decode next to nothing twice") {
    Fixture f;
    const Intervals everything{{0, 0, length}, {1, 0, 100}};
    for (const auto& file : f.files) {
        for (const std::int64_t span_length : {50'000, 100'000, 1'000'000}) {
            for (const std::int64_t margin : {0, 500}) {
                const Intervals spans = hts::decode_spans(*file, everything, {span_length, margin});
                CAPTURE(file->path(), span_length, margin, spans.size());
                check_cover(spans, everything);
                if (!file->is_cram()) CHECK(spans.size() >= static_cast<std::size_t>(length / span_length / 2));
                const std::uint64_t reads = decoded(file, spans, margin);
                const std::uint64_t in_file = (length - 100) / 5 + 1;
                CHECK(reads >= in_file);
                CHECK(static_cast<double>(reads) < 1.1 * static_cast<double>(in_file));
            }
        }
    }
}

TEST_CASE("a BAM is cut behind window borders, by the margin") {
    Fixture f;
    const Intervals spans = hts::decode_spans(*f.files[0], {{0, 0, length}}, {50'000, 500});
    REQUIRE(spans.size() > 3);
    for (std::size_t i = 1; i < spans.size(); ++i) CHECK((spans[i].begin - 500) % 16'384 == 0);
}

TEST_CASE("spans in which more bytes lie than allowed are cut") {
    Fixture f;
    for (const auto& file : f.files) {
        const auto whole = static_cast<std::int64_t>(std::filesystem::file_size(file->path()));
        const Intervals spans = hts::decode_spans(*file, {{0, 0, length}}, {.bytes = whole / 4});
        CAPTURE(file->path(), spans.size());
        // CRAM can be cut at its slices only, and one that is cut counts for both sides.
        CHECK(spans.size() >= 4);
        // Halving leaves at least about half of what is allowed.
        CHECK(spans.size() <= 12);
        check_cover(spans, {{0, 0, length}});
        for (const hts::Interval& span : spans) CHECK(span.end - span.begin < length / 3);
    }
}

TEST_CASE("small intervals near each other share spans, and tiles are decoded once") {
    Fixture f;
    Intervals tiles, exons;
    for (std::int64_t begin = 0; begin < length; begin += 997)
        tiles.push_back({0, begin, std::min(begin + 997, length)});
    for (std::int64_t begin = 0; begin + 500 < length; begin += 2000) exons.push_back({0, begin, begin + 500});
    for (const auto& file : f.files) {
        for (const Intervals& wanted : {tiles, exons}) {
            const Intervals spans = hts::decode_spans(*file, wanted, {.margin = 500});
            check_cover(spans, wanted);
            CHECK(spans.size() <= 2);
            CHECK(static_cast<double>(decoded(file, spans, 500)) < 1.1 * 60'000);
        }
    }
}

TEST_CASE("intervals far apart are spans of their own") {
    Fixture f;
    const Intervals wanted{{0, 1000, 1500}, {0, 200'000, 200'500}, {1, 0, 100}};
    CHECK(hts::decode_spans(*f.files[0], wanted) == wanted);
    CHECK(decoded(f.files[0], wanted, 0) < 8'000);
}

TEST_CASE("any set of intervals is covered by disjoint spans") {
    Fixture f;
    std::mt19937_64 random(11);
    for (int round = 0; round < 100; ++round) {
        Intervals wanted;
        for (std::size_t i = 1 + random() % 20; i > 0; --i) {
            const auto begin = static_cast<std::int64_t>(random() % length);
            const auto size = static_cast<std::int64_t>(1 + random() % (round % 2 == 0 ? 500 : 50'000));
            wanted.push_back({0, begin, std::min(begin + size, length)});
        }
        const hts::SpanOptions options{.length = static_cast<std::int64_t>(1 + random() % 100'000),
                                       .margin = static_cast<std::int64_t>(random() % 2000)};
        for (const auto& file : f.files) check_cover(hts::decode_spans(*file, wanted, options), hts::merged(wanted));
    }
}

TEST_CASE("a contig without reads is one span, however long") {
    TemporaryDirectory directory;
    const std::string path = directory.file("in.bam");
    convert_sam(directory.write("in.sam",
                                "@HD\tVN:1.6\tSO:coordinate\n@SQ\tSN:c1\tLN:200000000\n@SQ\tSN:c2\tLN:200000000\n"
                                "r\t0\tc2\t100000001\t60\t4M\t*\t0\t0\tACGT\tIIII\n"),
                path, {}, true);
    const auto file = hts::AlignmentFile::open(path);
    const Intervals spans = hts::decode_spans(*file, hts::whole(file->contigs()));
    REQUIRE(spans.size() > 100);
    CHECK(spans[0] == hts::Interval{0, 0, 200'000'000});
    CHECK(spans[1].contig == 1);
    check_cover(spans, hts::whole(file->contigs()));
}

TEST_CASE("nothing wanted is no span, and without an index the intervals come back merged") {
    Fixture f;
    CHECK(hts::decode_spans(*f.files[0], {}).empty());
    std::filesystem::remove(f.directory.file("in.bam.bai"));
    const auto file = hts::AlignmentFile::open(f.directory.file("in.bam"));
    CHECK(hts::decode_spans(*file, {{0, 5, 9}, {0, 7, 20}}) == Intervals{{0, 5, 20}});
}
