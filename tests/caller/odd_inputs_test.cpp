// Odd but legal inputs that people met, as they come with the shared data; input_test.cpp builds the like.
#include "called.hpp"

#include "hts/expect_error.hpp"
#include "hts/sam_builder.hpp"
#include "shared_data.hpp"

#include <catch2/catch.hpp>

#include <functional>
#include <map>
#include <sstream>

using namespace spillway::test;

namespace {

/// With its case kept, and written anew with an index.
Genome genome_of(const std::string& fasta) {
    Genome genome;
    std::istringstream lines(read_file(fasta));
    std::string name, bases;
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with('>')) {
            bases += line;
            continue;
        }
        if (!name.empty()) genome.add(name, bases);
        name = line.substr(1, line.find(' ') - 1);
        bases.clear();
    }
    return genome.add(name, bases);
}

struct Expected {
    std::vector<std::string> calls = {}; ///< As texts() has them.
    std::string depths = {};             ///< AD of each call.
    caller::CallerOptions options = {};  ///< Beside the case's files.
    std::size_t warnings = 0;
    std::string error = {}; ///< What the message must name; empty: no error.
};

const std::vector<std::string> control = {"c1:500 T>C 0/1"};

const std::map<std::string, Expected> expectations = {
    {"base_het", {.calls = control, .depths = "15,15"}},
    {"qual_missing", {.calls = control, .depths = "15,15"}},
    {"seq_star", {.calls = control, .depths = "15,15"}},
    {"zero_len", {.calls = control, .depths = "16,15"}},
    {"no_match_cigar", {.calls = control, .depths = "15,16"}},
    {"cigar_N", {.calls = {"c1:100 C>T 0/1"}, .depths = "15,15"}},
    {"cigar_eqx", {.calls = control, .depths = "15,15"}},
    {"overhang", {}},
    {"contig_edges", {.calls = {"c1:1 T>C 0/1", "c1:52 G>A 0/1"}, .depths = "10,10"}},
    {"iupac_ref", {}},
    {"lowercase_ref", {.calls = control, .depths = "15,15"}},
    {"missing_in_fasta",
     {.calls = control, .depths = "15,15", .options = {.skip_missing_contigs = true}, .warnings = 1}},
    {"empty_contigs", {.calls = {"c3:500 T>C 0/1"}, .depths = "15,15"}},
    {"no_rg", {.calls = control, .depths = "15,15", .warnings = 1}},
    {"multi_rg_same_sm", {.calls = control, .depths = "16,16"}},
    {"two_samples", {.calls = control, .options = {.sample_name = "S1"}}},
    {"flags", {}},
    {"mate_overlap", {.calls = control, .depths = "7,3"}},
    {"deep", {.calls = {"c1:500 T>C 0/0"}, .depths = "19800,200"}},
    {"unsorted", {.error = "h28"}},
    {"homopolymer", {.calls = {"c1:299 GA>G 0/1"}, .depths = "12,12"}},
    {"mnp", {.calls = {"c1:500 T>C 0/1", "c1:501 A>G 0/1", "c1:600 A>G 0/1", "c1:601 C>T 0/1"}, .depths = "12,12"}},
    {"bed_odd", {.calls = control, .depths = "15,15"}},
    {"bed_empty", {}},
    {"no_reads", {}},
};

} // namespace

TEST_CASE("every odd input of the shared data gives what it must") {
    const auto folder = shared_data("cases");
    if (!folder) return;
    std::istringstream rows(read_file(*folder + "/cases.tsv"));
    std::string row;
    std::getline(rows, row); // column names
    std::size_t cases = 0;
    while (std::getline(rows, row)) {
        const std::string id = row.substr(0, row.find('\t')), files = *folder + "/" + id + "/";
        CAPTURE(id);
        REQUIRE(expectations.contains(id));
        const Expected& expected = expectations.at(id);
        TemporaryDirectory directory;
        caller::CallerOptions options = expected.options;
        options.reference = genome_of(files + "ref.fa").write(directory);
        if (std::filesystem::exists(files + "regions.bed")) options.regions_file = files + "regions.bed";
        const std::string sam = files + (std::filesystem::exists(files + "in.sam") ? "in.sam" : "in.sam.gz");
        options.alignments = directory.file(id + ".bam");
        convert_sam(sam, options.alignments, {}, expected.error.empty());
        if (!expected.error.empty()) {
            CHECK(says(error_of([&] { (void)call(directory, options); }), expected.error));
        } else {
            const auto called = call(directory, options);
            CHECK(texts(called.records) == expected.calls);
            CHECK(called.warnings.size() == expected.warnings);
            if (!expected.depths.empty())
                for (const auto& record : called.records) CHECK(record.format.at("AD") == expected.depths);
        }
        ++cases;
    }
    CHECK(cases == expectations.size());
}
