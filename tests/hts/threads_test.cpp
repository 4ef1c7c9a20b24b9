#include "hts/read_collector.hpp"
#include "hts/sam_builder.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <thread>

using namespace spillway;
using namespace spillway::test;

TEST_CASE("streams of several threads share a file and its reference") {
    TemporaryDirectory directory;
    Genome genome;
    genome.random("c1", 20'000, 1).random("c2", 20'000, 2);
    SamBuilder sam(genome);
    sam.read_group("rg1", "S1");
    sam.cover("c1", {.from = 1, .to = 20'000, .step = 10}, {{}});
    sam.cover("c2", {.from = 1, .to = 20'000, .step = 10}, {{}});
    const std::string fasta = genome.write(directory);
    const hts::Reference reference(fasta);
    for (const std::string& path : {sam.bam(directory, "in.bam"), sam.cram(directory, "in.cram", fasta)}) {
        const auto file = hts::AlignmentFile::open(path, fasta);
        std::vector<hts::Interval> tiles;
        for (std::int32_t contig = 0; contig < 2; ++contig)
            for (std::int64_t begin = 0; begin < 20'000; begin += 1000) tiles.push_back({contig, begin, begin + 1000});
        std::vector<std::vector<SeenRead>> found(tiles.size());
        std::atomic<std::size_t> next = 0;
        std::atomic<bool> same = true;
        std::vector<std::thread> workers;
        for (int worker = 0; worker < 8; ++worker)
            workers.emplace_back([&] {
                for (std::size_t tile; (tile = next.fetch_add(1)) < tiles.size();) {
                    // Opened anew each time: taking and dropping a share of the file must be safe too.
                    hts::ReadStream stream(file, {});
                    const std::string& name = file->contigs()[static_cast<std::size_t>(tiles[tile].contig)].name;
                    if (*reference.contig(name) != genome.bases(name)) same = false;
                    stream.seek(tiles[tile]);
                    found[tile] = drain(stream);
                }
            });
        for (std::thread& worker : workers) worker.join();
        CHECK(same);
        hts::ReadStream stream(file, {});
        for (std::size_t tile = 0; tile < tiles.size(); ++tile) {
            stream.seek(tiles[tile]);
            REQUIRE(found[tile] == drain(stream));
        }
    }
}
