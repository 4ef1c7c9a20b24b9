// A file system that does what the machine's does, but for the calls that a test chooses.
//
//     const auto files = std::make_shared<FaultyFiles>();
//     files->fail_call = 7;                 // the eighth call from here on ...
//     files->fault = {.error = ENOSPC};     // ... fails, once
//     files->on_fault = [](const std::string& call) { ... };   // "write /tmp/x/journal-00000001"
#pragma once

#include "base/file.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace spillway::test {

struct Fault {
    int error = 0;         ///< What the call fails with; 0: a write or read does half of its work, others all of it.
    bool for_good = false; ///< So do all calls after it.
    bool kills = false;    ///< The process dies instead, as by kill -9, ...
    bool after = false;    ///< ... when the call has been made (else before).
    bool delays = false;   ///< The call is made, some milliseconds late.
};

/// Thread safety: as FileSystem; set the members before the calls.
class FaultyFiles : public FileSystem {
public:
    std::atomic<long> fail_call{-1}; ///< Counts down with every call; the one that finds 0 meets the fault.
    Fault fault;
    std::atomic<int> fail_writes{0}; ///< If not 0, all writes fail with it.
    std::atomic<long> calls{0};
    std::atomic<long> writes{0};  ///< Of calls, those that wrote at an offset, or were to ...
    std::atomic<long> refused{0}; ///< ... and of these those that failed, by a fault or by the disk.
    bool no_nameless = false;     ///< The disk knows no O_TMPFILE.
    bool no_waiting = true;       ///< Syncs are only counted: a disk's pace is nothing that a test must wait for.
    std::uint64_t free_bytes = 0; ///< If not 0, what the disk says it has free for us.
    long filesystem_type = 0;     ///< If not 0, what the disk says it is.
    std::vector<int> opened;      ///< Descriptors, in order.
    /// Told each call that meets the fault, before it does, on any thread: its name and where it is made. A file without
    /// a name is told by its directory and a number.
    std::function<void(const std::string& call)> on_fault;

    int open(int directory, const char* path, int flags, unsigned mode) override {
        if (no_nameless && (flags & O_TMPFILE) == O_TMPFILE) return -EOPNOTSUPP;
        const int file = met({"open", directory, path}, [&] { return FileSystem::open(directory, path, flags, mode); });
        const std::lock_guard lock(mutex_);
        if (file >= 0) opened.push_back(file);
        return file;
    }
    int unlink(int directory, const char* path) override {
        return met({"unlink", directory, path}, [&] { return FileSystem::unlink(directory, path); });
    }
    /// Whatever the kernel says, the descriptor is gone then.
    void close(int file) noexcept override {
        bool closed = false;
        met({"close", file}, [&] {
            FileSystem::close(file);
            closed = true;
            return 0;
        });
        if (!closed) FileSystem::close(file);
    }
    std::int64_t write(int file, std::span<const iovec> pieces, std::uint64_t offset) override {
        ++writes;
        bool whole = true;
        const std::int64_t result = [&]() -> std::int64_t {
            if (const int error = fail_writes) return -error;
            return met(
                {"write", file},
                [&] { return FileSystem::write(file, whole ? pieces : std::span<const iovec>(half(pieces)), offset); },
                &whole);
        }();
        if (result < 0) ++refused;
        return result;
    }
    std::int64_t append(int file, std::span<const std::byte> bytes) override {
        if (const int error = fail_writes) return -error;
        bool whole = true;
        return met(
            {"append", file},
            [&] { return FileSystem::append(file, whole ? bytes : bytes.first((bytes.size() + 1) / 2)); }, &whole);
    }
    std::int64_t read(int file, std::span<const iovec> pieces, std::uint64_t offset) override {
        bool whole = true;
        return met(
            {"read", file},
            [&] { return FileSystem::read(file, whole ? pieces : std::span<const iovec>(half(pieces)), offset); },
            &whole);
    }
    int punch_hole(int file, std::uint64_t offset, std::uint64_t length) override {
        return met({"punch_hole", file}, [&] { return FileSystem::punch_hole(file, offset, length); });
    }
    int sync_range(int file, std::uint64_t offset, std::uint64_t length, unsigned flags) override {
        return met({"sync_range", file},
                   [&] { return no_waiting ? 0 : FileSystem::sync_range(file, offset, length, flags); });
    }
    int drop_cached(int file, std::uint64_t offset, std::uint64_t length) override {
        return met({"drop_cached", file}, [&] { return FileSystem::drop_cached(file, offset, length); });
    }
    int statistics(int file, struct statfs& out) override {
        const int result = met({"statistics", file}, [&] { return FileSystem::statistics(file, out); });
        if (filesystem_type != 0) out.f_type = filesystem_type;
        if (free_bytes != 0) {
            out.f_bavail = free_bytes;
            out.f_bsize = 1;
        }
        return result;
    }
    int sync(int file, bool data_only) override {
        return met({"sync", file}, [&] { return no_waiting ? 0 : FileSystem::sync(file, data_only); });
    }
    int status(int file, struct stat& out) override {
        return met({"status", file}, [&] { return FileSystem::status(file, out); });
    }
    int status_of(int directory, const char* path, int flags, struct stat& out) override {
        return met({"status_of", directory, path}, [&] { return FileSystem::status_of(directory, path, flags, out); });
    }
    int real_path(const char* path, std::string& out) override {
        return met({"real_path", AT_FDCWD, path}, [&] { return FileSystem::real_path(path, out); });
    }
    int make_directory(int directory, const char* path, unsigned mode) override {
        return met({"make_directory", directory, path},
                   [&] { return FileSystem::make_directory(directory, path, mode); });
    }
    int link(int file, int directory, const char* path) override {
        return met({"link", directory, path}, [&] { return FileSystem::link(file, directory, path); });
    }
    int rename(int directory, const char* from, const char* to) override {
        return met({"rename", directory, from}, [&] { return FileSystem::rename(directory, from, to); });
    }
    int lock(int file) override {
        return met({"lock", file}, [&] { return FileSystem::lock(file); });
    }
    int list(int directory, std::vector<std::string>& names) override {
        return met({"list", directory}, [&] { return FileSystem::list(directory, names); });
    }

private:
    /// What is called, and with what: a path that may be relative to a directory, or an open file.
    struct Target {
        const char* call;
        int file;
        const char* path = nullptr;

        [[nodiscard]] std::string text() const {
            namespace fs = std::filesystem;
            std::error_code none;
            const fs::path opened =
                file == AT_FDCWD ? "" : fs::read_symlink("/proc/self/fd/" + std::to_string(file), none);
            return std::string(call) + ' ' + (path == nullptr ? opened : opened / path).string();
        }
    };

    /// Makes the call, unless a fault is met instead. `whole`, where it is given, is set to false if the call is to do
    /// half of its work.
    template <typename Call>
    std::invoke_result_t<Call> met(Target target, Call call, bool* whole = nullptr) {
        ++calls;
        const long left = fail_call.fetch_sub(1);
        if (left > 0 || (left < 0 && !(fault.for_good && armed_))) return call();
        if (left == 0) armed_ = true;
        if (on_fault) on_fault(target.text());
        if (fault.delays) std::this_thread::sleep_for(std::chrono::milliseconds(3));
        if (fault.kills) {
            if (fault.after) static_cast<void>(call());
            ::kill(::getpid(), SIGKILL);
        }
        if (fault.error != 0) return -fault.error;
        if (whole != nullptr && !fault.delays) *whole = false;
        return call();
    }

    /// Of the bytes, rounded up; valid until the thread's next call.
    static const std::vector<iovec>& half(std::span<const iovec> pieces) {
        thread_local std::vector<iovec> some;
        some.clear();
        std::size_t total = 0;
        for (const iovec& piece : pieces) total += piece.iov_len;
        std::size_t left = (total + 1) / 2;
        for (iovec piece : pieces) {
            piece.iov_len = std::min(piece.iov_len, left);
            left -= piece.iov_len;
            some.push_back(piece);
        }
        return some;
    }

    std::atomic<bool> armed_{false};
    std::mutex mutex_;
};

} // namespace spillway::test
