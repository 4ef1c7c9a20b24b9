// A directory that one run holds alone, and the journals in it.
//
//     JournalDirectory directory("/scratch/sample1", file_system);      // made, checked, locked
//     for (const std::string& name : directory.journals()) FileHandle file = directory.open(name);
//     FileHandle fresh = directory.create();
//
// The lock is the kernel's, on the directory itself: it ends with the process, however that ends, and leaves no file
// behind. What lies in a directory that is held, and bears a journal's name, is an earlier run's.
#pragma once

#include "base/file.hpp"

#include <memory>
#include <string>
#include <vector>

namespace spillway {

/// Thread safety: one thread at a time. Everything is opened relative to the directory's descriptor and never through a
/// link, so that a directory that is renamed or replaced meanwhile changes nothing.
class JournalDirectory {
public:
    /// Makes the directory if it is missing. Throws Error(usage) if it is a link, not the user's, writable by others,
    /// or held by another run; Error(disk) if it cannot be made or opened.
    JournalDirectory(std::string path, std::shared_ptr<FileSystem> files);

    /// Oldest first.
    [[nodiscard]] std::vector<std::string> journals() const;
    /// For reading; `bytes` is its length. Throws Error(usage) if it is no plain file of the user's alone.
    [[nodiscard]] FileHandle open(const std::string& name, std::uint64_t& bytes) const;
    /// A new, empty one, after all there are; durable under its name. Returns an errno, or 0; once the directory could
    /// not be synced, always that errno.
    [[nodiscard]] int create(FileHandle& file);
    /// Throws Error(disk).
    void remove(const std::string& name);

    [[nodiscard]] FileSystem& files() const noexcept { return *files_; }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

private:
    std::string path_;
    std::shared_ptr<FileSystem> files_;
    FileHandle handle_;
    std::uint64_t last_ = 0; ///< The highest number in use.
    int sync_error_ = 0;     ///< Of the directory, whose sync is not tried again either.
};

} // namespace spillway
