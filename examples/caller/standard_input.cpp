#include "standard_input.hpp"

#include "spillway/error.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <span>
#include <string>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace caller {

using spillway::Error;
using spillway::ErrorCode;

namespace {

/// As much as a pipe holds.
constexpr std::size_t buffer_size = std::size_t{64} << 10U;

void wake(int file) {
    const std::uint64_t one = 1;
    static_cast<void>(::write(file, &one, sizeof one));
}

} // namespace

StoppableInput::StoppableInput(const std::stop_token& stop) {
    struct stat status {};
    if (::fstat(STDIN_FILENO, &status) != 0 || S_ISREG(status.st_mode)) return;
    std::array<int, 2> pipe{-1, -1};
    wake_ = ::eventfd(0, EFD_CLOEXEC);
    source_ = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const bool open = wake_ >= 0 && source_ >= 0 && ::pipe2(pipe.data(), O_CLOEXEC) == 0;
    target_ = pipe[1];
    if (!open || ::dup2(pipe[0], STDIN_FILENO) < 0 || ::fcntl(target_, F_SETFL, O_NONBLOCK) != 0) {
        const int error = errno;
        for (const int file : {wake_, source_, pipe[0], pipe[1]}) ::close(file);
        throw Error(ErrorCode::runtime, "opening alignments", "standard input", std::strerror(error));
    }
    ::close(pipe[0]);
    thread_ = std::thread([this] { pass_on(); });
    on_stop_.emplace(stop, [file = wake_] { wake(file); });
}

StoppableInput::~StoppableInput() {
    if (!thread_.joinable()) return;
    on_stop_.reset();
    wake(wake_);
    thread_.join();
    for (const int file : {wake_, source_}) ::close(file);
}

void StoppableInput::check() const {
    if (error_ != 0) throw Error(ErrorCode::input, "reading alignments", "standard input", std::strerror(error_));
}

/// Waits. False: it is time to end.
bool StoppableInput::ready(int file, short events) const {
    std::array<pollfd, 2> files{{{file, events, 0}, {wake_, POLLIN, 0}}};
    while (::poll(files.data(), files.size(), -1) < 0 && errno == EINTR) {
    }
    return files[1].revents == 0;
}

void StoppableInput::pass_on() {
    // Whoever reads may have gone away: that is an error of write(), not the end of the process.
    sigset_t broken_pipe;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
    std::vector<std::byte> buffer(buffer_size);
    bool going = true;
    while (going && ready(source_, POLLIN)) {
        const ssize_t got = ::read(source_, buffer.data(), buffer.size());
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got < 0) error_ = errno;
        if (got <= 0) break;
        std::span<const std::byte> rest(buffer.data(), static_cast<std::size_t>(got));
        while (going && !rest.empty()) {
            const ssize_t written = ::write(target_, rest.data(), rest.size());
            if (written >= 0) {
                rest = rest.subspan(static_cast<std::size_t>(written));
            } else if (errno == EAGAIN) {
                going = ready(target_, POLLOUT);
            } else {
                going = errno == EINTR;
            }
        }
    }
    ::close(target_); // the end, for whoever reads
}

} // namespace caller
