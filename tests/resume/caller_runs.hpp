// The caller with a journal, run as a program on one sample, again and again, and what must hold however a run ended.
//
//     const Undisturbed undisturbed(sample);                   runs it once: what others must come to
//     const Run run(sample);                                   where a run, and those that resume it, write
//     run_to_end(run.faulty("kill-before@17"));
//     check_no_part(run, undisturbed, true);
//     finish_and_check(run, undisturbed, run.faulty("count"));
#pragma once

#include "process.hpp"
#include "temporary_directory.hpp"

#include <random>
#include <string>
#include <vector>

namespace spillway::test {

using Arguments = std::vector<std::string>;

struct Sample {
    TemporaryDirectory directory;
    std::string alignments, fasta;
    std::string memory = "8M";
    bool slow_output = false; ///< Of spillway-call-faulty: takes nothing until candidates have been spilled.
};

/// What a program came to, which must not hang.
[[nodiscard]] Outcome run_to_end(const Arguments& command, Limits limits = {});

/// Where a run writes: out/, for the output; kept/, its journal; tmp/, for spilled candidates.
class Run {
public:
    explicit Run(const Sample& sample);

    /// Of spillway-call; `before` are put before it, `more` before the alignments.
    [[nodiscard]] Arguments command(Arguments before = {SPILLWAY_CALL}, const Arguments& more = {}) const;
    /// Of spillway-call-faulty: another binary would be refused what it began.
    [[nodiscard]] Arguments faulty(const std::string& fault, const Arguments& more = {}) const;
    /// The same binary without a fault, and with nothing that slows it.
    [[nodiscard]] Arguments recovery() const;
    /// Without a fault, one argument replaced.
    [[nodiscard]] Arguments with(const std::string& old, const std::string& fresh) const;
    [[nodiscard]] std::string vcf() const { return read_file(directory.file("out/calls.vcf.gz")); }
    [[nodiscard]] std::string index() const { return read_file(directory.file("out/calls.vcf.gz.tbi")); }
    /// Names in a directory of the run, in order; none where it does not exist.
    [[nodiscard]] std::vector<std::string> names(const std::string& of) const;

    TemporaryDirectory directory;

private:
    const Sample& sample_;
};

/// What "count" prints.
struct Counts {
    long calls = 0; ///< On files.
    long spilled = 0, resumed = 0;
};
[[nodiscard]] Counts counts_of(const Outcome& outcome);

struct Undisturbed {
    explicit Undisturbed(const Sample& sample);

    const Sample& sample;
    Counts counts;
    std::string vcf, index;
};

/// Runs to the end, and looks at everything.
Outcome finish_and_check(const Run& run, const Undisturbed& undisturbed, const Arguments& command);

/// Of the output and its index there is nothing, or all; of what was spilled nothing is left. `may_be_unnamed`: a killed
/// run may leave them under a temporary name, just before they have their own.
void check_no_part(const Run& run, const Undisturbed& undisturbed, bool may_be_unnamed);

/// A kill at the k-th call, before or after it, another at a random call of the recovery, and a third run. The calls at
/// which the two were killed: one may make fewer calls than the one that was counted.
std::vector<std::string> kill_twice(const Undisturbed& undisturbed, long k, bool after, std::mt19937_64& random);

/// Of spillway-call-faulty. "half" ends no run, and EINTR only one whose sync it stops.
[[nodiscard]] const std::vector<std::string>& faults();

/// A run of which the k-th call fails, once or for good, and another. The calls that failed.
std::vector<std::string> fail(const Undisturbed& undisturbed, const std::string& fault, long k, bool for_good);

} // namespace spillway::test
