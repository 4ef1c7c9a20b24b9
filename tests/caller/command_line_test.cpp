#include "options.hpp"

#include "inputs.hpp"

#include "hts/sam_builder.hpp"
#include "temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <sys/wait.h>

using namespace spillway::test;

namespace {

caller::CommandLine parsed(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "spillway-call");
    return caller::parse(static_cast<int>(arguments.size()), arguments.data());
}

/// Exit status of the binary; what it says goes into the directory's "err".
int run_binary(const TemporaryDirectory& directory, const std::string& arguments) {
    const std::string command =
        std::string(SPILLWAY_CALL) + " " + arguments + " 2>" + directory.file("err") + " >" + directory.file("out");
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace

TEST_CASE("flags follow bcftools") {
    const auto line = parsed({"-f",        "ref.fa",   "-r",        "c1:5-9,c2", "-R",   "x.bed",      "-o",
                              "calls.out", "-O",       "z",         "--threads", "3",    "--memory",   "2G",
                              "--tmp-dir", "/var/tmp", "--tmp-dir", "/ssd",      "-s",   "NA1",        "-v",
                              "2",         "--gpu",    "off",       "--resume",  "kept", "--progress", "in.bam"});
    REQUIRE(line.options);
    CHECK(line.options->reference == "ref.fa");
    CHECK(line.options->regions == std::vector<std::string>{"c1:5-9,c2"});
    CHECK(line.options->regions_file == "x.bed");
    CHECK(line.options->output == "calls.out");
    CHECK(line.options->format == spillway::hts::VcfFormat::bgzip);
    CHECK(line.options->threads == 3);
    CHECK(line.options->memory == std::uint64_t{2} << 30);
    CHECK(line.options->temporary_directories == std::vector<std::string>{"/var/tmp", "/ssd"});
    CHECK(line.options->sample_name == "NA1");
    CHECK(line.options->verbosity == 2);
    CHECK(line.options->gpu == spillway::Gpu::off);
    CHECK(line.options->resume_directory == "kept");
    CHECK(line.options->progress);
    CHECK(line.options->alignments == "in.bam");
    CHECK_FALSE(parsed({"-f", "ref.fa", "in.bam"}).options->progress);
    CHECK(line.options->temporary_limit == 0);
    CHECK(parsed({"-f", "ref.fa", "--tmp-dir", "/ssd", "--tmp-limit", "3M", "in.bam"}).options->temporary_limit ==
          std::uint64_t{3} << 20);
    CHECK(parsed({"-f", "ref.fa", "--tmp-dir", "/ssd", "--tmp-limit", "much", "in.bam"}).exit_code == 2);
    CHECK(parsed({"-f", "ref.fa", "--tmp-limit", "3M", "in.bam"}).exit_code == 2); // of what directory?
    CHECK(parsed({"-f", "ref.fa", "--gpu", "required", "in.bam"}).options->gpu == spillway::Gpu::required);
    CHECK(parsed({"-f", "ref.fa", "--gpu", "maybe", "in.bam"}).exit_code == 2);
}

TEST_CASE("a profile is named or found, and a region's length is the profile's unless given") {
    CHECK_FALSE(parsed({"-f", "ref.fa", "in.bam"}).options->profile);
    CHECK(parsed({"-f", "ref.fa", "in.bam"}).options->region_length == 0);
    CHECK_FALSE(parsed({"-f", "ref.fa", "--profile", "auto", "in.bam"}).options->profile);
    CHECK(parsed({"-f", "ref.fa", "--profile", "ont", "in.bam"}).options->profile == spillway::hts::Profile::ont);
    CHECK(parsed({"-f", "ref.fa", "--region-length", "400000", "in.bam"}).options->region_length == 400'000);
    CHECK(parsed({"-f", "ref.fa", "--region-length", "500", "in.bam"}).options->region_length == caller::shortest_span);
    CHECK(parsed({"-f", "ref.fa", "--profile", "wg", "in.bam"}).exit_code == 2);
}

TEST_CASE("sizes are bytes with powers of 1024, and nothing else is a size") {
    const auto memory = [](const char* text) {
        const auto line = parsed({"-f", "ref.fa", "--memory", text, "in.bam"});
        return line.options ? std::optional(line.options->memory) : std::nullopt;
    };
    CHECK(memory("1000") == 1000U);
    CHECK(memory("4K") == 4096U);
    CHECK(memory("1.5g") == std::uint64_t{3} << 29);
    CHECK(memory("3GiB") == std::uint64_t{3} << 30);
    for (const char* wrong : {"", "G", "1X", "99999999999T"}) CHECK_FALSE(memory(wrong));
}

TEST_CASE("the binary exits with 0, 2 for usage and 3 for input, and writes nothing where it failed") {
    TemporaryDirectory directory;
    Genome genome;
    genome.random("c1", 1000, 31);
    SamBuilder sam(genome);
    sam.read_group("rg1", "S1");
    const std::string reference(1, genome.at("c1", 500)), alternate(1, genome.other("c1", 500));
    sam.cover("c1", {.from = 300, .to = 700}, {{}, {{"c1", 500, reference, alternate}}});
    const std::string bam = sam.bam(directory, "in.bam"), fasta = genome.write(directory),
                      out = directory.file("calls.vcf.gz");
    CHECK(run_binary(directory, "--help") == 0);
    CHECK(run_binary(directory, "--version") == 0);
    CHECK(read_file(directory.file("out")).find("htslib") != std::string::npos);
    CHECK(run_binary(directory, "--no-such-flag") == 2);
    CHECK(run_binary(directory, bam) == 2);
    CHECK(run_binary(directory, "-f " + fasta + " --memory lots " + bam) == 2);
    CHECK(run_binary(directory, "-f " + fasta + " -r nowhere:1-5 -o " + out + " " + bam) == 2);
    CHECK(run_binary(directory, "-f " + fasta + " -o " + out + " " + directory.file("absent.bam")) == 3);
    CHECK(read_file(directory.file("err")).find("absent.bam") != std::string::npos);
    CHECK(run_binary(directory, "-f " + directory.file("absent.fa") + " -o " + out + " " + bam) == 3);
    CHECK(read_file(directory.file("err")).find("absent.fa") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(out));
    CHECK(run_binary(directory, "-f " + fasta + " -o " + out + " " + bam) == 0);
    CHECK(std::filesystem::exists(out));
    CHECK(std::filesystem::exists(out + ".tbi"));
    CHECK(run_binary(directory, "-f " + fasta + " " + bam) == 0);
    CHECK(read_file(directory.file("out")).find("c1\t500\t") != std::string::npos);
}
