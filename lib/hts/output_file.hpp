// A file that appears under its name only when it is complete, written as plain bytes or as BGZF blocks.
#pragma once

#include "base/file.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::hts {

/// Has no name until it is complete, then for a moment a temporary one beside the final one (from the start where the
/// file system knows no nameless files). A temporary name that a killed process left is removed by the next that writes
/// the same output: its lock is gone then. What is no regular file is written directly. One thread at a time. Every
/// failure to write is Error(disk).
class OutputFile {
public:
    OutputFile(std::string path, bool bgzip, std::shared_ptr<FileSystem> files);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    void write(std::string_view bytes);
    /// Where the next byte goes, as BGZF's virtual offset; only with bgzip.
    [[nodiscard]] std::uint64_t virtual_offset() const noexcept { return written_ << 16 | buffer_.size(); }
    /// Writes what is buffered, the end-of-file block, and syncs; the file then has its temporary name.
    void finish();
    /// finish(), then gives the file its final name.
    void commit();

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    /// Where the bytes are between finish() and commit(); empty when written directly.
    [[nodiscard]] const std::string& temporary() const noexcept { return temporary_; }
    [[nodiscard]] bool direct() const noexcept { return direct_; }
    [[nodiscard]] FileSystem& files() const noexcept { return *files_; }

private:
    /// Calls make(candidate) with names until it returns 0 or more, which makes the name ours, or fails for good
    /// (-errno).
    template <class Make>
    [[nodiscard]] int name(Make make);
    void sweep() noexcept;
    void flush();
    void put(std::string_view bytes);
    [[noreturn]] void fail(int error, const char* doing) const;

    std::shared_ptr<FileSystem> files_;
    std::string path_, temporary_;
    bool bgzip_ = false, finished_ = false, direct_ = true;
    FileHandle owned_; // none for standard output
    int descriptor_ = -1;
    std::string buffer_; // bytes not yet written: a block's worth at most
    std::vector<char> block_;
    std::uint64_t written_ = 0; // bytes put into the file
};

/// Syncs the directory entry of `path`, so that a renamed file survives a power cut.
void sync_directory(FileSystem& files, const std::string& path) noexcept;

} // namespace spillway::hts
