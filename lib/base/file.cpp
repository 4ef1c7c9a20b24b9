#include "base/file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace spillway {
namespace {

template <typename R>
R result_or_errno(R result) {
    return result < 0 ? -static_cast<R>(errno) : result;
}

/// Moves `pieces` on by the bytes that a call has dealt with, so that it begins with what is left.
void drop_front(std::span<iovec>& pieces, std::size_t done) {
    while (!pieces.empty() && done >= pieces.front().iov_len) {
        done -= pieces.front().iov_len;
        pieces = pieces.subspan(1);
    }
    if (done != 0) {
        pieces.front().iov_base = static_cast<std::byte*>(pieces.front().iov_base) + done;
        pieces.front().iov_len -= done;
    }
}

template <typename Call>
int for_all(std::span<iovec> pieces, std::uint64_t offset, int at_nothing, Call call) {
    drop_front(pieces, 0); // Leading empty pieces go; a call with nothing to do would look like the end of the file.
    while (!pieces.empty()) {
        const std::int64_t done = uninterrupted([&] { return call(pieces, offset); });
        if (done < 0) return static_cast<int>(-done);
        if (done == 0) return at_nothing;
        offset += static_cast<std::uint64_t>(done);
        drop_front(pieces, static_cast<std::size_t>(done));
    }
    return 0;
}

} // namespace

FileSystem::~FileSystem() = default;

int FileSystem::open(int directory, const char* path, int flags, unsigned mode) {
    return result_or_errno(::openat(directory, path, flags, mode)); // NOLINT(cppcoreguidelines-pro-type-vararg)
}

int FileSystem::unlink(int directory, const char* path) {
    return result_or_errno(::unlinkat(directory, path, 0));
}

void FileSystem::close(int file) noexcept {
    ::close(file);
}

std::int64_t FileSystem::write(int file, std::span<const iovec> pieces, std::uint64_t offset) {
    return result_or_errno(::pwritev(file, pieces.data(), static_cast<int>(pieces.size()), static_cast<off_t>(offset)));
}

std::int64_t FileSystem::read(int file, std::span<const iovec> pieces, std::uint64_t offset) {
    return result_or_errno(::preadv(file, pieces.data(), static_cast<int>(pieces.size()), static_cast<off_t>(offset)));
}

int FileSystem::punch_hole(int file, std::uint64_t offset, std::uint64_t length) {
    return result_or_errno(::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                                       static_cast<off_t>(length)));
}

int FileSystem::sync_range(int file, std::uint64_t offset, std::uint64_t length, unsigned flags) {
    return result_or_errno(::sync_file_range(file, static_cast<off64_t>(offset), static_cast<off64_t>(length), flags));
}

int FileSystem::drop_cached(int file, std::uint64_t offset, std::uint64_t length) {
    return -::posix_fadvise(file, static_cast<off_t>(offset), static_cast<off_t>(length), POSIX_FADV_DONTNEED);
}

int FileSystem::statistics(int file, struct statfs& out) {
    return result_or_errno(::fstatfs(file, &out));
}

std::int64_t FileSystem::append(int file, std::span<const std::byte> bytes) {
    return result_or_errno(::write(file, bytes.data(), bytes.size()));
}

int FileSystem::sync(int file, bool data_only) {
    return result_or_errno(data_only ? ::fdatasync(file) : ::fsync(file));
}

int FileSystem::status(int file, struct stat& out) {
    return result_or_errno(::fstat(file, &out));
}

int FileSystem::status_of(int directory, const char* path, int flags, struct stat& out) {
    return result_or_errno(::fstatat(directory, path, &out, flags));
}

int FileSystem::real_path(const char* path, std::string& out) {
    const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path, nullptr), &std::free);
    if (resolved == nullptr) return -errno;
    out = resolved.get();
    return 0;
}

int FileSystem::make_directory(int directory, const char* path, unsigned mode) {
    return result_or_errno(::mkdirat(directory, path, mode));
}

int FileSystem::link(int file, int directory, const char* path) {
    const std::string nameless = "/proc/self/fd/" + std::to_string(file);
    return result_or_errno(::linkat(AT_FDCWD, nameless.c_str(), directory, path, AT_SYMLINK_FOLLOW));
}

int FileSystem::rename(int directory, const char* from, const char* to) {
    return result_or_errno(::renameat(directory, from, directory, to));
}

int FileSystem::lock(int file) {
    return result_or_errno(::flock(file, LOCK_EX | LOCK_NB));
}

int FileSystem::list(int directory, std::vector<std::string>& names) {
    // A description of its own: reading moves the position, and closing the stream closes the descriptor.
    const int copy =
        ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); // NOLINT(cppcoreguidelines-pro-type-vararg)
    if (copy < 0) return -errno;
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(copy), ::closedir);
    if (stream == nullptr) {
        const int error = errno;
        ::close(copy);
        return -error;
    }
    errno = 0;
    while (const dirent* entry = ::readdir(stream.get())) {
        const std::string_view name(entry->d_name);
        if (name != "." && name != "..") names.emplace_back(name);
    }
    return -errno;
}

std::shared_ptr<FileSystem> system_files() {
    return std::make_shared<FileSystem>();
}

int write_all(FileSystem& files, int file, std::span<iovec> pieces, std::uint64_t offset) {
    return for_all(pieces, offset, EIO,
                   [&](std::span<const iovec> left, std::uint64_t at) { return files.write(file, left, at); });
}

int append_all(FileSystem& files, int file, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const std::int64_t done = uninterrupted([&] { return files.append(file, bytes); });
        if (done < 0) return static_cast<int>(-done);
        if (done == 0) return EIO;
        bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
    return 0;
}

int read_all(FileSystem& files, int file, std::span<iovec> pieces, std::uint64_t offset) {
    return for_all(pieces, offset, ENODATA,
                   [&](std::span<const iovec> left, std::uint64_t at) { return files.read(file, left, at); });
}

ErrorCode code_of_directory(int error) noexcept {
    switch (error) {
    case ENOENT:
    case ENOTDIR:
    case EEXIST:
    case ELOOP:
    case ENAMETOOLONG:
    case EACCES:
    case EPERM:
        return ErrorCode::usage;
    default:
        return ErrorCode::disk;
    }
}

std::string_view read_text(const char* path, std::span<char> buffer) noexcept {
    const int file = ::open(path, O_RDONLY | O_CLOEXEC); // NOLINT(cppcoreguidelines-pro-type-vararg)
    if (file < 0) return {};
    std::size_t length = 0;
    while (length != buffer.size()) {
        const ssize_t got = ::read(file, buffer.data() + length, buffer.size() - length);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        length += static_cast<std::size_t>(got);
    }
    ::close(file);
    return {buffer.data(), length};
}

} // namespace spillway
