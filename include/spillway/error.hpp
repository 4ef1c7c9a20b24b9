// What went wrong, during what, and where: the one exception type of Spillway.
//
//     try {
//         calling.run(options);
//     } catch (const spillway::Error& error) {
//         std::cerr << "spillway-call: " << error.what() << '\n';   // "reading in.bam: record 17: truncated file"
//         return spillway::exit_code(error.code());
//     }
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace spillway {

enum class ErrorCode {
    runtime,   ///< A stage threw, or an invariant of the run broke.
    usage,     ///< The caller's options contradict each other or the machine: nothing was started.
    input,     ///< An input is missing, malformed, or does not fit another input.
    disk,      ///< Writing or reading back our own files failed: full, quota, I/O error.
    memory,    ///< Memory ran out and could not be had by spilling.
    cancelled, ///< The host asked to stop.
    fork,      ///< A pool or pipeline was used in a child process after fork.
};

/// Thread safety: as a value. `what()` is "<doing>: <where>: <detail>" with empty parts left out.
class Error : public std::exception {
public:
    /// `doing` is what was being done ("reading alignments"), `where` the file, region or read ("in.bam:chr20:1-500"),
    /// `detail` the cause and, where there is one, the remedy.
    Error(ErrorCode code, std::string doing, std::string where, std::string detail);

    [[nodiscard]] ErrorCode code() const noexcept { return code_; }
    [[nodiscard]] const std::string& doing() const noexcept { return doing_; }
    [[nodiscard]] const std::string& where() const noexcept { return where_; }
    [[nodiscard]] const std::string& detail() const noexcept { return detail_; }
    [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }

private:
    ErrorCode code_;
    std::string doing_, where_, detail_, message_;
};

/// An Error whose detail is the text of `errno_value`; its code is disk for ENOSPC, EDQUOT, EIO and EROFS, else `code`.
[[nodiscard]] Error system_error(int errno_value, std::string doing, std::string where,
                                 ErrorCode code = ErrorCode::runtime);

/// The exit status of a binary: 0 done, 1 runtime, 2 usage, 3 input, 4 disk or memory.
[[nodiscard]] int exit_code(ErrorCode code) noexcept;

} // namespace spillway
