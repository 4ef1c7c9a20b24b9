// Equal calls, byte for byte, whatever the number of threads, the memory, the format and the tiling.
#include "called.hpp"

#include "hts/sam_builder.hpp"
#include "long_contig.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <random>

using namespace spillway::test;

namespace {

struct Files {
    TemporaryDirectory directory;
    std::string fasta, bam, cram;
    std::int64_t size = 0;
};

/// Variants of all kinds, deletions at the right ends of long repeats among them, so that POS lies far from the read's
/// gap.
void make(Files& files) {
    std::mt19937_64 random(21);
    Genome genome;
    std::string bases;
    std::vector<std::pair<std::int64_t, std::int64_t>> runs; // position of the last base, unit
    for (int i = 0; i < 60; ++i) {
        for (int k = 0; k < 90; ++k) bases += "ACGT"[random() % 4];
        if (i % 3 == 0) {
            bases += 'G';
            for (int k = 0; k < 20; ++k) bases += "CA";
            bases += 'T';
            runs.emplace_back(static_cast<std::int64_t>(bases.size()) - 1, 2);
        }
    }
    genome.add("c1", bases).random("c2", 3000, 22);
    SamBuilder sam(genome);
    sam.read_group("rg1", "S1");
    for (const std::string contig : {"c1", "c2"}) {
        const auto size = static_cast<std::int64_t>(genome.bases(contig).size());
        for (int h = 0; h < 2; ++h) {
            std::vector<Variant> variants;
            std::size_t run = 0;
            for (std::int64_t at = 140; at < size - 150; at += 20 + static_cast<std::int64_t>(random() % 130)) {
                if (contig == "c1" && h == 0 && run < runs.size() && runs[run].first - 60 < at) {
                    const auto [last, unit] = runs[run++];
                    // VCF's anchored spelling at the right end of the run.
                    variants.push_back({contig, last - unit, genome.slice(contig, last - unit, last),
                                        genome.slice(contig, last - unit, last - unit)});
                    at = last + 40;
                    continue;
                }
                const auto kind = random() % 4;
                const std::string base = genome.slice(contig, at, at);
                if (kind == 0) {
                    variants.push_back({contig, at, genome.slice(contig, at, at + 2), base});
                } else if (kind == 1) {
                    variants.push_back({contig, at, base, base + "TTG"});
                } else {
                    variants.push_back({contig, at, base, std::string(1, genome.other(contig, at))});
                }
            }
            sam.cover(contig, {.from = 1, .to = size, .step = 7}, {variants});
        }
    }
    files.size = static_cast<std::int64_t>(bases.size());
    files.fasta = genome.write(files.directory);
    files.bam = sam.bam(files.directory, "in.bam");
    files.cram = sam.cram(files.directory, "in.cram", files.fasta);
}

} // namespace

TEST_CASE("the VCF is the same for every number of threads, region length, memory and format, and without an index") {
    TemporaryDirectory directory;
    Genome genome;
    genome.random("c1", 3000, 22);
    add_long_contig(genome);
    SamBuilder sam(genome);
    sam.read_group("rg1", "S1");
    sam.cover("c1", {.from = 1, .to = 3000, .step = 7}, {genome.snvs("c1", 150, 2800, 70), {}});
    cover_long_contig(sam, genome);
    caller::CallerOptions options{.reference = genome.write(directory)};
    const std::string bam = sam.bam(directory, "in.bam"),
                      cram = sam.cram(directory, "in.cram", options.reference, reads_in_slice);
    options.alignments = bam;
    const std::string expected = call(directory, options).text;
    REQUIRE(std::count(expected.begin(), expected.end(), '\n') > 150);
    for (const std::string& file : {bam, cram}) {
        options.alignments = file;
        for (const std::size_t threads : {1U, 2U, 3U, 8U}) {
            options.threads = threads;
            const std::uint64_t least = least_memory(directory, options);
            std::vector<std::uint64_t> spans;
            for (const std::int64_t region_length : region_lengths) {
                options.region_length = region_length;
                for (const std::uint64_t memory : {std::uint64_t{0}, least}) {
                    options.memory = memory;
                    CAPTURE(file, threads, region_length, memory);
                    const Called called = call(directory, options);
                    CHECK(called.text == expected);
                    if (memory == 0) spans.push_back(called.report.pipeline.sources);
                }
            }
            CHECK(spans[0] > spans[1]);
            CHECK(spans[1] > spans[2]);
        }
    }
    std::filesystem::remove(bam + ".bai");
    CHECK(call(directory, {.alignments = bam, .reference = options.reference, .threads = 2}).text == expected);
}

TEST_CASE("tiles given as regions, one after the other, are the whole, also where a POS shifts across a border") {
    Files files;
    make(files);
    const auto whole = call(files.directory, {.alignments = files.bam, .reference = files.fasta, .regions = {"c1"}});
    REQUIRE(whole.records.size() > 20);
    // Tiles that end just after each deletion's POS or just before: the gap itself lies up to 40 bases further right.
    for (const std::int64_t tile : {97, 610, 997}) {
        std::string together;
        for (std::int64_t begin = 1; begin <= files.size; begin += tile) {
            const std::string region =
                "c1:" + std::to_string(begin) + "-" + std::to_string(std::min(files.size, begin + tile - 1));
            together +=
                call(files.directory, {.alignments = files.bam, .reference = files.fasta, .regions = {region}}).body;
        }
        CHECK(together == whole.body);
    }
    std::string single;
    for (const auto& record : whole.records) {
        const std::string at = "c1:" + std::to_string(record.position) + "-" + std::to_string(record.position);
        single += call(files.directory, {.alignments = files.bam, .reference = files.fasta, .regions = {at}}).body;
    }
    CHECK(single == whole.body);
}
