// Equal calls, byte for byte, whichever instruction set aligns.
#include "called.hpp"

#include "hts/sam_builder.hpp"
#include "shared_data.hpp"
#include "spillway/align.hpp"
#include "spillway/error.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>

using namespace spillway::test;

namespace {

/// Sets SPILLWAY_ISA for as long as it lives.
class ForcedIsa {
public:
    explicit ForcedIsa(const std::string& name) { ::setenv("SPILLWAY_ISA", name.c_str(), 1); }
    ~ForcedIsa() { ::unsetenv("SPILLWAY_ISA"); }
    ForcedIsa(const ForcedIsa&) = delete;
    ForcedIsa& operator=(const ForcedIsa&) = delete;
};

/// Those that this machine has.
std::vector<std::string> isas() {
    std::vector<std::string> available;
    for (const std::string name : {"baseline", "sse4", "avx2", "avx512", "neon"}) {
        const ForcedIsa forced(name);
        try {
            (void)spillway::align("A", "A", {}, spillway::Span::local);
            available.push_back(name);
        } catch (const spillway::Error& error) {
            REQUIRE(error.code() == spillway::ErrorCode::usage);
        }
    }
    return available;
}

void check_every_isa(const TemporaryDirectory& directory, const caller::CallerOptions& options, std::size_t records) {
    const Called expected = call(directory, options);
    CHECK(expected.records.size() >= records);
    for (const std::string& isa : isas()) {
        INFO(isa);
        const ForcedIsa forced(isa);
        CHECK(call(directory, options).text == expected.text);
    }
}

TEST_CASE("the calls are the same bytes with every instruction set") {
    Genome genome;
    genome.random("c1", 6000, 71);
    SamBuilder sam(genome);
    sam.read_group("rg1", "S1");
    std::vector<Variant> first, second;
    for (std::int64_t at = 200; at < 5800; at += 90) {
        const std::string base = genome.slice("c1", at, at);
        const std::int64_t length = 1 + at % 14;
        if (at % 3 == 0) {
            first.push_back({"c1", at, base, std::string(1, genome.other("c1", at))});
        } else if (at % 3 == 1) {
            first.push_back({"c1", at, genome.slice("c1", at, at + length), base});
        } else {
            second.push_back({"c1", at, base, base + genome.slice("c1", at + 30, at + 30 + length)});
        }
    }
    sam.cover("c1", {.from = 1, .to = 6000, .step = 5}, {first, second});
    const TemporaryDirectory directory;
    check_every_isa(directory, {.alignments = sam.bam(directory, "in.bam"), .reference = genome.write(directory)}, 30);
}

TEST_CASE("the calls of real reads are the same bytes with every instruction set") {
    const auto folder = shared_data("data");
    if (!folder) return;
    const TemporaryDirectory directory;
    caller::CallerOptions options{.alignments = *folder + "/NA12878_S1.chr20.10_10p1mb.bam",
                                  .reference = *folder + "/ucsc.hg19.chr20.unittest.fasta.gz"};
    options.regions = {"chr20:10000001-10030000"};
    check_every_isa(directory, options, 20);
}

} // namespace
