// The binary as its user has it: limits, signals, full disks, and what is left behind.
#include "hts/sam_builder.hpp"
#include "process.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <poll.h>
#include <regex>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace spillway::test;

namespace {

/// Reads with an SNV every 100 bases, on one contig and again on many, and folders for the output and for what
/// spills.
struct Inputs {
    static constexpr int contigs = 40;

    TemporaryDirectory directory;
    std::string fasta, bam, cram, out, scratch;

    Inputs() {
        Genome genome;
        genome.random("c1", 40'000, 61);
        for (int i = 0; i < contigs; ++i) genome.add(part(i), genome.slice("c1", 1000 * i + 1, 1000 * i + 1000));
        SamBuilder sam(genome);
        sam.read_group("rg1", "S1");
        for (int i = -1; i < contigs; ++i) {
            const std::string contig = i < 0 ? "c1" : part(i);
            const auto size = static_cast<std::int64_t>(genome.bases(contig).size());
            sam.cover(contig, {.from = 1, .to = size, .step = 6}, {genome.snvs(contig, 150, size - 101, 100), {}});
        }
        fasta = genome.write(directory);
        bam = sam.bam(directory, "in.bam");
        cram = sam.cram(directory, "in.cram", fasta);
        out = directory.file("out");
        scratch = directory.file("scratch");
        std::filesystem::create_directory(out);
        std::filesystem::create_directory(scratch);
    }
    [[nodiscard]] static std::string part(int i) { return "part" + std::to_string(i); }
    [[nodiscard]] std::vector<std::string> command(const std::string& alignments, const std::string& output,
                                                   const std::vector<std::string>& more = {}) const {
        std::vector<std::string> all{SPILLWAY_CALL, "-v", "0", "-f", fasta, "-o", output, "--tmp-dir", scratch};
        all.insert(all.end(), more.begin(), more.end());
        all.push_back(alignments);
        return all;
    }
    [[nodiscard]] std::string vcf() const { return out + "/calls.vcf"; }
    /// Neither an output, whole or in part, nor anything that spilled.
    [[nodiscard]] bool nothing_left() const {
        return std::filesystem::is_empty(out) && std::filesystem::is_empty(scratch);
    }
};

/// A disk of one page in the place of a folder, where this user may mount one.
class SmallDisk {
public:
    explicit SmallDisk(const std::string& folder) {
        if (::mount("none", folder.c_str(), "tmpfs", 0, "size=4k") == 0) folder_ = folder;
    }
    ~SmallDisk() {
        if (!folder_.empty()) ::umount2(folder_.c_str(), MNT_DETACH);
    }
    SmallDisk(const SmallDisk&) = delete;
    SmallDisk& operator=(const SmallDisk&) = delete;

    [[nodiscard]] bool mounted() const { return !folder_.empty(); }

private:
    std::string folder_;
};

/// Feeds half of the reads to a run, then sends the signal, then feeds the rest but for its end: whoever has taken the
/// signal may be slow to tell, and the run must not end by itself meanwhile.
Outcome stopped_midway(const Inputs& inputs, int signal) {
    const std::string reads = read_file(inputs.bam);
    REQUIRE(reads.size() > 100'000); // Halves that no buffer holds.
    Process process(inputs.command("-", inputs.vcf(), {"--threads", "2"}));
    process.feed(std::string_view(reads).substr(0, reads.size() / 2));
    CHECK_FALSE(std::filesystem::exists(inputs.vcf()));
    process.send(signal);
    process.feed(std::string_view(reads).substr(reads.size() / 2, reads.size() / 2 - 1000));
    CHECK(process.ends());
    return process.wait();
}

} // namespace

TEST_CASE("a signal ends the run in order with 128 and its number, and leaves nothing") {
    const Inputs inputs;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        const Outcome outcome = stopped_midway(inputs, signal);
        CHECK(outcome.status == 128 + signal);
        CHECK(outcome.err.find("stopped on request") != std::string::npos);
        CHECK(inputs.nothing_left());
    }
}

TEST_CASE("a signal ends a run that waits for its standard input") {
    const Inputs inputs;
    for (const std::size_t fed : {10'000U, 100'000U}) {
        Process process(inputs.command("-", inputs.vcf(), {"--threads", "2"}));
        process.feed(std::string_view(read_file(inputs.bam)).substr(0, fed));
        process.send(SIGINT);
        REQUIRE(process.ends());
        const Outcome outcome = process.wait();
        CHECK(outcome.status == 128 + SIGINT);
        CHECK(outcome.err.find("stopped on request") != std::string::npos);
        CHECK(inputs.nothing_left());
    }
}

TEST_CASE("a second signal ends the process at once, also where the run cannot be stopped") {
    const Inputs inputs;
    const std::string pipe = inputs.directory.file("pipe");
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    REQUIRE(reader >= 0);
    ::fcntl(reader, F_SETPIPE_SZ, 4096); // less than what is written at a time
    for (const int second : {SIGINT, SIGTERM}) {
        Process process(inputs.command(inputs.bam, pipe));
        pollfd output{reader, POLLIN, 0};
        // That the last one has hung up is no news.
        while (process.runs() && (output.revents & POLLIN) == 0) ::poll(&output, 1, 1000);
        process.send(SIGINT); // It is in the middle of writing what nobody reads.
        process.send(second);
        CHECK(process.wait().status == 128 + second);
        CHECK(inputs.nothing_left());
        std::array<char, 4096> rest;
        while (::read(reader, rest.data(), rest.size()) > 0) {
        }
    }
    ::close(reader);
}

TEST_CASE("kill -9 leaves nothing") {
    const Inputs inputs;
    CHECK(stopped_midway(inputs, SIGKILL).status == 128 + SIGKILL);
    CHECK(inputs.nothing_left());
}

TEST_CASE("a run that ends leaves its output and nothing beside it; a run that fails leaves nothing") {
    const Inputs inputs;
    REQUIRE(run(inputs.command(inputs.bam, inputs.vcf(), {"--memory", "2M"})).status == 0);
    CHECK(std::filesystem::is_empty(inputs.scratch));
    CHECK(std::distance(std::filesystem::directory_iterator(inputs.out), {}) == 1);
    std::filesystem::remove(inputs.vcf());
    // Its end block is there; what lies before it is not.
    const std::string reads = read_file(inputs.bam);
    const std::string cut =
        inputs.directory.write("cut.bam", reads.substr(0, reads.size() / 2) + reads.substr(reads.size() - 28));
    const Outcome outcome = run(inputs.command(cut, inputs.vcf(), {"--memory", "2M"}));
    CHECK(outcome.status == 3);
    CHECK(outcome.err.find("cut.bam, after the read at c1:") != std::string::npos);
    CHECK(inputs.nothing_left());
}

TEST_CASE("progress is told where it is asked for, and nothing is where it is not and nobody watches") {
    const Inputs inputs;
    const auto err = [&](const std::vector<std::string>& more) {
        std::vector<std::string> command{SPILLWAY_CALL, "-f", inputs.fasta, "-o", inputs.vcf()};
        command.insert(command.end(), more.begin(), more.end());
        command.push_back(inputs.bam);
        const Outcome outcome = run(std::move(command));
        REQUIRE(outcome.status == 0);
        return outcome.err;
    };
    const std::string line = " of " + std::to_string(1 + Inputs::contigs) + " spans, ";
    CHECK(err({}).find(line) == std::string::npos);
    bool told = false; // a run may be over before it is time for a line
    for (int attempt = 0; attempt < 100 && !told; ++attempt) told = err({"--progress"}).find(line) != std::string::npos;
    CHECK(told);
}

TEST_CASE("the least memory that a run accepts is named where less is given, and suffices, for BAM and CRAM") {
    const Inputs inputs;
    REQUIRE(run(inputs.command(inputs.bam, inputs.vcf())).status == 0);
    const std::string expected = read_file(inputs.vcf());
    for (const std::string& file : {inputs.bam, inputs.cram}) {
        for (const std::string threads : {"1", "3"}) {
            std::filesystem::remove(inputs.vcf());
            const auto with = [&](const std::string& memory) {
                return run(inputs.command(file, inputs.vcf(), {"--threads", threads, "--memory", memory}));
            };
            const Outcome refused = with("100K");
            CHECK(refused.status == 2);
            CHECK(inputs.nothing_left());
            const std::string before = "below the floor of ", least = "allow at least ";
            CHECK(refused.err.find(before) != std::string::npos);
            REQUIRE(refused.err.find(least) != std::string::npos);
            const auto floor = std::stoull(refused.err.substr(refused.err.find(least) + least.size()));
            CHECK(with(std::to_string(floor - 1)).status == 2);
            CHECK(with(std::to_string(floor)).status == 0);
            CHECK(read_file(inputs.vcf()) == expected);
        }
    }
}

TEST_CASE("an output that cannot be written is exit status 4, names the file, and leaves nothing") {
    const Inputs inputs;
    const auto fails = [&](const std::string& output, Limits limits) {
        const Outcome outcome = run(inputs.command(inputs.bam, output), limits);
        CHECK(outcome.status == 4);
        CHECK(outcome.err.find(output == "-" ? "standard output" : output) != std::string::npos);
        CHECK(inputs.nothing_left());
    };
    fails("/dev/full", {});
    fails(inputs.out + "/absent/calls.vcf", {});
    for (const char* name : {"/calls.vcf", "/calls.vcf.gz", "/calls.bcf"}) {
        CAPTURE(name);
        fails(inputs.out + name, {.file_size = 512});
    }
    fails("-", {.file_size = 4096});
}

TEST_CASE("a full disk is exit status 4, names the file, and leaves nothing") {
    const Inputs inputs;
    const SmallDisk disk(inputs.out);
    if (!disk.mounted()) {
        std::cout << "SKIPPED: this user may not mount a small disk\n";
        return;
    }
    for (const char* name : {"/calls.vcf", "/calls.vcf.gz", "/calls.bcf"}) {
        const Outcome outcome = run(inputs.command(inputs.bam, inputs.out + name));
        CHECK(outcome.status == 4);
        CAPTURE(outcome.err);
        // The file itself, or its index where that is what does not fit.
        CHECK(std::regex_search(
            outcome.err, std::regex("writing: " + inputs.out + name + "(\\.tbi|\\.csi)?: No space left on device\n")));
        CHECK(inputs.nothing_left());
    }
}

TEST_CASE("few open files mean fewer workers, not a failed run") {
    const Inputs inputs;
    REQUIRE(run(inputs.command(inputs.bam, inputs.vcf(), {"--threads", "1"})).status == 0);
    const std::string expected = read_file(inputs.vcf());
    // Each contig is a task of its own.
    for (const rlim_t descriptors : {64U, 24U}) {
        for (const auto& file : {inputs.bam, inputs.cram}) {
            std::filesystem::remove(inputs.vcf());
            const Outcome outcome =
                run(inputs.command(file, inputs.vcf(), {"--threads", "100"}), {.descriptors = descriptors});
            CHECK(outcome.status == 0);
            CHECK(outcome.err == "");
            CHECK(read_file(inputs.vcf()) == expected);
        }
    }
}

TEST_CASE("inputs that do not fit are exit status 3, name the file, and leave nothing") {
    const Inputs inputs;
    const auto fails = [&](const std::string& alignments, const std::string& what) {
        const Outcome outcome = run(inputs.command(alignments, inputs.vcf()));
        CHECK(outcome.status == 3);
        CHECK(outcome.err.find(alignments) != std::string::npos);
        CHECK(outcome.err.find(what) != std::string::npos);
        CHECK(inputs.nothing_left());
    };
    const std::string reads = read_file(inputs.bam);
    fails(inputs.directory.write("short.bam", reads.substr(0, reads.size() / 2)), "truncated");
    fails(inputs.directory.write("text.bam", "no reads\n"), "neither BAM, CRAM nor SAM");
    Genome other;
    other.random("c1", 40'000, 61).random("decoy", 500, 62);
    SamBuilder lacking(other);
    lacking.read_group("rg1", "S1").cover("decoy", {.from = 100, .to = 400}, {{}});
    fails(lacking.bam(inputs.directory, "lacking.bam"), "decoy");
    SamBuilder unsorted(other);
    unsorted.read_group("rg1", "S1").keep_order();
    unsorted.read({.name = "first", .contig = "c1", .position = 500});
    unsorted.read({.name = "second", .contig = "c1", .position = 400});
    fails(unsorted.bam(inputs.directory, "unsorted.bam"), "second");
    fails(inputs.directory.file("absent.bam"), "No such file");
    const std::string index = read_file(inputs.bam + ".bai");
    inputs.directory.write("in.bam.bai", "no index");
    fails(inputs.bam, "in.bam.bai");
    inputs.directory.write("in.bam.bai", index);
    const std::string contigs = read_file(inputs.fasta + ".fai");
    std::filesystem::remove(inputs.fasta + ".fai");
    const auto names_reference = [&](const std::string& what) {
        const Outcome outcome = run(inputs.command(inputs.bam, inputs.vcf()));
        CHECK(outcome.status == 3);
        CHECK(outcome.err.find(what) != std::string::npos);
        CHECK(inputs.nothing_left());
        CHECK_FALSE(std::filesystem::exists(inputs.fasta + ".fai")); // made by nobody but its user
    };
    names_reference(inputs.fasta + ".fai");
    names_reference("samtools faidx");
    std::filesystem::remove(inputs.fasta);
    names_reference(inputs.fasta + ": No such file");
}
