// Payloads on disk: written once by a seat, read back by anyone, released once.
//
//     SpillStore store({.directory = "/scratch"}, seats);
//     if (SpillResult written = store.write(seat, key.ordinals, bytes)) {   // else written.error is an errno: keep the
//     payload
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

/// Thread safety: write is called by one thread at a time for each seat; read, release and statistics by any thread.
/// No mutex, no condition variable. All records must be released or forgotten before the store is destroyed.
class SpillStore {
public:
    /// What a candidate's key is on disk: the ordinals of its path.
    using RecordKey = std::array<std::uint64_t, 4>;

    /// Small records are gathered in a buffer of this size, which a seat has once it has written one: for the budget.
    static constexpr std::size_t buffer_bytes = std::size_t{1} << 20U;

    /// Throws Error(usage) if the directory is missing, not writable, in memory (tmpfs), or empty in `options`;
    /// Error(disk) if no file can be made in it. `files` lets tests fail the k-th call.
    SpillStore(const SpillOptions& options, unsigned seats, std::shared_ptr<FileSystem> files = system_files());
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

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace spillway
