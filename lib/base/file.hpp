// Files by handle: the system calls that our own files are made of, behind a seam where tests let the k-th call fail.
//
//     FileSystem& files = *system_files();
//     FileHandle file(files, files.open(AT_FDCWD, "/scratch/a", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
//     if (int error = write_all(files, file.descriptor(), pieces, offset)) ...
#pragma once

#include "spillway/error.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>

namespace spillway {

/// One function a system call; all return the call's result, or -errno. Thread safety: as the calls themselves.
class FileSystem {
public:
    FileSystem() = default;
    virtual ~FileSystem();
    FileSystem(const FileSystem&) = delete;
    FileSystem& operator=(const FileSystem&) = delete;

    virtual int open(int directory, const char* path, int flags, unsigned mode);
    virtual int unlink(int directory, const char* path);
    virtual void close(int file) noexcept;
    virtual std::int64_t write(int file, std::span<const iovec> pieces, std::uint64_t offset);
    virtual std::int64_t read(int file, std::span<const iovec> pieces, std::uint64_t offset);
    /// Gives a range's blocks back to the disk; the range then reads as zeros.
    virtual int punch_hole(int file, std::uint64_t offset, std::uint64_t length);
    /// sync_file_range with its flags.
    virtual int sync_range(int file, std::uint64_t offset, std::uint64_t length, unsigned flags);
    /// Lets the clean pages of a range go.
    virtual int drop_cached(int file, std::uint64_t offset, std::uint64_t length);
    virtual int statistics(int file, struct statfs& out);
    /// Writes at the file's own position: for what cannot seek.
    virtual std::int64_t append(int file, std::span<const std::byte> bytes);
    /// fsync, of directories too; with `data_only` fdatasync.
    virtual int sync(int file, bool data_only);
    virtual int status(int file, struct stat& out);
    /// Of what a name says; with AT_SYMLINK_NOFOLLOW in `flags` a link's own.
    virtual int status_of(int directory, const char* path, int flags, struct stat& out);
    /// The path of what a name leads to, all links followed.
    virtual int real_path(const char* path, std::string& out);
    virtual int make_directory(int directory, const char* path, unsigned mode);
    /// Gives a file that may have no name one.
    virtual int link(int file, int directory, const char* path);
    virtual int rename(int directory, const char* from, const char* to);
    /// Locks a file or directory alone until the last copy of its descriptor is closed; -EWOULDBLOCK: another has it.
    virtual int lock(int file);
    /// Appends the names in a directory, but for "." and "..".
    virtual int list(int directory, std::vector<std::string>& names);
};

/// The machine's own.
[[nodiscard]] std::shared_ptr<FileSystem> system_files();

/// Owns a descriptor; negative: none.
class FileHandle {
public:
    FileHandle() noexcept = default;
    FileHandle(FileSystem& files, int descriptor) noexcept : files_(&files), descriptor_(descriptor) {}
    FileHandle(FileHandle&& other) noexcept : files_(other.files_), descriptor_(std::exchange(other.descriptor_, -1)) {}
    FileHandle& operator=(FileHandle&& other) noexcept {
        std::swap(files_, other.files_);
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~FileHandle() {
        if (descriptor_ >= 0) files_->close(descriptor_);
    }

    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
    /// Gives the descriptor up.
    [[nodiscard]] int take() noexcept { return std::exchange(descriptor_, -1); }

private:
    FileSystem* files_ = nullptr;
    int descriptor_ = -1;
};

/// Calls until no signal interrupts; `call` returns -errno on failure. After a thousand signals in a row, which no
/// machine sends, it is a failure as any other. Not for syncs: what an interrupted one has done is not known.
template <typename Call>
auto uninterrupted(Call call) {
    constexpr int most_signals = 1000;
    auto result = call();
    for (int signals = 0; result == -EINTR && signals < most_signals; ++signals) result = call();
    return result;
}

/// Writes all pieces one after the other from `offset` on, whatever the signals and short writes on the way. Returns 0
/// or an errno; after an error any part may have been written. `pieces` is used up.
[[nodiscard]] int write_all(FileSystem& files, int file, std::span<iovec> pieces, std::uint64_t offset);

/// The same at the file's own position.
[[nodiscard]] int append_all(FileSystem& files, int file, std::span<const std::byte> bytes);

/// Fills all pieces from `offset` on. Returns 0 or an errno; ENODATA: the file ends before.
[[nodiscard]] int read_all(FileSystem& files, int file, std::span<iovec> pieces, std::uint64_t offset);

/// Whose doing it is that a directory somebody named cannot be made or opened: usage where its name or the rights on it
/// are to blame, else disk.
[[nodiscard]] ErrorCode code_of_directory(int error) noexcept;

/// Reads the beginning of a small text file (/proc, /sys) into `buffer`, without allocating. Empty if it cannot be
/// read.
[[nodiscard]] std::string_view read_text(const char* path, std::span<char> buffer) noexcept;

} // namespace spillway
