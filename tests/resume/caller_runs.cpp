#include "caller_runs.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>
#include <sstream>

#include <fcntl.h>

namespace spillway::test {

namespace {

namespace fs = std::filesystem;

constexpr const char* output = "calls.vcf.gz";
constexpr const char* output_index = "calls.vcf.gz.tbi";

/// Whether the disk has files without a name, of which a kill leaves nothing.
bool has_nameless_files(const std::string& directory) {
    const int file = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0) ::close(file);
    return file >= 0;
}

/// "write /tmp/x/journal-00000001", as spillway-call-faulty tells those that met the fault.
std::vector<std::string> faults_met(const Outcome& outcome) {
    const std::string mark = "fault: ";
    std::vector<std::string> met;
    std::istringstream lines(outcome.err);
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with(mark)) met.push_back(line.substr(mark.size()));
    return met;
}

/// What the caller must exit with where it ends by a call that failed; 0: such a call ends no run.
int exit_code_after(const std::string& call, const std::string& fault, const Run& run, const Sample& sample) {
    const std::string name = call.substr(0, call.find(' ')), path = call.substr(call.find(' ') + 1);
    constexpr int usage = 2, input = 3, disk = 4;
    if (name == "close") return 0;
    if (path == "/proc/self/exe") return input;
    const fs::path place = fs::weakly_canonical(path);
    if (place == fs::canonical(SPILLWAY_CALL_FAULTY) || place.parent_path() == fs::canonical(sample.directory.path()))
        return input;
    const bool opens =
        (name == "open" || name == "make_directory") && (place == fs::weakly_canonical(run.directory.file("kept")) ||
                                                         place == fs::weakly_canonical(run.directory.file("tmp")));
    return opens && fault == "EACCES" ? usage : disk;
}

} // namespace

Outcome run_to_end(const Arguments& command, Limits limits) {
    Process process(command, limits);
    REQUIRE(process.ends());
    return process.wait();
}

Run::Run(const Sample& sample) : sample_(sample) {
    REQUIRE(fs::create_directory(directory.file("tmp")));
    REQUIRE(fs::create_directory(directory.file("out")));
}

Arguments Run::command(Arguments before, const Arguments& more) const {
    for (const std::string& argument :
         {std::string("-f"), sample_.fasta, std::string("-o"), directory.file("out/calls.vcf.gz"),
          std::string("--resume"), directory.file("kept"), std::string("--tmp-dir"), directory.file("tmp"),
          std::string("--region-length"), std::string("200000"), std::string("--threads"), std::string("3"),
          std::string("--memory"), sample_.memory})
        before.push_back(argument);
    before.insert(before.end(), more.begin(), more.end());
    before.push_back(sample_.alignments);
    return before;
}

Arguments Run::faulty(const std::string& fault, const Arguments& more) const {
    if (sample_.slow_output) return command({SPILLWAY_CALL_FAULTY, "no-sync", "slow-output", fault}, more);
    return command({SPILLWAY_CALL_FAULTY, "no-sync", fault}, more);
}

Arguments Run::recovery() const {
    return command({SPILLWAY_CALL_FAULTY, "no-sync", "count"});
}

Arguments Run::with(const std::string& old, const std::string& fresh) const {
    Arguments changed = faulty("count");
    std::replace(changed.begin(), changed.end(), old, fresh);
    return changed;
}

std::vector<std::string> Run::names(const std::string& of) const {
    std::vector<std::string> all;
    if (!fs::exists(directory.file(of))) return all;
    for (const auto& entry : fs::directory_iterator(directory.file(of))) all.push_back(entry.path().filename());
    std::sort(all.begin(), all.end());
    return all;
}

Counts counts_of(const Outcome& outcome) {
    Counts counts;
    std::istringstream in(outcome.out);
    in >> counts.calls >> counts.spilled >> counts.resumed;
    REQUIRE(in);
    return counts;
}

Undisturbed::Undisturbed(const Sample& of) : sample(of) {
    const Run run(sample);
    const Outcome outcome = run_to_end(run.faulty("count"));
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
    counts = counts_of(outcome);
    vcf = run.vcf();
    index = run.index();
    REQUIRE(run.names("kept").empty());
    REQUIRE(vcf.size() > 500);
}

Outcome finish_and_check(const Run& run, const Undisturbed& undisturbed, const Arguments& command) {
    Outcome outcome = run_to_end(command);
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
    REQUIRE(run.vcf() == undisturbed.vcf);
    REQUIRE(run.index() == undisturbed.index);
    REQUIRE(run.names("out") == std::vector<std::string>{output, output_index});
    REQUIRE(run.names("kept").empty());
    REQUIRE(run.names("tmp").empty());
    return outcome;
}

void check_no_part(const Run& run, const Undisturbed& undisturbed, bool may_be_unnamed) {
    for (const std::string& name : run.names("out")) {
        const std::size_t mark = name.find(".tmp-");
        CAPTURE(name);
        REQUIRE((mark == std::string::npos || may_be_unnamed));
        const std::string final_name = name.substr(0, mark);
        REQUIRE((final_name == output || final_name == output_index));
        REQUIRE(read_file(run.directory.file("out/" + name)) ==
                (final_name == output ? undisturbed.vcf : undisturbed.index));
    }
    if (has_nameless_files(run.directory.file("tmp"))) REQUIRE(run.names("tmp").empty());
}

std::vector<std::string> kill_twice(const Undisturbed& undisturbed, long k, bool after, std::mt19937_64& random) {
    const Run run(undisturbed.sample);
    const std::string first = std::string(after ? "kill-after@" : "kill-before@") + std::to_string(k);
    const std::string second =
        "kill-before@" + std::to_string(random() % static_cast<std::uint64_t>(undisturbed.counts.calls));
    INFO(first << ", then " << second);
    std::vector<std::string> killed;
    for (const std::string& fault : {first, second}) {
        const Outcome outcome = run_to_end(run.faulty(fault));
        INFO(outcome.err);
        REQUIRE((outcome.status == 128 + SIGKILL || outcome.status == 0));
        if (outcome.status != 0) killed.push_back(faults_met(outcome).at(0));
        check_no_part(run, undisturbed, true);
    }
    finish_and_check(run, undisturbed, run.recovery());
    return killed;
}

const std::vector<std::string>& faults() {
    static const std::vector<std::string> all = {"ENOSPC", "EIO",   "EDQUOT", "EMFILE",
                                                 "EACCES", "EROFS", "half",   "EINTR"};
    return all;
}

std::vector<std::string> fail(const Undisturbed& undisturbed, const std::string& fault, long k, bool for_good) {
    const Run run(undisturbed.sample);
    const std::string what = fault + "@" + std::to_string(k) + (for_good ? "+" : "");
    INFO(what);
    const Outcome outcome = run_to_end(run.faulty(what));
    INFO(outcome.err);
    std::vector<std::string> met = faults_met(outcome);
    if (outcome.status == 0) {
        REQUIRE(run.vcf() == undisturbed.vcf);
        return met;
    }
    REQUIRE(fault != "half");
    if (fault == "EINTR") REQUIRE(outcome.err.find("Interrupted system call") != std::string::npos);
    std::set<int> codes;
    for (const std::string& call : met) codes.insert(exit_code_after(call, fault, run, undisturbed.sample));
    CAPTURE(outcome.status);
    REQUIRE(codes.contains(outcome.status));
    REQUIRE(outcome.err.find("spillway-call: ") != std::string::npos);
    const bool stays =
        std::any_of(met.begin(), met.end(), [](const auto& call) { return call.starts_with("unlink "); });
    check_no_part(run, undisturbed, stays);
    finish_and_check(run, undisturbed, run.recovery());
    return met;
}

} // namespace spillway::test
