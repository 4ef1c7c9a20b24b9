// Windows must not depend on where reading begins and ends: see windows.hpp.
#include "haplotypes.hpp"
#include "windows.hpp"

#include "hts/sam_builder.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>

using namespace caller;
using spillway::hts::Interval;
using spillway::test::Genome;
using spillway::test::SamBuilder;
using spillway::test::TemporaryDirectory;

namespace {

/// What a window holds, by value.
struct Seen {
    std::int64_t begin, end;
    std::vector<std::uint64_t> reads;
    friend bool operator==(const Seen&, const Seen&) = default;
};

struct Sample {
    TemporaryDirectory directory;
    std::string fasta, bam;
    std::shared_ptr<const std::string> contig;
    std::shared_ptr<const spillway::hts::AlignmentFile> file;
};

/// Variants of all kinds, in places so dense that runs must be cut.
void make(Sample& sample, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Genome genome;
    std::string bases;
    while (bases.size() < 12'000) {
        if (random() % 4 == 0) {
            const std::string unit = std::string(1, "ACGT"[random() % 4]) + (random() % 2 ? "T" : "");
            for (std::uint64_t i = 0; i < 4 + random() % 12; ++i) bases += unit;
        } else {
            for (int i = 0; i < 60; ++i) bases += "ACGT"[random() % 4];
        }
    }
    genome.add("c1", bases);
    SamBuilder sam(genome);
    sam.read_group("rg1", "S1");
    for (int h = 0; h < 2; ++h) {
        std::vector<spillway::test::Variant> variants;
        for (std::int64_t at = 150; at < static_cast<std::int64_t>(bases.size()) - 200;) {
            const bool dense = (at / 1500) % 2 == 0;
            const auto kind = random() % 5;
            if (kind == 0) {
                variants.push_back({"c1", at, genome.slice("c1", at, at + 3), genome.slice("c1", at, at)});
            } else if (kind == 1) {
                variants.push_back({"c1", at, genome.slice("c1", at, at), genome.slice("c1", at, at) + "GT"});
            } else {
                variants.push_back({"c1", at, genome.slice("c1", at, at), std::string(1, genome.other("c1", at))});
            }
            at += dense ? 8 + static_cast<std::int64_t>(random() % 40) : 60 + static_cast<std::int64_t>(random() % 400);
        }
        spillway::test::Coverage coverage;
        coverage.from = 1;
        coverage.to = static_cast<std::int64_t>(bases.size());
        coverage.step = 9;
        sam.cover("c1", coverage, {variants});
    }
    for (int i = 0; i < 60; ++i) { // Clipped ends, several at a place.
        const auto at = static_cast<std::int64_t>(500 + random() % 30 * 371);
        sam.read({.name = "clip" + std::to_string(i), .contig = "c1", .position = at, .cigar = "60M40S"});
        sam.read({.name = "begin" + std::to_string(i), .contig = "c1", .position = at + 60, .cigar = "40S60M"});
    }
    sample.fasta = genome.write(sample.directory);
    sample.bam = sam.bam(sample.directory, "in.bam");
    sample.contig = std::make_shared<const std::string>(bases);
    sample.file = spillway::hts::AlignmentFile::open(sample.bam, sample.fasta);
}

std::vector<Seen> windows_in(const Sample& sample, std::int64_t begin, std::int64_t end) {
    std::vector<Seen> seen;
    spillway::hts::ReadStream stream(sample.file, {});
    stream.seek({0, std::max<std::int64_t>(0, begin - window_reach), end + window_reach});
    WindowMaker maker({0, begin, end}, sample.contig);
    const auto take = [&] {
        while (const auto window = maker.pop()) {
            Seen one{window->begin, window->end, {}};
            for (const auto* read : window->reads) one.reads.push_back(read->name_hash);
            seen.push_back(std::move(one));
        }
    };
    while (const auto block = stream.next()) {
        for (const auto& read : block->reads()) {
            maker.push(read, block);
            take();
        }
    }
    maker.finish();
    take();
    return seen;
}

} // namespace

TEST_CASE("windows of tiles of any size, put together, are the windows of the whole") {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
        Sample sample;
        make(sample, seed);
        const auto size = static_cast<std::int64_t>(sample.contig->size());
        const auto whole = windows_in(sample, 0, size);
        REQUIRE(whole.size() > 20);
        for (const std::int64_t tile : {97, 1000, 4096}) {
            std::vector<Seen> together;
            for (std::int64_t begin = 0; begin < size; begin += tile) {
                const auto part = windows_in(sample, begin, std::min(size, begin + tile));
                together.insert(together.end(), part.begin(), part.end());
            }
            REQUIRE(together == whole);
        }
    }
}

TEST_CASE("windows are in order, apart, no longer than promised, and long runs are cut") {
    Sample sample;
    make(sample, 4);
    const auto whole = windows_in(sample, 0, static_cast<std::int64_t>(sample.contig->size()));
    std::size_t cut = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
        CHECK(whole[i].end - whole[i].begin <= longest_window);
        if (i == 0) continue;
        CHECK(whole[i].begin > whole[i - 1].begin);
        if (whole[i].begin <= whole[i - 1].end + join_gap) ++cut;
    }
    CHECK(cut > 0);
}

TEST_CASE("each window has exactly the reads that touch its slice") {
    Sample sample;
    make(sample, 5);
    spillway::hts::ReadStream stream(sample.file, {});
    std::vector<std::shared_ptr<const spillway::hts::ReadBlock>> blocks;
    while (auto block = stream.next()) blocks.push_back(std::move(block));
    for (const auto& window : windows_in(sample, 0, static_cast<std::int64_t>(sample.contig->size()))) {
        std::multiset<std::uint64_t> expected;
        for (const auto& block : blocks) {
            for (const auto& read : block->reads()) {
                if (read.begin < window.end + flank && read.end > window.begin - flank) expected.insert(read.name_hash);
            }
        }
        REQUIRE(std::multiset<std::uint64_t>(window.reads.begin(), window.reads.end()) == expected);
    }
}
