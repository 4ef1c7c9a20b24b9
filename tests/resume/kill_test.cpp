// The caller killed, stopped and refused anywhere: the same VCF in the end, or a clear error, and nothing left behind.
#include "caller_runs.hpp"
#include "hts/sam_builder.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <iostream>
#include <random>
#include <thread>

#include <fcntl.h>

using namespace spillway::test;

namespace {

namespace fs = std::filesystem;

constexpr int contigs = 12;

/// One for all tests: twelve contigs of 420 bases, each a task of its own, with an SNV each 120 bases.
struct SmallSample : Sample {
    SmallSample() {
        Genome genome;
        std::vector<std::vector<Variant>> variants;
        for (std::uint64_t i = 0; i < contigs; ++i) {
            const std::string contig = "c" + std::to_string(i + 1);
            genome.random(contig, 420, 41 + i);
            variants.push_back(genome.snvs(contig, 100, 399, 120));
        }
        SamBuilder sam(genome);
        sam.read_group("rg1", "S1");
        for (const std::vector<Variant>& planted : variants)
            sam.cover(planted[0].contig, {.from = 1, .to = 420, .step = 8}, {{}, planted});
        alignments = sam.bam(directory, "in.bam");
        fasta = genome.write(directory);
    }
};

const Sample& sample() {
    static const SmallSample one;
    return one;
}

const Undisturbed& undisturbed() {
    static const Undisturbed one(sample());
    return one;
}

/// Until it is the caller and no longer a copy of this test, which takes signals in its own way.
void wait_for_program(const Process& process) {
    const std::string self = fs::read_symlink("/proc/self/exe");
    std::error_code gone;
    while (process.runs() && fs::read_symlink("/proc/" + std::to_string(process.id()) + "/exe", gone) == self)
        std::this_thread::yield();
}

/// Kills runs near their end until one has left something in its journal: how many calls a run makes depends on how
/// many results each write of the journal takes, so it may be through with that before the call at which it was to be
/// killed. `command_of`: the run with a fault.
template <typename CommandOf>
void kill_with_journal(const Run& run, CommandOf command_of) {
    for (long point = undisturbed().counts.calls; run.names("kept").empty();) {
        point -= 8;
        REQUIRE(point > 0);
        static_cast<void>(run_to_end(command_of("kill-after@" + std::to_string(point))));
    }
}

/// The plain binary, killed at a random moment, and again; how many of the two runs had not ended by then.
int kill_at_random(std::mt19937_64& random) {
    const Run run(sample());
    int killed = 0;
    for (int kill = 0; kill < 2; ++kill) {
        Process process(run.command());
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 40'000));
        process.send(SIGKILL);
        REQUIRE(process.ends());
        const int status = process.wait().status;
        REQUIRE((status == 128 + SIGKILL || status == 0));
        killed += status != 0 ? 1 : 0;
        check_no_part(run, undisturbed(), true);
    }
    finish_and_check(run, undisturbed(), run.command());
    return killed;
}

/// Where there are more than 120 calls, spread over all of them; where there are few, more than once: how many there are
/// is up to how often the journal writes.
void kill_at_each_call(bool after, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const long calls = undisturbed().counts.calls;
    REQUIRE(calls > 20);
    const long points = std::min(calls, 120L);
    int kills = 0;
    for (long i = 0; i < points || kills < 100; ++i) {
        REQUIRE(i < 1000);
        kills += static_cast<int>(kill_twice(undisturbed(), i % points * calls / points, after, random).size());
    }
}

/// A signal to the plain binary, which then ends by it in order, or had ended before.
void stop_at_random(int runs, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    int stopped = 0;
    for (int i = 0; i < runs; ++i) {
        const Run run(sample());
        const int signal = std::array{SIGINT, SIGTERM, SIGPIPE}[static_cast<std::size_t>(i) % 3];
        Process process(run.command());
        wait_for_program(process);
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 40'000));
        process.send(signal);
        REQUIRE(process.ends());
        const Outcome outcome = process.wait();
        INFO(outcome.err);
        REQUIRE((outcome.status == 0 || outcome.status == 128 + signal));
        if (outcome.status == 0) continue;
        ++stopped;
        // SIGPIPE ends a process where it stands, perhaps just when the output has its name.
        if (signal != SIGPIPE) REQUIRE_FALSE(fs::exists(run.directory.file("out/calls.vcf.gz")));
        check_no_part(run, undisturbed(), signal == SIGPIPE);
        finish_and_check(run, undisturbed(), run.command());
    }
    CHECK(stopped > 5);
}

} // namespace

// The next three together kill more than 200 runs, of which half were recovering from a kill.

TEST_CASE("killed before each call on its files, and again while it recovers, the caller ends with the same VCF") {
    kill_at_each_call(false, 51);
}

TEST_CASE("killed after each call on its files, and again while it recovers, the caller ends with the same VCF") {
    kill_at_each_call(true, 50);
}

TEST_CASE("killed at random moments, and again, the caller ends with the same VCF") {
    std::mt19937_64 random(52); // NOLINT: a fixed seed is wanted
    int kills = 0;
    for (int runs = 0; kills < 100; ++runs) {
        REQUIRE(runs < 1000);
        kills += kill_at_random(random);
    }
}

TEST_CASE("two thousand kills", "[.long]") {
    std::mt19937_64 random(53); // NOLINT: a fixed seed is wanted
    for (int kills = 0; kills < 2000;) {
        const long call = static_cast<long>(random() % static_cast<std::uint64_t>(undisturbed().counts.calls));
        kills += static_cast<int>(kill_twice(undisturbed(), call, random() % 2 != 0, random).size());
        kills += kill_at_random(random);
    }
}

TEST_CASE(
    "whichever call of the caller fails, the VCF is the same, or the exit code is the design's and there is none") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    constexpr long step = 5; // They take ten times as long.
#else
    constexpr long step = 1;
#endif
    for (std::size_t i = 0; i < faults().size(); ++i) {
        // Every second call for good, with each fault another second.
        for (long k = static_cast<long>(i) % step; k < undisturbed().counts.calls; k += step)
            fail(undisturbed(), faults()[i], k, (k / step + static_cast<long>(i)) % 2 != 0);
    }
}

TEST_CASE("whichever call of the caller fails, in every way, once and for good", "[.long]") {
    for (const std::string& fault : faults()) {
        for (long k = 0; k < undisturbed().counts.calls; ++k) {
            fail(undisturbed(), fault, k, false);
            fail(undisturbed(), fault, k, true);
        }
    }
}

TEST_CASE("a signal at a random moment ends the caller without a hang, with its exit code and no output") {
    stop_at_random(100, 54);
}

TEST_CASE("a thousand signals", "[.long]") {
    stop_at_random(1000, 55);
}

TEST_CASE("a reader that has gone ends the caller as it ends others, by SIGPIPE") {
    std::array<int, 2> pipe{};
    REQUIRE(::pipe2(pipe.data(), O_CLOEXEC) == 0);
    ::close(pipe[0]);
    const pid_t child = ::fork();
    if (child == 0) {
        std::signal(SIGPIPE, SIG_DFL);
        ::dup2(pipe[1], STDOUT_FILENO);
        ::execl(SPILLWAY_CALL, SPILLWAY_CALL, "-f", sample().fasta.c_str(), sample().alignments.c_str(), nullptr);
        ::_exit(127);
    }
    ::close(pipe[1]);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGPIPE);
}

TEST_CASE("forty descriptors are enough for the caller with a journal") {
    const Run run(sample());
    const Outcome outcome = run_to_end(run.with("3", "8"), {.descriptors = 40});
    INFO(outcome.err);
    CHECK(outcome.status == 0);
    CHECK(run.vcf() == undisturbed().vcf);
}

TEST_CASE("what a killed run had finished is not computed again") {
    long resumed = 0;
    for (long point = undisturbed().counts.calls; resumed == 0;) {
        point -= 4;
        REQUIRE(point > 0);
        const Run run(sample());
        static_cast<void>(run_to_end(run.faulty("kill-before@" + std::to_string(point))));
        resumed = counts_of(finish_and_check(run, undisturbed(), run.faulty("count"))).resumed;
    }
    CHECK(resumed <= contigs);
}

TEST_CASE("of a run that failed only when its output was to get its name, nothing is computed again") {
    const Run run(sample());
    const std::string in_the_way = run.directory.file("out/calls.vcf.gz.tbi");
    REQUIRE(fs::create_directory(in_the_way));
    const Outcome failed = run_to_end(run.command());
    INFO(failed.err);
    REQUIRE(failed.status == 4);
    REQUIRE(fs::remove(in_the_way));
    const Outcome outcome = finish_and_check(run, undisturbed(), run.command({SPILLWAY_CALL}, {"-v", "2"}));
    CHECK_THAT(outcome.err, Catch::Contains(std::to_string(contigs) + " spans were finished by an earlier run"));
}

TEST_CASE("resuming with other files or flags, into a pipe, or beside another run is a usage error that says why") {
    const Run run(sample());
    const auto refused = [&](const Arguments& arguments, const std::string& why) {
        const Outcome outcome = run_to_end(arguments);
        INFO(outcome.err);
        CHECK(outcome.status == 2);
        CHECK(outcome.err.find(why) != std::string::npos);
    };
    kill_with_journal(run, [&](const std::string& fault) { return run.faulty(fault); });
    refused(run.with("200000", "300000"), "--region-length was \"200000\" and is \"300000\"");
    refused(run.faulty("count", {"-r", "c1,c2"}), "-r was \"\" and is \"c1,c2\"");
    const std::string other = run.directory.file("other.bam");
    fs::copy_file(sample().alignments, other);
    fs::copy_file(sample().alignments + ".bai", other + ".bai");
    fs::last_write_time(other, fs::last_write_time(other) + std::chrono::seconds(5));
    refused(run.with(sample().alignments, other), "the alignments was \"");
    refused(run.command(), "spillway-call was \""); // Another binary.
    refused(run.with(run.directory.file("out/calls.vcf.gz"), "-"), "--resume needs an output");
    refused(run.with(sample().alignments, "-"), "--resume needs an input");

    Process first(run.faulty("count"));
    while (first.runs() && run.names("kept").size() < 2) {
    }
    first.send(SIGSTOP);
    if (first.runs() && fs::exists(run.directory.file("kept")) && !run.names("kept").empty())
        refused(run.faulty("count"), "another run is using it");
    first.send(SIGCONT);
    REQUIRE(first.ends());
    const Outcome outcome = first.wait();
    INFO(outcome.err);
    CHECK(outcome.status == 0);
    CHECK(run.vcf() == undisturbed().vcf);
}

TEST_CASE("a reference or alignments that were changed, or written anew with their time set back, are refused") {
    struct Input {
        std::string path, index, name;
        std::size_t unused; ///< A byte that may be any.
    };
    const std::vector<Input> inputs = {{sample().fasta, ".fai", "the reference", 5},        // a base
                                       {sample().alignments, ".bai", "the alignments", 4}}; // a time in a gzip header
    for (const Input& input : inputs) {
        const Run run(sample());
        const std::string name = fs::path(input.path).filename(), own = run.directory.file(name);
        fs::copy_file(input.path, own);
        fs::copy_file(input.path + input.index, own + input.index);
        const auto with_own = [&](const std::string& fault) {
            Arguments changed = run.faulty(fault);
            std::replace(changed.begin(), changed.end(), input.path, own);
            return changed;
        };
        kill_with_journal(run, with_own);
        const auto refused = [&] {
            const Outcome outcome = run_to_end(with_own("count"));
            INFO(outcome.err);
            CHECK(outcome.status == 2);
            CHECK(outcome.err.find(input.name + " was \"") != std::string::npos);
            CHECK(outcome.err.find("empty this one to start anew") != std::string::npos);
        };
        const auto written = fs::last_write_time(own);
        const auto write = [&](const std::string& text) {
            run.directory.write(name, text);
            fs::last_write_time(own, written);
            refused();
        };
        const std::string text = read_file(own);
        write(text);
        std::string changed = text;
        changed[input.unused] = changed[input.unused] == 'A' ? 'C' : 'A';
        write(changed);
        run.directory.write(name, text + (input.index == ".fai" ? "A" : ""));
        refused();
    }
}

TEST_CASE("a /dev/shm of one page is nothing to the caller") {
    const auto in_small_shm = [](const std::string& then, const Arguments& command) {
        Arguments all = {"/usr/bin/env",
                         "unshare",
                         "--mount",
                         "/bin/sh",
                         "-c",
                         "mount -t tmpfs -o size=4k none /dev/shm && " + then,
                         "sh"};
        all.insert(all.end(), command.begin(), command.end());
        return run_to_end(all);
    };
    if (const Outcome probe = in_small_shm("true", {}); probe.status != 0) {
        std::cout << "SKIPPED: /dev/shm cannot be mounted over: " << probe.err << '\n';
        return;
    }
    const Run run(sample());
    const Outcome outcome = in_small_shm("exec \"$@\"", run.command());
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
    CHECK(run.vcf() == undisturbed().vcf);
    CHECK(run.index() == undisturbed().index);
}
