#include "spill/spill_files.hpp"

#include "base/checked.hpp"
#include "spillway/error.hpp"

#include <cerrno>
#include <cstdio>
#include <limits>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace spillway {
namespace {

constexpr const char* opening = "opening the spill directory";
constexpr int file_flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
constexpr std::string_view name_prefix =
    ".spillway-"; ///< Of a file that loses its name at once; hexadecimal digits follow.
constexpr std::size_t name_digits = 16;
constexpr unsigned only_owner = S_IRUSR | S_IWUSR;

/// What the user can do about a directory that does not open.
[[noreturn]] void throw_open_error(int error, const std::string& directory) {
    switch (error) {
    case ENOENT:
        throw Error(ErrorCode::usage, opening, directory, "it does not exist: make it or name another");
    case ENOTDIR:
        throw Error(ErrorCode::usage, opening, directory, "it is not a directory");
    case EACCES:
    case EPERM:
        throw Error(ErrorCode::usage, opening, directory, "it may not be written: change its mode or name another");
    default:
        throw system_error(error, opening, directory, code_of_directory(error));
    }
}

std::uint64_t largest_file() noexcept {
    constexpr std::uint64_t largest_offset = std::numeric_limits<std::int64_t>::max();
    rlimit limit{};
    if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return largest_offset;
    return std::min<std::uint64_t>(limit.rlim_cur, largest_offset);
}

} // namespace

SpillFiles::SpillFiles(const std::string& directory, bool allow_tmpfs, std::uint64_t segment_bytes,
                       std::shared_ptr<FileSystem> files)
    : directory_(directory), files_(std::move(files)), segment_bytes_(segment_bytes), largest_file_(largest_file()) {
    if (directory.empty()) throw Error(ErrorCode::usage, opening, "", "no directory was named");
    const int opened =
        uninterrupted([&] { return files_->open(AT_FDCWD, directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0); });
    handle_ = FileHandle(*files_, opened);
    if (handle_.descriptor() < 0) throw_open_error(-handle_.descriptor(), directory_);
    check_owner();

    struct statfs disk {};
    if (const int error = uninterrupted([&] { return files_->statistics(handle_.descriptor(), disk); }); error < 0) {
        throw system_error(-error, opening, directory_, ErrorCode::disk);
    }
    if (!allow_tmpfs && (disk.f_type == TMPFS_MAGIC || disk.f_type == RAMFS_MAGIC)) {
        throw Error(ErrorCode::usage, opening, directory_,
                    "it lies in memory (tmpfs), which spilling is to relieve: name a directory on a disk");
    }
    free_bytes_ = checked_multiply<std::uint64_t>(disk.f_bavail, static_cast<std::uint64_t>(disk.f_bsize))
                      .value_or(std::numeric_limits<std::uint64_t>::max());
    sweep();
    if (const int file = descriptor(0); file < 0) throw_open_error(-file, directory_);
}

/// Where all may write and anybody may rename or remove what others made, a file could be changed for another before it
/// has lost its name. A directory of our own is ours to judge.
void SpillFiles::check_owner() {
    struct stat status {};
    if (const int error = uninterrupted([&] { return files_->status(handle_.descriptor(), status); }); error < 0)
        throw system_error(-error, opening, directory_, ErrorCode::disk);
    const bool open_to_all = (status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0;
    if (open_to_all && status.st_uid != ::geteuid()) {
        throw Error(ErrorCode::usage, opening, directory_,
                    "all may write in it, and remove what others made: chmod +t, or name another");
    }
}

/// Removes the names that a kill left between the making of a file and its unlinking. One that is just being made by
/// another run is about to lose its name anyway, and that run does not mind who took it.
void SpillFiles::sweep() noexcept {
    std::vector<std::string> names;
    if (files_->list(handle_.descriptor(), names) < 0) return;
    for (const std::string& name : names) {
        if (name.size() != name_prefix.size() + name_digits || !name.starts_with(name_prefix) ||
            name.find_first_not_of("0123456789abcdef", name_prefix.size()) != std::string::npos)
            continue;
        static_cast<void>(files_->unlink(handle_.descriptor(), name.c_str())); // Another user's stays: not permitted.
    }
}

SpillFiles::~SpillFiles() {
    for (auto& descriptor : descriptors_) {
        if (const int file = descriptor.get(); file >= 0) files_->close(file);
    }
}

int SpillFiles::open_nameless() {
    constexpr int flags = O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC;
    const int file = uninterrupted([&] { return files_->open(handle_.descriptor(), ".", flags, only_owner); });
    // What filesystems and kernels without nameless files answer.
    if (file == -EOPNOTSUPP || file == -EISDIR || file == -EINVAL || file == -ENOENT) return open_then_unlink();
    return file;
}

int SpillFiles::open_then_unlink() {
    constexpr int attempts = 16;
    for (int attempt = 0; attempt != attempts; ++attempt) {
        std::uint64_t random = 0;
        if (::getrandom(&random, sizeof(random), 0) != sizeof(random)) continue;
        std::array<char, 64> name{};
        std::snprintf(name.data(), name.size(), // NOLINT(cppcoreguidelines-pro-type-vararg)
                      "%s%016llx", name_prefix.data(), static_cast<unsigned long long>(random));
        const int file = uninterrupted(
            [&] { return files_->open(handle_.descriptor(), name.data(), file_flags | O_CREAT | O_EXCL, only_owner); });
        if (file == -EEXIST) continue;
        if (file < 0) return file;
        const int error = uninterrupted([&] { return files_->unlink(handle_.descriptor(), name.data()); });
        if (error < 0 && error != -ENOENT) {
            files_->close(file);
            return error;
        }
        return file;
    }
    return -EEXIST;
}

int SpillFiles::descriptor(std::uint32_t file) {
    if (const int open = descriptors_[file].get(); open >= 0) return open;
    const int fresh = open_nameless();
    if (fresh < 0) return fresh;
    const int first = descriptors_[file].set(fresh);
    if (first != fresh) files_->close(fresh); // Another thread was faster.
    return first;
}

SpillFiles::Range SpillFiles::locate(std::uint32_t segment, std::uint64_t offset, std::uint64_t length) {
    const bool big = segment == oversize;
    const std::uint64_t begin = (big ? 0 : std::uint64_t{segment / striped_files} * segment_bytes_) + offset;
    const auto end = checked_add(begin, length);
    if (!end || *end > largest_file_) return {-EFBIG, begin};
    return {descriptor(big ? striped_files : segment % striped_files), begin};
}

namespace {

std::uint64_t total(std::span<const iovec> pieces) noexcept {
    std::uint64_t bytes = 0;
    for (const iovec& piece : pieces) bytes += piece.iov_len;
    return bytes;
}

} // namespace

int SpillFiles::write(std::uint32_t segment, std::uint64_t offset, std::span<iovec> pieces) {
    const Range range = locate(segment, offset, total(pieces));
    return range.file < 0 ? -range.file : write_all(*files_, range.file, pieces, range.offset);
}

int SpillFiles::read(std::uint32_t segment, std::uint64_t offset, std::span<iovec> pieces) {
    const Range range = locate(segment, offset, total(pieces));
    return range.file < 0 ? -range.file : read_all(*files_, range.file, pieces, range.offset);
}

int SpillFiles::punch_hole(std::uint32_t segment, std::uint64_t offset, std::uint64_t length) noexcept {
    const Range range = locate(segment, offset, length);
    return range.file < 0 ? -range.file : -files_->punch_hole(range.file, range.offset, length);
}

int SpillFiles::start_writeback(std::uint32_t segment, std::uint64_t offset, std::uint64_t length) noexcept {
    const Range range = locate(segment, offset, length);
    if (range.file < 0) return -range.file;
    return -files_->sync_range(range.file, range.offset, length, SYNC_FILE_RANGE_WRITE);
}

int SpillFiles::finish_writeback(std::uint32_t segment, std::uint64_t offset, std::uint64_t length) noexcept {
    const Range range = locate(segment, offset, length);
    if (range.file < 0) return -range.file;
    constexpr unsigned wait = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if (const int error = files_->sync_range(range.file, range.offset, length, wait); error < 0) return -error;
    return -files_->drop_cached(range.file, range.offset, length);
}

} // namespace spillway
