// NA12878, chr20:10.0-10.1 Mb, where the data are at hand: equal bytes and reads decoded once, however the run is cut.
#include "called.hpp"

#include "inputs.hpp"
#include "shared_data.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <memory>

using namespace spillway::test;

namespace {

constexpr std::array<std::size_t, 4> threads = {1, 2, 3, 8};
constexpr std::array<std::int64_t, 3> region_lengths = {500, 10'000, 1'000'000};
/// What the machine has; the least that is accepted, so that sources are held back.
enum class Memory { all, least };
constexpr std::array<Memory, 2> memories = {Memory::all, Memory::least};

struct RealData {
    std::string fasta;
    std::array<std::string, 2> alignments; ///< BAM and CRAM.
    TemporaryDirectory directory;

    explicit RealData(const std::string& folder)
        : fasta(folder + "/ucsc.hg19.chr20.unittest.fasta.gz"), alignments{folder + "/NA12878_S1.chr20.10_10p1mb.bam",
                                                                           folder +
                                                                               "/NA12878_S1.chr20.10_10p1mb.cram"} {}

    [[nodiscard]] static std::unique_ptr<RealData> find() {
        const auto folder = shared_data("data");
        return folder ? std::make_unique<RealData>(*folder) : nullptr;
    }
    [[nodiscard]] Called called(const std::string& file, const std::string& regions, std::size_t workers = 2,
                                std::int64_t region_length = 0, Memory memory = Memory::all) const {
        caller::CallerOptions options{.alignments = file, .reference = fasta};
        if (!regions.empty()) options.regions = {regions};
        options.threads = workers;
        options.region_length = region_length;
        if (memory == Memory::least) options.memory = least_memory(directory, options);
        return call(directory, options);
    }
    /// The calls of a stretch of chr20, tile by tile.
    [[nodiscard]] std::string tiled(const std::string& file, std::int64_t from, std::int64_t to) const {
        std::string together;
        for (std::int64_t begin = from; begin <= to; begin += 997)
            together += called(file, stretch(begin, std::min(begin + 996, to))).body;
        return together;
    }
    [[nodiscard]] static std::string stretch(std::int64_t from, std::int64_t to) {
        return "chr20:" + std::to_string(from) + "-" + std::to_string(to);
    }
};

/// samtools view -c of either file.
constexpr double reads_in_file = 52'035;

} // namespace

TEST_CASE("NA12878: each pair of threads, region length, memory and format gives the same VCF") {
    const auto data = RealData::find();
    if (!data) return;
    const std::string part = RealData::stretch(10'000'001, 10'030'000);
    const auto expected = data->called(data->alignments[0], part, 1);
    REQUIRE(expected.records.size() > 100);
    for (std::size_t t = 0; t < threads.size(); ++t) {
        for (std::size_t r = 0; r < region_lengths.size(); ++r) {
            const auto memory = memories[(t + r) % 2];
            const auto& file = data->alignments[(t / 2 + r) % 2];
            CAPTURE(threads[t], region_lengths[r], memory == Memory::least, file);
            CHECK(data->called(file, part, threads[t], region_lengths[r], memory).text == expected.text);
        }
    }
}

TEST_CASE("NA12878: tiles of 997 bases, one after the other, are the whole") {
    const auto data = RealData::find();
    if (!data) return;
    const auto whole = data->called(data->alignments[0], RealData::stretch(10'000'001, 10'010'000));
    REQUIRE(whole.records.size() > 60);
    CHECK(data->tiled(data->alignments[0], 10'000'001, 10'010'000) == whole.body);
}

TEST_CASE("NA12878: reads are decoded once at every region length, from BAM and CRAM") {
    const auto data = RealData::find();
    if (!data) return;
    for (const auto& file : data->alignments) {
        for (const std::int64_t region_length : region_lengths) {
            const std::int64_t length = std::max(region_length, caller::shortest_span); // as the command line does
            const auto decoded = static_cast<double>(data->called(file, "", 2, length).report.reads_decoded);
            CAPTURE(file, region_length);
            CHECK(decoded >= reads_in_file);
            CHECK(decoded < 1.1 * reads_in_file);
        }
    }
}

TEST_CASE("NA12878: every combination of threads, region length, memory and format gives the same VCF", "[.long]") {
    const auto data = RealData::find();
    if (!data) return;
    const auto expected = data->called(data->alignments[0], "", 1);
    REQUIRE(expected.records.size() > 200);
    for (const auto workers : threads) {
        for (const auto region_length : region_lengths) {
            for (const auto memory : memories) {
                for (const auto& file : data->alignments) {
                    const auto called = data->called(file, "", workers, region_length, memory);
                    CAPTURE(workers, region_length, memory == Memory::least, file);
                    CHECK(called.text == expected.text);
                }
            }
        }
    }
}

TEST_CASE("NA12878: tiles of 997 bases over all of it, from BAM and CRAM, are the whole", "[.long]") {
    const auto data = RealData::find();
    if (!data) return;
    const auto whole = data->called(data->alignments[0], "");
    for (const auto& file : data->alignments) CHECK(data->tiled(file, 9'990'001, 10'110'000) == whole.body);
}
