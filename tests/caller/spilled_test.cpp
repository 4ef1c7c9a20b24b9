// A caller whose candidates really go to disk: while the output is slow workers run ahead, as far as memory allows and
// then on disk, and the VCF is the same.
#include "called.hpp"

#include "base/file.hpp"
#include "inputs.hpp"
#include "many_contigs.hpp"
#include "process.hpp"
#include "same_candidate.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>
#include <tuple>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace spillway::test;

namespace {

/// An output that takes nothing until something has been spilled, or all other threads sleep: then nothing more is
/// coming, however busy the machine. Nor for ever.
class SlowOutput : public spillway::FileSystem {
public:
    std::atomic<bool> spilled{false};

    std::int64_t append(int file, std::span<const std::byte> bytes) override {
        for (double ticks = 0; !spilled && asleep_ < 300 && naps_ < 60'000; ++naps_) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            if (all_sleep(::getpid(), ticks, ::gettid())) ++asleep_;
        }
        return FileSystem::append(file, bytes);
    }

private:
    int naps_ = 0, asleep_ = 0; // the sink's: one thread at a time
};

/// Calls with a slow output and less and less memory, from what a run takes that has all it wants down to the least,
/// until something has been spilled, three times over. Each call must be as expected; false: none has spilled.
bool spills(const ManyContigs& inputs, caller::CallerOptions options, const std::string& expected) {
    const std::vector<std::uint64_t> budgets = inputs.budgets(options);
    for (std::size_t attempt = 0; attempt < 3 * budgets.size(); ++attempt) {
        options.memory = budgets[attempt % budgets.size()];
        const auto output = std::make_shared<SlowOutput>();
        caller::RunOptions how;
        how.files = output;
        how.progress = [&](const spillway::Progress& now) {
            if (now.spilled_bytes > 0) output->spilled = true;
        };
        CAPTURE(options.alignments, options.threads, options.memory);
        const Called called = call(inputs.directory, options, std::move(how));
        CHECK(called.text == expected);
        CHECK(called.report.pipeline.restored == called.report.pipeline.spilled);
        CHECK(std::filesystem::is_empty(inputs.scratch.path()));
        if (called.report.pipeline.spilled > 0) return true;
    }
    return false;
}

/// The same with a disk that takes nothing.
class FullDisk : public SlowOutput {
public:
    std::int64_t write(int, std::span<const iovec>, std::uint64_t) override { return -ENOSPC; }
};

/// Its process dies, as by kill -9, so many calls after the first write of spilled candidates to the disk.
class DeadlyDisk : public SlowOutput {
public:
    DeadlyDisk(const TemporaryDirectory& scratch, int calls) : scratch_(scratch.path().string() + '/'), left_(calls) {}

    std::int64_t append(int file, std::span<const std::byte> bytes) override {
        const std::int64_t result = SlowOutput::append(file, bytes);
        count();
        return result;
    }
    std::int64_t write(int file, std::span<const iovec> pieces, std::uint64_t offset) override {
        const std::int64_t result = FileSystem::write(file, pieces, offset);
        const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file)).string();
        if (path.starts_with(scratch_)) spilled = true; // else it is the journal
        count();
        return result;
    }

private:
    void count() {
        if (spilled && left_.fetch_sub(1) == 0) ::kill(::getpid(), SIGKILL);
    }

    std::string scratch_;
    std::atomic<int> left_;
};

/// The binary, whose output goes into a pipe that is not read for now.
class PipedCall {
public:
    PipedCall(const ManyContigs& inputs, std::uint64_t memory)
        : pipe_(opened(inputs)),
          process({SPILLWAY_CALL, "-v", "0", "-f", inputs.fasta, "-o", inputs.directory.file("pipe"), "--tmp-dir",
                   inputs.scratch.path(), "--threads", "3", "--memory", std::to_string(memory), inputs.bam}) {}
    ~PipedCall() { ::close(pipe_); }
    PipedCall(const PipedCall&) = delete;
    PipedCall& operator=(const PipedCall&) = delete;

    /// Bytes of spilled candidates on the disk, once there are some, or 0 when no more are coming: all threads were seen
    /// asleep five hundred times.
    [[nodiscard]] std::uint64_t spilled_bytes(const ManyContigs& inputs) const {
        double ticks = 0;
        for (int asleep = 0; asleep < 500 && process.runs(); asleep += all_sleep(process.id(), ticks) ? 1 : 0) {
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
    static int opened(const ManyContigs& inputs) {
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
    const ManyContigs inputs;
    caller::CallerOptions options = inputs.options(inputs.bam);
    options.threads = 3;
    const std::vector<std::uint64_t> budgets = inputs.budgets(options);
    for (const int signal : {SIGKILL, SIGINT}) {
        bool had_spilled = false;
        for (std::size_t attempt = 0; !had_spilled && attempt < 3 * budgets.size(); ++attempt) {
            const std::uint64_t memory = budgets[attempt % budgets.size()];
            PipedCall call(inputs, memory);
            had_spilled = call.spilled_bytes(inputs) > 0;
            call.process.send(signal);
            // Whoever has taken the signal has told when all sleep: the output, which nobody reads, is full.
            double ticks = 0;
            for (int asleep = 0; asleep < 5 && call.process.runs();
                 std::this_thread::sleep_for(std::chrono::milliseconds(1)))
                asleep = all_sleep(call.process.id(), ticks) ? asleep + 1 : 0;
            call.read_on(); // Who is in the middle of writing stops then.
            const int status = call.process.wait().status;
            CAPTURE(signal, memory);
            CHECK((status == 128 + signal || (status == 0 && !had_spilled)));
            CHECK(std::filesystem::is_empty(inputs.scratch.path()));
        }
        CHECK(had_spilled);
    }
}

TEST_CASE(
    "killed with candidates on the disk, a caller with a journal leaves none of them, and resumes to the same VCF") {
    const ManyContigs inputs;
    caller::CallerOptions options = inputs.options(inputs.bam);
    const std::string expected = call(inputs.directory, options).text;
    options.threads = 3;
    const std::vector<std::uint64_t> budgets = inputs.budgets(options);
    options.resume_directory = inputs.directory.file("kept");
    for (const int calls : {0, 1, 7}) {
        bool killed = false;
        for (std::size_t attempt = 0; !killed && attempt < 3 * budgets.size(); ++attempt) {
            options.memory = budgets[attempt % budgets.size()];
            CAPTURE(calls, options.memory);
            const pid_t child = ::fork();
            REQUIRE(child >= 0);
            if (child == 0) {
                caller::RunOptions how;
                how.files = std::make_shared<DeadlyDisk>(inputs.scratch, calls);
                try {
                    static_cast<void>(call(inputs.directory, options, std::move(how)));
                } catch (...) {
                    ::_exit(1);
                }
                ::_exit(0);
            }
            int status = 0;
            REQUIRE(::waitpid(child, &status, 0) == child);
            killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
            CHECK((killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0)));
            CHECK(std::filesystem::is_empty(inputs.scratch.path()));
        }
        CHECK(killed);
        options.memory = 0;
        CHECK(call(inputs.directory, options).text == expected);
        CHECK(std::filesystem::is_empty(options.resume_directory));
        CHECK(std::filesystem::is_empty(inputs.scratch.path()));
    }
}

TEST_CASE("a caller that runs ahead of a slow output spills, and calls the same for all threads and region lengths, "
          "from BAM and CRAM") {
    constexpr std::int64_t size = 24'000;
    const ManyContigs inputs(5, size);
    const auto options_of = [&](const std::string& file, std::int64_t region_length) {
        caller::CallerOptions options = inputs.options(file);
        options.region_length = region_length;
        return options;
    };
    const Called expected = call(inputs.directory, options_of(inputs.bam, size));
    REQUIRE(expected.text.size() > 80'000);
    REQUIRE(expected.report.pipeline.spilled == 0);
    REQUIRE(expected.report.pipeline.sources == 5);
    REQUIRE(call(inputs.directory, options_of(inputs.bam, 500)).report.pipeline.sources > 5);
    for (const std::string& file : {inputs.bam, inputs.cram}) {
        for (const std::size_t threads : {2U, 3U, 8U}) { // one alone writes before it begins anything new
            for (const std::int64_t region_length : {std::int64_t{500}, size}) {
                caller::CallerOptions options = options_of(file, region_length);
                options.threads = threads;
                CAPTURE(file, threads, region_length);
                CHECK(spills(inputs, options, expected.text));
            }
        }
    }
}

TEST_CASE("a candidate that is made again from its reads is the same") {
    const ManyContigs many(6);
    const caller::Inputs inputs(many.options(many.bam), [](const std::string&) {});
    spillway::hts::ReadStream in_order(inputs.file(), inputs.filter()), sought(inputs.file(), inputs.filter());
    int made = 0;
    for (const caller::Task& task : inputs.tasks()) {
        auto candidates = caller::candidates_of(task, in_order, inputs);
        while (const auto candidate = candidates.next()) {
            ++made;
            CAPTURE(candidate->contig, candidate->begin);
            CHECK(same(caller::candidate_at(candidate->evidence(), sought, inputs), *candidate));
        }
    }
    CHECK(made > 100);
}

TEST_CASE("where the disk is full, or may hold nothing, candidates are made again and the VCF is the same") {
    const ManyContigs inputs;
    const std::string expected = call(inputs.directory, inputs.options(inputs.bam)).text;
    for (const std::uint64_t limit : {0U, 1U}) {
        caller::CallerOptions options = inputs.options(inputs.bam);
        options.threads = 3;
        const std::vector<std::uint64_t> budgets = inputs.budgets(options);
        options.temporary_limit = limit;
        std::uint64_t rebuilt = 0;
        // How far workers run ahead is up to the machine: the same again, should none have come so far.
        for (std::size_t attempt = 0; rebuilt == 0 && attempt < 3 * budgets.size(); ++attempt) {
            options.memory = budgets[attempt % budgets.size()];
            caller::RunOptions how;
            how.files = std::make_shared<FullDisk>();
            CAPTURE(limit, options.memory);
            const Called called = call(inputs.directory, options, std::move(how));
            CHECK(called.text == expected);
            CHECK(called.report.pipeline.failed == 0);
            CHECK(std::filesystem::is_empty(inputs.scratch.path()));
            rebuilt = called.report.pipeline.rebuilt;
        }
        CHECK(rebuilt > 0);
    }
}

TEST_CASE(
    "the VCF is the same for all threads and budgets, from what a run takes down to the least, from BAM and CRAM") {
    const ManyContigs inputs;
    const Called expected = call(inputs.directory, inputs.options(inputs.bam));
    for (const std::size_t threads : {1U, 2U, 3U, 5U}) {
        for (const std::string& file : {inputs.bam, inputs.cram}) {
            caller::CallerOptions options = inputs.options(file);
            options.threads = threads;
            const std::vector<std::uint64_t> budgets = inputs.budgets(options);
            for (std::size_t i = 0; i < budgets.size(); i += 3) {
                options.memory = budgets[i];
                CAPTURE(file, threads, budgets[i]);
                CHECK(call(inputs.directory, options).text == expected.text);
                CHECK(std::filesystem::is_empty(inputs.scratch.path()));
            }
        }
    }
}
