// The files behind segments: a fixed few, opened when first needed, that never have a name (or lose it at once).
//
//     SpillFiles spill_files(directory, allow_tmpfs, file_system);
//     if (int error = spill_files.write(segment, offset, pieces)) ...
//
// Segment s lies in file s % striped_files at s / striped_files times the segment size, so that segments which are
// written at the same time are in different files (the kernel lets one writer at a time into a file) and a few
// descriptors do for any number of segments.
#pragma once

#include "base/file.hpp"
#include "base/set_once.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace spillway {

/// Thread safety: all methods from any thread; lock-free but for the kernel.
class SpillFiles {
public:
    static constexpr std::uint32_t striped_files = 8;
    /// Stands for the file of oversize records where a segment is asked for.
    static constexpr std::uint32_t oversize = ~std::uint32_t{0};

    /// Opens the directory and one file, which proves that it can be written. Throws as SpillStore's constructor.
    SpillFiles(const std::string& directory, bool allow_tmpfs, std::uint64_t segment_bytes,
               std::shared_ptr<FileSystem> files);
    ~SpillFiles();
    SpillFiles(const SpillFiles&) = delete;
    SpillFiles& operator=(const SpillFiles&) = delete;

    /// Return 0 or an errno. Offsets are relative to the segment.
    [[nodiscard]] int write(std::uint32_t segment, std::uint64_t offset, std::span<iovec> pieces);
    [[nodiscard]] int read(std::uint32_t segment, std::uint64_t offset, std::span<iovec> pieces);
    [[nodiscard]] int punch_hole(std::uint32_t segment, std::uint64_t offset, std::uint64_t length) noexcept;
    /// Starts writing the range to disk.
    [[nodiscard]] int start_writeback(std::uint32_t segment, std::uint64_t offset, std::uint64_t length) noexcept;
    /// Waits until the range is on disk and lets its pages go.
    [[nodiscard]] int finish_writeback(std::uint32_t segment, std::uint64_t offset, std::uint64_t length) noexcept;

    /// Free for us on the directory's disk, in bytes.
    [[nodiscard]] std::uint64_t free_bytes() const noexcept { return free_bytes_; }
    [[nodiscard]] const std::string& directory() const noexcept { return directory_; }

private:
    struct Range {
        int file;
        std::uint64_t offset;
    };

    void check_owner();
    void sweep() noexcept;
    [[nodiscard]] int open_nameless();
    [[nodiscard]] int open_then_unlink();
    /// The descriptor, opened if it is not yet; or -errno.
    [[nodiscard]] int descriptor(std::uint32_t file);
    /// Where a segment's offset lies; `file` is -errno if it cannot be had.
    [[nodiscard]] Range locate(std::uint32_t segment, std::uint64_t offset, std::uint64_t length);

    std::string directory_;
    std::shared_ptr<FileSystem> files_;
    FileHandle handle_; ///< Of the directory.
    std::array<SetOnce<int, -1>, striped_files + 1> descriptors_;
    std::uint64_t segment_bytes_;
    std::uint64_t free_bytes_ = 0;
    std::uint64_t largest_file_ = 0; ///< RLIMIT_FSIZE: writing beyond it would kill the process by a signal.
};

} // namespace spillway
