// A file that appears under its name only when it is complete, written as plain bytes or as BGZF blocks.
#pragma once

#include "base/file.hpp"
#include "spillway/error.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::hts {

/// What becomes of what already stands under the output's name.
enum class Existing {
    kept_special, ///< A link goes on pointing where it does; what is no regular file is written directly.
    replaced,     ///< Whatever it is, and without looking at it.
};

/// Has no name until it is complete, then for a moment a temporary one beside the final one (from the start where the
/// file system knows no nameless files). A temporary name that a killed process left is removed by the next that writes
/// the same output: its lock is gone then. One thread at a time. Every failure to write is Error(disk), and final: what
/// is called after it throws the same.
class OutputFile {
public:
    OutputFile(std::string path, bool bgzip, std::shared_ptr<FileSystem> files,
               Existing existing = Existing::kept_special);
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
    [[nodiscard]] bool direct() const noexcept { return direct_; }
    [[nodiscard]] const std::shared_ptr<FileSystem>& files() const noexcept { return files_; }

private:
    /// Calls make(candidate) with names until it returns 0 or more, which makes the name ours, or fails for good
    /// (-errno).
    template <class Make>
    [[nodiscard]] int name(Make make);
    void sweep() noexcept;
    void flush();
    void put(std::string_view bytes);
    [[noreturn]] void fail(int error, const char* doing);
    /// Throws what has failed.
    void check() const;
    /// Whether the output, which may be a link, is no regular file.
    [[nodiscard]] bool is_special();

    std::shared_ptr<FileSystem> files_;
    std::string path_, temporary_;
    bool bgzip_ = false, finished_ = false, direct_ = true;
    FileHandle owned_; // none for standard output
    int descriptor_ = -1;
    std::string buffer_; // bytes not yet written: a block's worth at most
    std::vector<char> block_;
    std::uint64_t written_ = 0; // bytes put into the file
    std::optional<Error> failure_;
};

} // namespace spillway::hts
