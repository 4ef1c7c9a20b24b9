// What a run has finished, kept on disk, so that the run can go on where it was killed.
//
//     spillway::Journal journal({.directory = "/scratch/sample1", .fingerprint = {{"alignments", identity_of(bam)}}});
//     calling.run({.journal = &journal});      // what an earlier run finished is not computed again
//     vcf.commit();
//     journal.remove();                        // the output is safe
//
// Guarantee: the sink is given every result from the first, in order, as in a run that nobody disturbed, so that what
// it writes is the same byte for byte. A source item whose results are all in the journal is not computed again. Of one
// that was under way the fan-out makes its children again, which must be the same in the same order, and those whose
// results are there are passed over; where they are gathered or batched by key all are computed anew. Mechanism: results
// are appended by key as they are done, in any order, by a thread of the journal's own, and synced a few times a second;
// a torn end is cut at the last record whose checksums hold. Results must not look into their parents (shared<T>).
// docs/journal_format.md describes the files.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway {

class FileSystem;
class RunJournal;

/// One thing that results depend on: an input, an option, the program.
struct Fingerprint {
    std::string name;  ///< As the user knows it: "--regions", "in.bam". No line breaks; the names of one run differ.
    std::string value; ///< Equal if and only if results are. No line breaks.
};

/// What tells a file from any other, and from what it was before, for a fingerprint: "4096 bytes, changed at
/// 1700000000123456789 (as the disk has it: 1700000000123456789), digest 0123456789abcdef". Of the two times anybody may
/// set the first, and the kernel alone the second; the digest is of a mebibyte at each end, which is all that is read.
/// Throws Error(input). Safe from any thread. `files`: as in JournalOptions.
[[nodiscard]] std::string identity_of(const std::string& path, std::shared_ptr<FileSystem> files = {});

struct JournalOptions {
    std::string directory; ///< Made if missing (0700); held alone while the journal lives.
    /// Compared, in order, with what the earlier runs wrote there.
    std::vector<Fingerprint> fingerprint = {};
    /// Between two syncs: the most that a power cut costs, beside items under way. A killed process loses 20 ms at most.
    std::chrono::milliseconds commit_period = std::chrono::milliseconds(200);
    /// Called with one line of text where the journal can no longer be written. The run goes on without it.
    std::function<void(std::string_view)> log = {};
    std::shared_ptr<FileSystem> files = {}; ///< None: the machine's own. For tests, which let the k-th call fail.
};

/// A snapshot.
struct JournalStatistics {
    std::uint64_t items_found = 0;    ///< Source items that earlier runs finished.
    std::uint64_t records = 0;        ///< Written by this run.
    std::uint64_t bytes = 0;          ///< Written by this run.
    std::uint64_t commits = 0;        ///< Syncs that succeeded.
    std::uint64_t failed_commits = 0; ///< Writes or syncs that failed; what they held was written again elsewhere.
    int last_error = 0;               ///< errno of the last failure; 0 if none.
    bool broken = false;              ///< It could not be written any more; what it has stays good.
};

/// For one run at a time, of a pipeline that has a source. Memory: about 90 bytes for each result found, and at most
/// 32 MiB of what is not yet synced. Thread safety: statistics from any thread.
class Journal {
public:
    /// Throws Error(usage) if another run holds the directory, if it or a journal in it is not the user's alone, or if
    /// the fingerprint differs (it says in what); Error(disk) if it cannot be read or written.
    explicit Journal(JournalOptions options);
    ~Journal();
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;

    /// Deletes what was written, once the run's output is safe. The directory stays, empty.
    void remove();

    [[nodiscard]] JournalStatistics statistics() const noexcept;

    /// For the pipeline.
    [[nodiscard]] RunJournal& run() noexcept { return *run_; }

private:
    std::unique_ptr<RunJournal> run_;
};

} // namespace spillway
