// Where candidates go when memory runs short, and what that cost: the options and figures of spilling.
//
//     calling.run({.spill = SpillOptions{.directory = "/scratch", .more_directories = {"/ssd2"}}});
//
// Spill files have no name once opened, so nothing is left behind, not even by kill -9. docs/segment_format.md
// describes them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace spillway {

class FileSystem; ///< The calls that files are made of: lib/base/file.hpp.

struct SpillOptions {
    std::string directory; ///< An existing, writable directory on a real disk; empty: never spill.
    /// More of the same kind, each on a disk of its own: workers are spread over all, and one that is full or fails is
    /// left alone while others take what comes.
    std::vector<std::string> more_directories = {};
    /// Most bytes to hold in each at once; 0: 90% of what is free there at the start. Up to an eighth of it, at most
    /// 1 GiB, stays allocated for the next to be written, until room for spilled payloads is short.
    std::uint64_t disk_limit = 0;
    bool allow_tmpfs = false;               ///< Spill to a directory that lies in memory itself: for tests.
    std::shared_ptr<FileSystem> files = {}; ///< None: the machine's own. For tests, which let the k-th call fail.
};

/// A snapshot; its figures are each exact, but not of one instant.
struct SpillStatistics {
    std::uint64_t records_written = 0;
    std::uint64_t records_read = 0;
    std::uint64_t bytes_written = 0; ///< Of payload, since the start.
    std::uint64_t bytes_stored = 0;  ///< What these took, compressed where the disk is slow.
    std::uint64_t bytes_read = 0;    ///< Of payload, since the start.
    std::uint64_t bytes_live = 0;    ///< As stored, written and not yet released.
    /// Held in files now, or on the way there: headers, released records of undrained segments and what drained ones
    /// keep included.
    std::uint64_t bytes_on_disk = 0;
    std::uint64_t segments = 0; ///< Ever opened, reuses counted once.
    std::uint64_t segments_reused = 0;
    std::uint64_t failed_writes = 0; ///< Records that stayed in memory because the disk was full or failed.
    int last_error = 0;              ///< errno of the last failed write; 0 if none failed.
};

} // namespace spillway
