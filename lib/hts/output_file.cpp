#include "hts/output_file.hpp"

#include <htslib/bgzf.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace spillway::hts {
namespace {

constexpr const char* writing = "writing";

/// Between an output's name and the numbers that make a temporary one of it.
constexpr const char* temporary_mark = ".tmp-";

/// zlib's and htslib's usual level.
constexpr int compression_level = -1;

std::string directory_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

/// So that a renamed file survives a power cut.
void sync_directory(FileSystem& files, const std::string& path) noexcept {
    const FileHandle directory(files,
                               files.open(AT_FDCWD, directory_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
    if (directory.descriptor() >= 0) static_cast<void>(files.sync(directory.descriptor(), false));
}

} // namespace

void OutputFile::fail(int error, const char* doing) {
    failure_.emplace(system_error(error, doing, path_ == "-" ? "standard output" : path_, ErrorCode::disk));
    throw Error(*failure_);
}

void OutputFile::check() const {
    if (failure_) throw Error(*failure_);
}

bool OutputFile::is_special() {
    const auto mode_of = [&](int flags) {
        struct stat status {};
        const int error = uninterrupted([&] { return files_->status_of(AT_FDCWD, path_.c_str(), flags, status); });
        // What cannot be looked at might be a device, which no file must replace.
        if (error < 0 && error != -ENOENT) fail(-error, writing);
        return error == 0 ? status.st_mode : mode_t{S_IFREG};
    };
    if (S_ISLNK(mode_of(AT_SYMLINK_NOFOLLOW))) {
        // It keeps pointing where it does, unless that is nowhere: what it points to is replaced.
        std::string target;
        const int error = uninterrupted([&] { return files_->real_path(path_.c_str(), target); });
        if (error < 0 && error != -ENOENT) fail(-error, writing);
        if (error == 0) path_ = target;
    }
    const mode_t mode = mode_of(0);
    if (S_ISDIR(mode)) fail(EISDIR, writing);
    return !S_ISREG(mode);
}

template <class Make>
int OutputFile::name(Make make) {
    // A name of this process that no file has; one may have been left by a process that had the same number.
    const std::string stem = path_ + temporary_mark + std::to_string(::getpid()) + "-";
    int result = -EEXIST;
    for (int attempt = 0; attempt < 1000 && result == -EEXIST; ++attempt) {
        const std::string candidate = stem + std::to_string(attempt);
        result = make(candidate);
        if (result >= 0) temporary_ = candidate;
    }
    return result;
}

/// Removes what killed processes left of earlier attempts at this output. Who writes one holds its lock, however long
/// it takes; nobody holds a dead one's.
void OutputFile::sweep() noexcept {
    const std::string directory = directory_of(path_);
    const FileHandle handle(*files_, files_->open(AT_FDCWD, directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
    std::vector<std::string> names;
    if (handle.descriptor() < 0 || files_->list(handle.descriptor(), names) < 0) return;
    const std::string prefix = path_.substr(path_.rfind('/') + 1) + temporary_mark;
    const auto is_free = [&](const std::string& name) {
        const FileHandle file(*files_, files_->open(handle.descriptor(), name.c_str(),
                                                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0));
        return file.descriptor() >= 0 && files_->lock(file.descriptor()) == 0;
    };
    for (const std::string& name : names) {
        if (!name.starts_with(prefix)) continue;
        if (name.find_first_not_of("0123456789-", prefix.size()) == std::string::npos && is_free(name))
            static_cast<void>(files_->unlink(handle.descriptor(), name.c_str()));
    }
}

OutputFile::OutputFile(std::string path, bool bgzip, std::shared_ptr<FileSystem> files, Existing existing)
    : files_(files != nullptr ? std::move(files) : system_files()), path_(std::move(path)), bgzip_(bgzip) {
    if (bgzip_) block_.resize(BGZF_MAX_BLOCK_SIZE);
    buffer_.reserve(BGZF_BLOCK_SIZE);
    if (path_ == "-") {
        descriptor_ = STDOUT_FILENO;
        return;
    }
    if (existing == Existing::kept_special && is_special()) {
        descriptor_ = uninterrupted([&] { return files_->open(AT_FDCWD, path_.c_str(), O_WRONLY | O_CLOEXEC, 0); });
    } else {
        direct_ = false;
        sweep();
        // Without a name until it is complete, so that not even a kill leaves a part behind. Some file systems cannot.
        descriptor_ = uninterrupted([&] {
            return files_->open(AT_FDCWD, directory_of(path_).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
        });
        if (descriptor_ < 0) {
            descriptor_ = name([&](const std::string& candidate) {
                return uninterrupted([&] {
                    return files_->open(AT_FDCWD, candidate.c_str(),
                                        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
                });
            });
        }
    }
    if (descriptor_ < 0) fail(-descriptor_, writing);
    owned_ = FileHandle(*files_, descriptor_);
    // For sweep(). Where files cannot be locked nothing is swept either.
    if (!direct_) static_cast<void>(files_->lock(descriptor_));
}

OutputFile::~OutputFile() {
    if (!temporary_.empty()) static_cast<void>(files_->unlink(AT_FDCWD, temporary_.c_str()));
}

void OutputFile::put(std::string_view bytes) {
    if (const int error = append_all(*files_, descriptor_, std::as_bytes(std::span(bytes)))) fail(error, writing);
    written_ += bytes.size();
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
    check();
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
    check();
    if (finished_) return;
    flush();
    if (bgzip_) {
        // Of no bytes bgzf_compress makes the end-of-file block.
        std::size_t size = block_.size();
        if (bgzf_compress(block_.data(), &size, nullptr, 0, compression_level) != 0)
            throw Error(ErrorCode::runtime, writing, path_, "the end-of-file block could not be made");
        put({block_.data(), size});
    }
    if (!direct()) {
        if (const int error = files_->sync(descriptor_, false); error < 0) fail(-error, "syncing");
    }
    finished_ = true;
    if (!direct() && temporary_.empty()) {
        const int named = name([&](const std::string& candidate) {
            return uninterrupted([&] { return files_->link(descriptor_, AT_FDCWD, candidate.c_str()); });
        });
        if (named < 0) fail(-named, "naming");
    }
}

void OutputFile::commit() {
    finish();
    if (direct()) return;
    const int renamed = uninterrupted([&] { return files_->rename(AT_FDCWD, temporary_.c_str(), path_.c_str()); });
    if (renamed < 0) fail(-renamed, "renaming");
    temporary_.clear();
    sync_directory(*files_, path_);
}

} // namespace spillway::hts
