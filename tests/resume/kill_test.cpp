// The caller killed, stopped and refused anywhere: the same VCF in the end, or a clear error, and nothing left behind.
#include "hts/sam_builder.hpp"
#include "process.hpp"
#include "temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <random>
#include <thread>

#include <fcntl.h>

using namespace spillway::test;

namespace {

namespace fs = std::filesystem;

/// One for all tests: twelve contigs of 420 bases, each a task of its own, with an SNV each 120 bases.
struct Sample {
    Sample() {
        Genome genome;
        std::vector<std::vector<Variant>> variants;
        for (std::uint64_t i = 0; i < 12; ++i) {
            const std::string contig = "c" + std::to_string(i + 1);
            genome.random(contig, 420, 41 + i);
            variants.emplace_back();
            for (std::int64_t at = 100; at < 400; at += 120) {
                variants.back().push_back(
                    {contig, at, genome.slice(contig, at, at), std::string(1, genome.other(contig, at))});
            }
        }
        SamBuilder sam(genome);
        sam.read_group("rg1", "S1");
        for (const std::vector<Variant>& planted : variants)
            sam.cover(planted[0].contig, {.from = 1, .to = 420, .step = 8}, {{}, planted});
        bam = sam.bam(directory, "in.bam");
        fasta = genome.write(directory);
    }
    TemporaryDirectory directory;
    std::string bam, fasta;
};

const Sample& sample() {
    static const Sample one;
    return one;
}

using Arguments = std::vector<std::string>;

/// Where a run writes, and what an undisturbed one wrote.
struct Run {
    Run() {
        REQUIRE(fs::create_directory(directory.file("tmp")));
        REQUIRE(fs::create_directory(directory.file("out")));
    }
    /// Of spillway-call; `before` are put before it.
    [[nodiscard]] Arguments command(Arguments before = {SPILLWAY_CALL}, const Arguments& more = {}) const {
        for (const std::string& argument :
             {std::string("-f"), sample().fasta, std::string("-o"), directory.file("out/calls.vcf.gz"),
              std::string("--resume"), directory.file("kept"), std::string("--tmp-dir"), directory.file("tmp"),
              std::string("--region-length"), std::string("400"), std::string("--threads"), std::string("3"),
              std::string("--memory"), std::string("1M")})
            before.push_back(argument);
        before.insert(before.end(), more.begin(), more.end());
        before.push_back(sample().bam);
        return before;
    }
    [[nodiscard]] Arguments faulty(const std::string& fault) const { return command({SPILLWAY_CALL_FAULTY, fault}); }
    /// Without a fault, one argument replaced.
    [[nodiscard]] Arguments with(const std::string& old, const std::string& fresh) const {
        Arguments changed = faulty("count");
        std::replace(changed.begin(), changed.end(), old, fresh);
        return changed;
    }
    [[nodiscard]] std::string vcf() const { return read_file(directory.file("out/calls.vcf.gz")); }
    [[nodiscard]] std::string index() const { return read_file(directory.file("out/calls.vcf.gz.tbi")); }
    /// Names in a directory of the run.
    [[nodiscard]] std::vector<std::string> names(const std::string& of) const {
        std::vector<std::string> all;
        for (const auto& entry : fs::directory_iterator(directory.file(of))) all.push_back(entry.path().filename());
        std::sort(all.begin(), all.end());
        return all;
    }

    TemporaryDirectory directory;
};

struct Undisturbed {
    Undisturbed() {
        const Run run;
        const Outcome outcome = spillway::test::run(run.faulty("count"));
        INFO(outcome.err);
        REQUIRE(outcome.status == 0);
        calls = std::stol(outcome.out);
        vcf = run.vcf();
        index = run.index();
        REQUIRE(run.names("kept").empty());
        REQUIRE(vcf.size() > 500);
    }
    long calls = 0; ///< On files.
    std::string vcf, index;
};

const Undisturbed& undisturbed() {
    static const Undisturbed one;
    return one;
}

/// Runs to the end, and looks at everything.
void finish_and_check(const Run& run, const Arguments& command) {
    const Outcome outcome = spillway::test::run(command);
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
    REQUIRE(run.vcf() == undisturbed().vcf);
    REQUIRE(run.index() == undisturbed().index);
    REQUIRE(run.names("out") == std::vector<std::string>{"calls.vcf.gz", "calls.vcf.gz.tbi"});
    REQUIRE(run.names("kept").empty());
    REQUIRE(run.names("tmp").empty());
}

/// Whether the disk has files without a name, of which a kill leaves nothing.
bool has_nameless_files(const Run& run) {
    const int file = ::open(run.directory.file("tmp").c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0) ::close(file);
    return file >= 0;
}

/// Under its final name there is nothing, or all of it; of what was spilled nothing is left.
void check_no_part(const Run& run) {
    if (fs::exists(run.directory.file("out/calls.vcf.gz"))) REQUIRE(run.vcf() == undisturbed().vcf);
    if (has_nameless_files(run)) REQUIRE(run.names("tmp").empty());
}

/// Until it is the caller and no longer a copy of this test, which takes signals in its own way.
void wait_for_program(const Process& process) {
    const std::string self = fs::read_symlink("/proc/self/exe");
    std::error_code gone;
    while (process.runs() && fs::read_symlink("/proc/" + std::to_string(process.id()) + "/exe", gone) == self)
        std::this_thread::yield();
}

/// A kill at the k-th call, before or after it, another at a random call of the recovery, and a third run. How many of
/// the two runs were killed: one may make fewer calls than the one that was counted.
int kill_twice(long k, bool after, std::mt19937_64& random) {
    const Run run;
    const std::string first = std::string(after ? "kill-after@" : "kill-before@") + std::to_string(k);
    const std::string second =
        "kill-before@" + std::to_string(random() % static_cast<std::uint64_t>(undisturbed().calls));
    INFO(first << ", then " << second);
    int killed = 0;
    for (const std::string& fault : {first, second}) {
        const int status = spillway::test::run(run.faulty(fault)).status;
        REQUIRE((status == 128 + SIGKILL || status == 0));
        killed += status != 0 ? 1 : 0;
        check_no_part(run);
    }
    finish_and_check(run, run.faulty("count")); // Another binary would be refused.
    return killed;
}

/// The plain binary, killed at a random moment, and again; how many of the two runs had not ended by then.
int kill_at_random(std::mt19937_64& random) {
    const Run run;
    int killed = 0;
    for (int kill = 0; kill < 2; ++kill) {
        Process process(run.command());
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 40'000));
        process.send(SIGKILL);
        const int status = process.wait().status;
        REQUIRE((status == 128 + SIGKILL || status == 0));
        killed += status != 0 ? 1 : 0;
        check_no_part(run);
    }
    finish_and_check(run, run.command());
    return killed;
}

/// Where there are more than 120 calls, spread over all of them; where there are few, more than once: how many there are
/// is up to how often the journal writes.
void kill_at_each_call(bool after, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const long calls = undisturbed().calls;
    REQUIRE(calls > 20);
    const long points = std::min(calls, 120L);
    int kills = 0;
    for (long i = 0; i < points || kills < 100; ++i) {
        REQUIRE(i < 1000);
        kills += kill_twice(i % points * calls / points, after, random);
    }
}

/// Of spillway-call-faulty; the last two end no run.
const std::vector<std::string> faults = {"ENOSPC", "EIO", "EDQUOT", "EMFILE", "EACCES", "EROFS", "half", "EINTR"};

void fail(const std::string& fault, long k, bool for_good) {
    const bool harmless = fault == "half" || fault == "EINTR";
    const Run run;
    const std::string what = fault + "@" + std::to_string(k) + (for_good && fault != "EINTR" ? "+" : "");
    INFO(what);
    const Outcome outcome = spillway::test::run(run.faulty(what));
    INFO(outcome.err);
    if (outcome.status == 0) {
        REQUIRE(run.vcf() == undisturbed().vcf);
        return;
    }
    REQUIRE_FALSE(harmless);
    REQUIRE((outcome.status == 4 || outcome.status == 2));
    REQUIRE(outcome.err.find("spillway-call: ") != std::string::npos);
    check_no_part(run);
    finish_and_check(run, run.faulty("count"));
}

/// A signal to the plain binary, which then ends by it in order, or had ended before.
void stop_at_random(int runs, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    int stopped = 0;
    for (int i = 0; i < runs; ++i) {
        const Run run;
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
        check_no_part(run);
        finish_and_check(run, run.command());
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
        const long call = static_cast<long>(random() % static_cast<std::uint64_t>(undisturbed().calls));
        kills += kill_twice(call, random() % 2 != 0, random);
        kills += kill_at_random(random);
    }
}

TEST_CASE(
    "whichever call of the caller fails, the VCF is the same, or the exit code is the design's and there is none") {
    for (std::size_t i = 0; i < faults.size(); ++i) {
        // Each call meets some of them, each of them calls of every kind.
        for (long k = static_cast<long>(i % 3); k < undisturbed().calls; k += 3) fail(faults[i], k, (k / 3) % 2 != 0);
    }
}

TEST_CASE("whichever call of the caller fails, in every way, once and for good", "[.long]") {
    for (const std::string& fault : faults) {
        for (long k = 0; k < undisturbed().calls; ++k) {
            fail(fault, k, false);
            fail(fault, k, true);
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
        ::execl(SPILLWAY_CALL, SPILLWAY_CALL, "-f", sample().fasta.c_str(), sample().bam.c_str(), nullptr);
        ::_exit(127);
    }
    ::close(pipe[1]);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGPIPE);
}

TEST_CASE("forty descriptors are enough for the caller with a journal") {
    const Run run;
    const Outcome outcome = spillway::test::run(run.with("3", "8"), {.descriptors = 40});
    INFO(outcome.err);
    CHECK(outcome.status == 0);
    CHECK(run.vcf() == undisturbed().vcf);
}

TEST_CASE("resuming with other files or flags, into a pipe, or beside another run is a usage error that says why") {
    const Run run;
    const auto refused = [&](const Arguments& arguments, const std::string& why) {
        const Outcome outcome = spillway::test::run(arguments);
        INFO(outcome.err);
        CHECK(outcome.status == 2);
        CHECK(outcome.err.find(why) != std::string::npos);
    };
    // Near the end of the journal, so that something is in it: how many calls a run makes depends on how many results
    // each write takes, so a run may be through with its journal before the call at which it was to be killed.
    long point = undisturbed().calls;
    do {
        point -= 8;
        REQUIRE(point > 0);
        static_cast<void>(spillway::test::run(run.faulty("kill-after@" + std::to_string(point))));
    } while (!fs::exists(run.directory.file("kept")) || run.names("kept").empty());
    refused(run.with("400", "500"), "--region-length was \"400\" and is \"500\"");
    refused(run.command({SPILLWAY_CALL_FAULTY, "count"}, {"-r", "c1,c2"}), "-r was \"\" and is \"c1,c2\"");
    const std::string other = run.directory.file("other.bam");
    fs::copy_file(sample().bam, other);
    fs::copy_file(sample().bam + ".bai", other + ".bai");
    fs::last_write_time(other, fs::last_write_time(other) + std::chrono::seconds(5));
    refused(run.with(sample().bam, other), "the alignments was \"");
    refused(run.with(run.directory.file("out/calls.vcf.gz"), "-"), "--resume needs an output");
    refused(run.with(sample().bam, "-"), "--resume needs an input");

    Process first(run.faulty("count"));
    while (first.runs() && run.names("kept").size() < 2) {
    }
    first.send(SIGSTOP);
    if (first.runs() && fs::exists(run.directory.file("kept")) && !run.names("kept").empty())
        refused(run.faulty("count"), "another run is using it");
    first.send(SIGCONT);
    const Outcome outcome = first.wait();
    INFO(outcome.err);
    CHECK(outcome.status == 0);
    CHECK(run.vcf() == undisturbed().vcf);
}
