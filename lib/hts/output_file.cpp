#include "hts/output_file.hpp"

#include "spillway/error.hpp"

#include <htslib/bgzf.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace spillway::hts {
namespace {

constexpr const char* writing = "writing";

/// zlib's and htslib's usual level.
constexpr int compression_level = -1;

/// A symbolic link keeps pointing where it does: what it points to is replaced.
std::string resolved(const std::string& path) {
    std::error_code problem;
    if (!std::filesystem::is_symlink(path, problem)) return path;
    const std::filesystem::path target = std::filesystem::weakly_canonical(path, problem);
    return problem ? path : target.string();
}

std::string directory_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

} // namespace

void sync_directory(const std::string& path) noexcept {
    const std::string directory = directory_of(path);
    const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    static_cast<void>(::fsync(descriptor));
    ::close(descriptor);
}

void OutputFile::fail(int error, const char* doing) const {
    throw system_error(error, doing, path_ == "-" ? "standard output" : path_, ErrorCode::disk);
}

template <class Make>
void OutputFile::name(Make make) {
    // A name of this process that no file has; one may have been left by a process that had the same number.
    const std::string stem = path_ + ".tmp-" + std::to_string(::getpid()) + "-";
    for (int attempt = 0; attempt < 1000; ++attempt) {
        const std::string candidate = stem + std::to_string(attempt);
        if (make(candidate)) {
            temporary_ = candidate;
            return;
        }
        if (errno != EEXIST) return;
    }
}

OutputFile::OutputFile(std::string path, bool bgzip) : path_(std::move(path)), bgzip_(bgzip) {
    if (bgzip_) block_.resize(BGZF_MAX_BLOCK_SIZE);
    buffer_.reserve(BGZF_BLOCK_SIZE);
    if (path_ == "-") {
        descriptor_ = STDOUT_FILENO;
        owned_ = false;
        return;
    }
    path_ = resolved(path_);
    struct stat status {};
    if (::stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
        if (S_ISDIR(status.st_mode)) throw system_error(EISDIR, writing, path_, ErrorCode::disk);
        descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    } else {
        direct_ = false;
        // Without a name until it is complete, so that not even a kill leaves a part behind. Some file systems cannot.
        descriptor_ = ::open(directory_of(path_).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
        if (descriptor_ < 0) {
            name([&](const std::string& candidate) {
                descriptor_ = ::open(candidate.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
                return descriptor_ >= 0;
            });
        }
    }
    if (descriptor_ < 0) throw system_error(errno, writing, path_, ErrorCode::disk);
}

OutputFile::~OutputFile() {
    if (descriptor_ >= 0 && owned_) ::close(descriptor_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::put(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t done = ::write(descriptor_, bytes.data(), bytes.size());
        if (done < 0) {
            if (errno == EINTR) continue;
            fail(errno, writing);
        }
        bytes.remove_prefix(static_cast<std::size_t>(done));
        written_ += static_cast<std::uint64_t>(done);
    }
}

void OutputFile::flush() {
    if (buffer_.empty()) return;
    if (bgzip_) {
        std::size_t size = block_.size();
        if (bgzf_compress(block_.data(), &size, buffer_.data(), buffer_.size(), compression_level) != 0)
            throw Error(ErrorCode::runtime, writing, path_, "a BGZF block could not be compressed");
        put({block_.data(), size});
    } else {
        put(buffer_);
    }
    buffer_.clear();
}

void OutputFile::write(std::string_view bytes) {
    // Blocks are cut by size alone, whatever the pieces that the bytes come in.
    while (!bytes.empty()) {
        const std::size_t room = BGZF_BLOCK_SIZE - buffer_.size();
        const std::size_t part = std::min(room, bytes.size());
        buffer_.append(bytes.substr(0, part));
        bytes.remove_prefix(part);
        if (buffer_.size() == BGZF_BLOCK_SIZE) flush();
    }
}

void OutputFile::finish() {
    if (finished_) return;
    flush();
    if (bgzip_) {
        // Of no bytes bgzf_compress makes the end-of-file block.
        std::size_t size = block_.size();
        if (bgzf_compress(block_.data(), &size, nullptr, 0, compression_level) != 0)
            throw Error(ErrorCode::runtime, writing, path_, "the end-of-file block could not be made");
        put({block_.data(), size});
    }
    if (!direct() && ::fsync(descriptor_) != 0) fail(errno, "syncing");
    finished_ = true;
    if (!direct() && temporary_.empty()) {
        const std::string nameless = "/proc/self/fd/" + std::to_string(descriptor_);
        name([&](const std::string& candidate) {
            return ::linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, candidate.c_str(), AT_SYMLINK_FOLLOW) == 0;
        });
        if (temporary_.empty()) fail(errno, "naming");
    }
    if (owned_) {
        const int closed = ::close(descriptor_);
        descriptor_ = -1;
        if (closed != 0) fail(errno, "closing");
    }
}

void OutputFile::commit() {
    finish();
    if (direct()) return;
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno, "renaming");
    temporary_.clear();
    sync_directory(path_);
}

} // namespace spillway::hts
