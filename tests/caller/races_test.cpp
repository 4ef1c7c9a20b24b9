// The caller's whole run, for ThreadSanitizer: eight workers on shared inputs, from decoding to the ordered VCF.
#include "called.hpp"

#include "hts/sam_builder.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <thread>

using namespace spillway::test;

TEST_CASE("eight workers call from BAM and from CRAM without a race, and as one does") {
    TemporaryDirectory directory;
    Genome genome;
    SamBuilder sam(genome);
    sam.read_group("rg1", "S1");
    // A task is a contig at most, so many contigs keep all workers busy.
    for (int i = 0; i < 24; ++i) genome.random("c" + std::to_string(i), 1500, static_cast<std::uint64_t>(71 + i));
    for (const Genome::Contig& contig : genome.contigs()) {
        std::vector<Variant> variants;
        for (std::int64_t at = 200; at < 1400; at += 150) {
            const std::string base = genome.slice(contig.name, at, at);
            variants.push_back(
                {contig.name, at, base, at % 4 == 0 ? base + "GT" : std::string(1, genome.other(contig.name, at))});
        }
        sam.cover(contig.name, {.from = 1, .to = 1500, .step = 10}, {variants, {}});
    }
    caller::CallerOptions options{.reference = genome.write(directory)};
    const std::string bam = sam.bam(directory, "in.bam"), cram = sam.cram(directory, "in.cram", options.reference);
    options.alignments = bam;
    const std::string expected = call(directory, options).text;
    CHECK(std::count(expected.begin(), expected.end(), '\n') > 24 * 8);
    options.threads = 8;
    for (const std::string& file : {bam, cram}) {
        options.alignments = file;
        for (const std::uint64_t memory : {std::uint64_t{0}, least_memory(directory, options)}) {
            options.memory = memory;
            CHECK(call(directory, options).text == expected);
        }
    }
    // Stopped while all are at work: what a worker leaves is taken down by another thread.
    std::stop_source stop;
    options.memory = 0;
    options.output = directory.file("stopped.vcf");
    caller::RunOptions how{.stop = stop.get_token(), .warn = {}, .progress = {}};
    std::jthread later([&] { stop.request_stop(); });
    try {
        (void)caller::run(options, how);
        CHECK(read_file(options.output) == expected);
    } catch (const spillway::Error& error) {
        CHECK(error.code() == spillway::ErrorCode::cancelled);
    }
}
