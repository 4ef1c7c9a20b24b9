// Records that are longer than a segment: extents of one file of their own, handed out one behind the other.
#pragma once

#include "spill/extents.hpp"
#include "spill/segment.hpp"
#include "spill/spill_disk.hpp"
#include "spill/spill_files.hpp"

namespace spillway {

/// An extent's blocks go back to the disk when its record is released, and its addresses once no record is left: there
/// are 2^32 blocks of 4 KiB, as many as ext4 takes in a file. Thread safety: all methods from any thread, lock-free.
class OversizeFile {
public:
    explicit OversizeFile(SpillFiles& files) noexcept : files_(&files) {}

    [[nodiscard]] SpillResult write(const SpillKey& key, std::uint64_t salt, std::uint32_t raw,
                                    std::span<const std::byte> stored);
    /// Returns 0 or an errno.
    [[nodiscard]] int read(const SpillPlace& place, StoredHeader& header, std::span<std::byte> stored);
    void release(const SpillPlace& place) noexcept;

private:
    static constexpr std::uint64_t block_bytes = 4096;

    void give_back(std::uint32_t block, std::uint32_t length) noexcept;

    SpillFiles* files_;
    Extents<> extents_; ///< Of blocks.
};

} // namespace spillway
