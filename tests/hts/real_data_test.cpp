// The same reads from a BAM and a CRAM of NA12878, where the data are at hand: SPILLWAY_SHARED, or shared/ beside the
// source.
#include "hts/read_collector.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>

using namespace spillway;
using namespace spillway::test;

TEST_CASE("NA12878's BAM and CRAM give the same reads, each decoded once, whatever the spans") {
    const char* const given = std::getenv("SPILLWAY_SHARED");
    const std::filesystem::path data =
        (given != nullptr ? std::filesystem::path(given) : std::filesystem::path(SPILLWAY_SOURCE) / ".." / "shared") /
        "data";
    const std::string stem = (data / "NA12878_S1.chr20.10_10p1mb").string();
    const std::string fasta = (data / "ucsc.hg19.chr20.unittest.fasta.gz").string();
    if (!std::filesystem::exists(stem + ".bam")) {
        WARN("skipped: no " + stem + ".bam");
        return;
    }
    // samtools view -c of the file, and with -F 1796.
    constexpr std::uint64_t in_file = 52'035, unfiltered = 51'576;
    const auto bam = read_all(stem + ".bam");
    CHECK(bam.size() == unfiltered);
    CHECK(read_all(stem + ".cram", fasta) == bam);
    for (const char* ending : {".bam", ".cram"}) {
        const auto file = hts::AlignmentFile::open(stem + ending, fasta);
        const std::int32_t contig = file->find_contig("chr20").value();
        const hts::Interval region{contig, 9'990'000, 10'110'000};
        for (const std::int64_t length : {20'000, 1'000'000}) {
            constexpr std::int64_t margin = 300;
            const auto spans = hts::decode_spans(*file, {region}, {length, margin});
            hts::ReadStream stream(file, {});
            std::vector<SeenRead> reads;
            for (const hts::Interval& span : spans) {
                stream.seek({contig, span.begin - margin, span.end + margin});
                for (SeenRead& read : drain(stream))
                    if (read.position - 1 >= span.begin && read.position - 1 < span.end)
                        reads.push_back(std::move(read));
            }
            CAPTURE(ending, length, spans.size());
            CHECK(reads == bam);
            CHECK(stream.counts().decoded >= in_file);
            CHECK(static_cast<double>(stream.counts().decoded) < 1.1 * static_cast<double>(in_file));
        }
    }
}
