// One directory of a spill store: its segments, the seats that write them, and what its disk has been seen to take.
//
//     SpillDisk disk("/scratch", options, seats, files, shape);
//     SpillResult written = disk.write(seat, key.ordinals, bytes);
//     disk.read(written.place, buffer);
//     disk.release(written.place);
#pragma once

#include "base/file.hpp"
#include "base/spill_place.hpp"
#include "spill/compression.hpp"
#include "spillway/spill.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace spillway {

/// What a candidate's key is on disk: the ordinals of its path.
using SpillKey = std::array<std::uint64_t, 4>;

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
    /// Drained segments keep their blocks for the next use up to so many bytes in all, and to an eighth of the disk limit:
    /// giving a segment back takes as long as reading it where the disk is told of what is free.
    std::uint64_t kept = std::uint64_t{1} << 30U;
    Compression::Choice compression = Compression::Choice::measured;
};

/// As SpillStore, which chooses among disks; places are its own.
class SpillDisk {
public:
    SpillDisk(const std::string& directory, const SpillOptions& options, unsigned seats,
              std::shared_ptr<FileSystem> files, const SegmentShape& shape);
    ~SpillDisk();
    SpillDisk(const SpillDisk&) = delete;
    SpillDisk& operator=(const SpillDisk&) = delete;

    /// Payload: at most 2^32 - 1 bytes.
    [[nodiscard]] SpillResult write(unsigned seat, const SpillKey& key, std::span<const std::byte> payload);
    void read(const SpillPlace& place, std::vector<std::byte>& out);
    void release(const SpillPlace& place) noexcept;

    /// Adds what it knows: bytes on disk, segments, the last error.
    void add_to(SpillStatistics& all) const noexcept;
    [[nodiscard]] std::uint64_t buffered() const noexcept;

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace spillway
