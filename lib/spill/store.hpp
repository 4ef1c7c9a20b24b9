// Payloads on disk: written once by a seat, read back by anyone, released once.
//
//     SpillStore store({.directory = "/scratch"}, seats);
//     // Where it fails, written.error is an errno and the payload stays in memory.
//     if (SpillResult written = store.write(seat, key.ordinals, bytes)) {
//         store.read(written.place, buffer);
//         store.release(written.place);
//     }
#pragma once

#include "base/file.hpp"
#include "base/spill_place.hpp"
#include "spill/spill_disk.hpp"
#include "spillway/spill.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace spillway {

/// Thread safety: write is called by one thread at a time for each seat; read, release and statistics by any thread.
/// No mutex, no condition variable. All records must be released or forgotten before the store is destroyed.
class SpillStore {
public:
    using RecordKey = SpillKey;

    /// Throws Error(usage) if a directory is missing, not writable, in memory (tmpfs), or empty in `options`;
    /// Error(disk) if no file can be made in one. `files` lets tests fail the k-th call.
    SpillStore(const SpillOptions& options, unsigned seats, const std::shared_ptr<FileSystem>& files = system_files(),
               const SegmentShape& shape = {});
    ~SpillStore();
    SpillStore(const SpillStore&) = delete;
    SpillStore& operator=(const SpillStore&) = delete;

    /// Appends a record to the seat's segment. Payload: 0 to 2^32 - 1 bytes. Each seat has a disk that it begins with;
    /// a full or failing one is left alone for a while, and the others are used. Never throws for such disks; where
    /// none is left the result carries the errno, nothing was kept, and a later write tries again.
    [[nodiscard]] SpillResult write(unsigned seat, const RecordKey& key, std::span<const std::byte> payload);

    /// Replaces `out` by the payload. Throws Error(disk) if it cannot be read or does not match its checksums.
    void read(const SpillPlace& place, std::vector<std::byte>& out);

    /// Gives the record's room back: once for each written record, after the last read. A drained segment returns to
    /// the disk.
    void release(const SpillPlace& place) noexcept;

    [[nodiscard]] SpillStatistics statistics() const noexcept;
    /// Bytes of memory held in seats' buffers: for the budget. Never falls.
    [[nodiscard]] std::uint64_t buffered() const noexcept;

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace spillway
