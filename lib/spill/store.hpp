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
#include "spillway/spill.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace spillway {

struct SpillResult {
    SpillPlace place;
    int error = 0; ///< errno; 0: written.

    explicit operator bool() const noexcept { return error == 0; }
};

/// How a store cuts its files; tests make all of it smaller.
struct SegmentShape {
    std::uint64_t bytes = std::uint64_t{64} << 20U; ///< Of a segment: at least 64 KiB, a multiple of 4 KiB.
    /// Dirty pages are sent to the disk in pieces of this size while the next fills up, so that the kernel never has so
    /// many that it stops the writers for them.
    std::uint64_t writeback = std::uint64_t{8} << 20U;
    std::uint64_t buffer = std::uint64_t{1} << 20U; ///< Of a seat, for small records; at least 72 KiB.
};

/// Thread safety: write is called by one thread at a time for each seat; read, release and statistics by any thread.
/// No mutex, no condition variable. All records must be released or forgotten before the store is destroyed.
class SpillStore {
public:
    /// What a candidate's key is on disk: the ordinals of its path.
    using RecordKey = std::array<std::uint64_t, 4>;

    /// Throws Error(usage) if the directory is missing, not writable, in memory (tmpfs), or empty in `options`;
    /// Error(disk) if no file can be made in it. `files` lets tests fail the k-th call.
    SpillStore(const SpillOptions& options, unsigned seats, std::shared_ptr<FileSystem> files = system_files(),
               const SegmentShape& shape = {});
    ~SpillStore();
    SpillStore(const SpillStore&) = delete;
    SpillStore& operator=(const SpillStore&) = delete;

    /// Appends a record to the seat's segment. Payload: 0 to 2^32 - 1 bytes. Never throws for a full or failing disk;
    /// the result then carries the errno, nothing was kept, and a later write tries again.
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
