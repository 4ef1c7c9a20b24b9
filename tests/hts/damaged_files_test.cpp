#include "hts/expect_error.hpp"
#include "hts/read_collector.hpp"
#include "hts/sam_builder.hpp"

#include <catch2/catch.hpp>

#include <random>

using namespace spillway;
using namespace spillway::test;

namespace {

struct Fixture {
    TemporaryDirectory directory;
    Genome genome;
    std::string fasta, bam, cram;

    Fixture() {
        genome.random("c1", 3000, 1);
        SamBuilder sam(genome);
        sam.read_group("rg1", "S1").cover("c1", {.from = 1, .to = 3000, .step = 1}, {{}});
        fasta = genome.write(directory);
        bam = sam.bam(directory, "in.bam");
        cram = sam.cram(directory, "in.cram", fasta);
    }
};

} // namespace

TEST_CASE("a file cut anywhere is an input error that names it") {
    Fixture f;
    for (const std::string& path : {f.bam, f.cram}) {
        const std::string bytes = read_file(path);
        for (std::size_t kept = 0; kept < bytes.size(); kept += bytes.size() / 23 + 1) {
            const std::string cut = f.directory.write("cut" + path.substr(path.rfind('.')), bytes.substr(0, kept));
            const Error error = error_of([&] { read_all(cut, f.fasta); });
            CHECK(error.code() == ErrorCode::input);
            CHECK(says(error, cut));
        }
    }
}

TEST_CASE("a BAM that lost its middle but has its end block says after which read") {
    Fixture f;
    const std::string bytes = read_file(f.bam);
    const std::string path =
        f.directory.write("hole.bam", bytes.substr(0, bytes.size() / 2) + bytes.substr(bytes.size() - 28));
    const Error error = error_of([&] { read_all(path); });
    CHECK(error.code() == ErrorCode::input);
    CHECK(says(error, path));
    CHECK(says(error, "after the read at c1:"));
    CHECK(says(error, "truncated"));
}

TEST_CASE("changed bytes are an input error or read as something, never a crash") {
    Fixture f;
    std::mt19937_64 random(5);
    std::size_t refused = 0;
    for (const std::string& path : {f.bam, f.cram}) {
        const std::string bytes = read_file(path);
        for (int round = 0; round < 40; ++round) {
            std::string changed = bytes;
            changed[random() % changed.size()] ^= static_cast<char>(1 + random() % 255);
            const std::string target = f.directory.write("changed" + path.substr(path.rfind('.')), changed);
            try {
                read_all(target, f.fasta);
            } catch (const Error& error) {
                CHECK(error.code() == ErrorCode::input);
                ++refused;
            }
        }
    }
    CHECK(refused > 40);
}
