// Candidates do not depend on where the reads' contig is cut into spans: cut by hand, since a run cuts where it is cheap.
#include "inputs.hpp"
#include "many_contigs.hpp"
#include "same_candidate.hpp"
#include "shared_data.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <vector>

using namespace spillway::test;

namespace {

/// Of [begin, end) of a contig, in spans of `length` bases.
std::vector<caller::Candidate> candidates_of(const caller::Inputs& inputs, const spillway::hts::Interval& all,
                                             std::int64_t length) {
    std::vector<caller::Candidate> candidates;
    spillway::hts::ReadStream stream(inputs.file(), inputs.filter());
    for (std::int64_t begin = all.begin; begin < all.end; begin += length) {
        const spillway::hts::Interval span{all.contig, begin, std::min(begin + length, all.end)};
        auto made = caller::candidates_of({false, span}, stream, inputs);
        while (auto candidate = made.next()) candidates.push_back(std::move(*candidate));
    }
    return candidates;
}

/// Returns the candidates.
std::vector<caller::Candidate> check_all_cuts(const std::array<std::string, 2>& alignments, const std::string& fasta,
                                              const spillway::hts::Interval& all) {
    const caller::Inputs first({.alignments = alignments[0], .reference = fasta}, [](const std::string&) {});
    const std::vector<caller::Candidate> whole = candidates_of(first, all, all.end - all.begin);
    REQUIRE(whole.size() > 60);
    for (const std::string& file : alignments) {
        const caller::Inputs inputs({.alignments = file, .reference = fasta}, [](const std::string&) {});
        for (const std::int64_t length : {std::int64_t{500}, std::int64_t{997}, std::int64_t{10'000}}) {
            CAPTURE(file, length);
            const std::vector<caller::Candidate> cut = candidates_of(inputs, all, length);
            CHECK(std::ranges::equal(cut, whole, same));
        }
    }
    return whole;
}

/// Whether a border between spans of 500 bases lies between two positions.
bool straddles(const spillway::hts::Interval& all, std::int64_t begin, std::int64_t end) {
    return (begin - all.begin) / 500 != (end - 1 - all.begin) / 500;
}

} // namespace

TEST_CASE("spans of 500, 997 and 10,000 bases make the candidates of the whole contig, from BAM and CRAM") {
    const ManyContigs inputs(2, 24'000);
    for (const std::int32_t contig : {0, 1}) {
        const spillway::hts::Interval all{contig, 0, 24'000};
        const auto candidates = check_all_cuts({inputs.bam, inputs.cram}, inputs.fasta, all);
        CHECK(std::ranges::any_of(candidates, [&](const caller::Candidate& candidate) {
            return std::ranges::any_of(candidate.queries,
                                       [&](const caller::Query& read) { return straddles(all, read.begin, read.end); });
        }));
    }
}

TEST_CASE("NA12878: spans of 500, 997 and 10,000 bases make the candidates of the whole stretch, from BAM and CRAM") {
    const auto folder = shared_data("data");
    if (!folder) return;
    const std::string name = *folder + "/NA12878_S1.chr20.10_10p1mb";
    const std::string fasta = *folder + "/ucsc.hg19.chr20.unittest.fasta.gz";
    const caller::Inputs inputs({.alignments = name + ".bam", .reference = fasta, .regions = {"chr20"}},
                                [](const std::string&) {});
    REQUIRE(inputs.tasks().size() > 0);
    const spillway::hts::Interval all{inputs.tasks()[0].span.contig, 10'000'000, 10'030'000};
    const auto candidates = check_all_cuts({name + ".bam", name + ".cram"}, fasta, all);
    CHECK(std::ranges::any_of(candidates, [&](const caller::Candidate& candidate) {
        return straddles(all, candidate.begin, candidate.end);
    }));
}
