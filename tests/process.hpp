// Runs a program as a user does: with arguments, limits and signals, its output caught.
//
//     const Outcome outcome = run({"spillway-call", "--version"});
//     Process process({"spillway-call", ...}, {.descriptors = 64});
//     process.send(SIGINT);
//     CHECK(process.wait().status == 128 + SIGINT);
#pragma once

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace spillway::test {

struct Outcome {
    int status = 0; ///< As a shell has it: what it exited with, or 128 and the signal that ended it.
    std::string out, err;
};

/// What the program may use; 0: what the test itself may.
struct Limits {
    rlim_t descriptors = 0;
    rlim_t file_size = 0; ///< Writing beyond it is an error, not a signal.
};

/// A program that is running; killed where it is still running in the end.
class Process {
public:
    explicit Process(std::vector<std::string> arguments, Limits limits = {}) {
        std::vector<char*> pointers;
        for (std::string& argument : arguments) pointers.push_back(argument.data());
        pointers.push_back(nullptr);
        id_ = ::fork();
        if (id_ < 0) throw std::runtime_error("fork");
        if (id_ > 0) return;
        // Only calls that a child of a process with threads may make.
        ::dup2(::fileno(out_.get()), STDOUT_FILENO);
        ::dup2(::fileno(err_.get()), STDERR_FILENO);
        const auto restrict = [](auto resource, rlim_t most) {
            const rlimit limit{most, most};
            if (most != 0 && ::setrlimit(resource, &limit) != 0) ::_exit(126);
        };
        if (limits.file_size != 0) ::signal(SIGXFSZ, SIG_IGN);
        restrict(RLIMIT_NOFILE, limits.descriptors);
        restrict(RLIMIT_FSIZE, limits.file_size);
        ::execv(pointers[0], pointers.data());
        ::_exit(127);
    }
    ~Process() {
        if (id_ <= 0) return;
        ::kill(id_, SIGKILL);
        ::waitpid(id_, nullptr, 0);
    }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    [[nodiscard]] pid_t id() const { return id_; }
    void send(int signal) const { ::kill(id_, signal); }
    /// Whether it has not ended yet.
    [[nodiscard]] bool runs() const {
        siginfo_t info{};
        return ::waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
    }
    Outcome wait() {
        int status = 0;
        ::waitpid(id_, &status, 0);
        id_ = 0;
        return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text(*out_), text(*err_)};
    }

private:
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    using File = std::unique_ptr<std::FILE, Close>;

    static std::string text(std::FILE& file) {
        std::string all;
        std::rewind(&file);
        std::array<char, 4096> buffer;
        while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), &file))
            all.append(buffer.data(), got);
        return all;
    }

    File out_{std::tmpfile()}, err_{std::tmpfile()};
    pid_t id_ = 0;
};

inline Outcome run(std::vector<std::string> arguments, Limits limits = {}) {
    return Process(std::move(arguments), limits).wait();
}

} // namespace spillway::test
