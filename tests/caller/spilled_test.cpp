// A caller whose candidates really go to disk: while the output is slow workers run ahead, as far as memory allows and
// then on disk, and the VCF is the same.
#include "called.hpp"

#include "base/file.hpp"
#include "hts/sam_builder.hpp"
#include "process.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>

using namespace spillway::test;

namespace {

/// Many contigs, each a span of its own, and more calls than the output's buffer holds.
struct Inputs {
    Inputs() {
        constexpr std::int64_t size = 2400;
        Genome genome;
        for (int i = 0; i < 40; ++i) genome.random("c" + std::to_string(i), size, 81 + static_cast<std::uint64_t>(i));
        SamBuilder sam(genome);
        sam.read_group("rg1", "S1");
        for (int i = 0; i < 40; ++i) {
            const std::string contig = "c" + std::to_string(i);
            std::vector<Variant> variants;
            for (std::int64_t at = 150; at < size - 100; at += 70) {
                variants.push_back(
                    {contig, at, std::string(1, genome.at(contig, at)), std::string(1, genome.other(contig, at))});
            }
            sam.cover(contig, {.from = 1, .to = size, .step = 6}, {variants, {}});
        }
        fasta = genome.write(directory);
        bam = sam.bam(directory, "in.bam");
        cram = sam.cram(directory, "in.cram", fasta);
    }
    [[nodiscard]] caller::CallerOptions options(const std::string& alignments) const {
        return {.alignments = alignments, .reference = fasta, .temporary_directories = {scratch.path()}};
    }

    /// Budgets to try, the first about what a run of three threads takes where it has all it wants. What a process
    /// holds beside candidates is the allocator's business: some budget lies where they make the difference.
    [[nodiscard]] std::vector<std::uint64_t> budgets() const {
        caller::CallerOptions unlimited = options(bam);
        unlimited.threads = 3;
        std::vector<std::uint64_t> all;
        for (std::uint64_t memory = call(directory, unlimited).report.pipeline.memory_peak; memory > 600'000;
             memory -= memory / 6)
            all.push_back(memory);
        REQUIRE(!all.empty());
        return all;
    }

    TemporaryDirectory directory, scratch;
    std::string fasta, bam, cram;
};

/// An output that takes nothing until something has been spilled, though not for ever.
class SlowOutput : public spillway::FileSystem {
public:
    std::atomic<bool> spilled{false};

    std::int64_t append(int file, std::span<const std::byte> bytes) override {
        for (int nap = 0; !spilled && nap < 1000; ++nap) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return FileSystem::append(file, bytes);
    }
};

/// The binary, whose output goes into a pipe that is not read for now.
class PipedCall {
public:
    PipedCall(const Inputs& inputs, std::uint64_t memory)
        : pipe_(opened(inputs)),
          process({SPILLWAY_CALL, "-v", "0", "-f", inputs.fasta, "-o", inputs.directory.file("pipe"), "--tmp-dir",
                   inputs.scratch.path(), "--threads", "3", "--memory", std::to_string(memory), inputs.bam}) {}
    ~PipedCall() { ::close(pipe_); }
    PipedCall(const PipedCall&) = delete;
    PipedCall& operator=(const PipedCall&) = delete;

    /// Bytes of spilled candidates on the disk, once there are some, or 0 when no more are coming.
    [[nodiscard]] std::uint64_t spilled_bytes(const Inputs& inputs) const {
        for (int nap = 0; nap < 1000; ++nap) {
            std::uint64_t bytes = 0;
            std::error_code gone;
            const std::string descriptors = "/proc/" + std::to_string(process.id()) + "/fd";
            for (const auto& entry : std::filesystem::directory_iterator(descriptors, gone)) {
                struct stat status {};
                const std::string target = std::filesystem::read_symlink(entry.path(), gone);
                if (target.starts_with(inputs.scratch.path().string() + '/') &&
                    ::stat(entry.path().c_str(), &status) == 0)
                    bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;
            }
            if (bytes > 0) return bytes;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return 0;
    }
    /// Reads the output to its end.
    void read_on() const {
        std::array<char, 4096> buffer;
        while (process.runs()) {
            if (::read(pipe_, buffer.data(), buffer.size()) <= 0)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }

private:
    static int opened(const Inputs& inputs) {
        const std::string path = inputs.directory.file("pipe");
        REQUIRE((::mkfifo(path.c_str(), 0600) == 0 || errno == EEXIST));
        const int pipe = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        REQUIRE(pipe >= 0);
        ::fcntl(pipe, F_SETPIPE_SZ, 4096);
        return pipe;
    }

    int pipe_;

public:
    Process process;
};

} // namespace

TEST_CASE("killed or stopped while it has spilled to the disk, the caller leaves nothing there") {
    const Inputs inputs;
    const std::vector<std::uint64_t> budgets = inputs.budgets();
    for (const int signal : {SIGKILL, SIGINT}) {
        bool had_spilled = false;
        for (auto memory = budgets.begin(); !had_spilled && memory != budgets.end(); ++memory) {
            PipedCall call(inputs, *memory);
            had_spilled = call.spilled_bytes(inputs) > 0;
            call.process.send(signal);
            call.read_on(); // Who is in the middle of writing stops then.
            const int status = call.process.wait().status;
            CAPTURE(signal, *memory);
            CHECK((status == 128 + signal || (status == 0 && !had_spilled)));
            CHECK(std::filesystem::is_empty(inputs.scratch.path()));
        }
        CHECK(had_spilled);
    }
}

TEST_CASE("a caller that runs ahead of a slow output spills, calls the same from BAM and CRAM, and leaves nothing") {
    const Inputs inputs;
    const Called expected = call(inputs.directory, inputs.options(inputs.bam));
    REQUIRE(expected.text.size() > 80'000);
    REQUIRE(expected.report.pipeline.spilled == 0);
    const std::vector<std::uint64_t> budgets = inputs.budgets();
    for (const std::string& file : {inputs.bam, inputs.cram}) {
        std::uint64_t bytes = 0;
        for (auto memory = budgets.begin(); bytes == 0 && memory != budgets.end(); ++memory) {
            caller::CallerOptions options = inputs.options(file);
            options.threads = 3;
            options.memory = *memory;
            const auto output = std::make_shared<SlowOutput>();
            caller::RunOptions how;
            how.files = output;
            how.progress = [&](const spillway::Progress& now) {
                if (now.spilled_bytes > 0) output->spilled = true;
            };
            CAPTURE(file, *memory);
            const Called called = call(inputs.directory, options, std::move(how));
            CHECK(called.text == expected.text);
            CHECK(called.report.pipeline.restored == called.report.pipeline.spilled);
            CHECK(std::filesystem::is_empty(inputs.scratch.path()));
            bytes = called.report.pipeline.spilled_bytes;
        }
        CHECK(bytes > 0);
    }
}

TEST_CASE(
    "the VCF is the same for all threads and budgets, from what a run takes down to the least, from BAM and CRAM") {
    const Inputs inputs;
    const Called expected = call(inputs.directory, inputs.options(inputs.bam));
    const std::vector<std::uint64_t> budgets = inputs.budgets();
    for (const std::size_t threads : {2U, 3U, 5U}) {
        for (std::size_t i = 0; i < budgets.size(); i += 3) {
            const std::string& file = i % 2 == 0 ? inputs.bam : inputs.cram;
            caller::CallerOptions options = inputs.options(file);
            options.threads = threads;
            options.memory = budgets[i];
            CAPTURE(file, threads, budgets[i]);
            CHECK(call(inputs.directory, options).text == expected.text);
            CHECK(std::filesystem::is_empty(inputs.scratch.path()));
        }
    }
}
