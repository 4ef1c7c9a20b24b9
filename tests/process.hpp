// Runs a program as a user does: with arguments, limits and signals, its output caught.
//
//     const Outcome outcome = run({"spillway-call", "--version"});
//     Process process({"spillway-call", ...}, {.descriptors = 64});
//     process.feed(text);                                    // into its standard input
//     process.send(SIGINT);
//     REQUIRE(process.ends());                               // does not hang
//     CHECK(process.wait().status == 128 + SIGINT);
#pragma once

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace spillway::test {

struct Outcome {
    int status = 0; ///< As a shell has it: what it exited with, or 128 and the signal that ended it.
    std::string out, err;
};

/// What the program may use; 0: what the test itself may.
struct Limits {
    rlim_t descriptors = 0;
    rlim_t file_size = 0; ///< In bytes.
};

/// Whether every thread, `but` one perhaps, waits for something other than a disk or a CPU; `ticks`: of CPU time, all
/// together.
inline bool all_sleep(pid_t process, double& ticks, pid_t but = 0) {
    std::error_code gone;
    const std::filesystem::directory_iterator threads("/proc/" + std::to_string(process) + "/task", gone);
    if (gone) return false;
    bool all = true;
    for (const auto& thread : threads) {
        std::ifstream in(thread.path() / "stat");
        std::string line;
        std::getline(in, line);
        // After the name, which may hold anything: the state is the 3rd field, the times are the 14th and 15th.
        std::istringstream fields(line.substr(std::min(line.size(), line.rfind(')') + 1)));
        char state = 0;
        std::string skipped;
        double user = 0, system = 0;
        fields >> state;
        for (int field = 4; field < 14; ++field) fields >> skipped;
        fields >> user >> system;
        all = all && (state == 'S' || thread.path().filename() == std::to_string(but));
        ticks += user + system;
    }
    return all;
}

/// A program that is running; killed where it is still running in the end.
class Process {
public:
    explicit Process(std::vector<std::string> arguments, Limits limits = {}) {
        std::vector<char*> pointers;
        for (std::string& argument : arguments) pointers.push_back(argument.data());
        pointers.push_back(nullptr);
        std::array<int, 2> input{};
        if (::pipe2(input.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
        ::fcntl(input[1], F_SETPIPE_SZ, 4096);
        const std::array<int, 3> streams = {input[0], ::fileno(out_.get()), ::fileno(err_.get())};
        std::signal(SIGPIPE, SIG_IGN); // What is fed to a program that has ended is lost.
        id_ = ::fork();
        if (id_ < 0) throw std::runtime_error("fork");
        if (id_ > 0) {
            ::close(input[0]);
            input_ = input[1];
            return;
        }
        // Only calls that a child of a process with threads may make.
        std::signal(SIGPIPE, SIG_DFL);
        for (int stream = 0; stream < 3; ++stream) {
            ::dup2(streams[static_cast<std::size_t>(stream)], stream);
            ::close(streams[static_cast<std::size_t>(stream)]);
        }
        const auto restrict = [](auto resource, rlim_t most) {
            const rlimit limit{most, most};
            if (most != 0 && ::setrlimit(resource, &limit) != 0) ::_exit(126);
        };
        restrict(RLIMIT_NOFILE, limits.descriptors);
        restrict(RLIMIT_FSIZE, limits.file_size);
        ::execv(pointers[0], pointers.data());
        ::_exit(127);
    }
    ~Process() {
        close_input();
        if (id_ <= 0) return;
        ::kill(id_, SIGKILL);
        ::waitpid(id_, nullptr, 0);
    }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    [[nodiscard]] pid_t id() const { return id_; }
    /// Returns when the program has taken all but what a pipe holds (a page), or has ended.
    void feed(std::string_view text) const {
        while (!text.empty()) {
            const ssize_t written = ::write(input_, text.data(), text.size());
            if (written < 0) return;
            text.remove_prefix(static_cast<std::size_t>(written));
        }
    }
    void close_input() {
        if (input_ >= 0) ::close(std::exchange(input_, -1));
    }
    /// Returns when the program has taken the signal, or has ended.
    void send(int signal) const {
        ::kill(id_, signal);
        while (pending()) ::usleep(1000);
    }
    /// Whether it has not ended yet.
    [[nodiscard]] bool runs() const {
        siginfo_t info{};
        return ::waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
    }
    /// Waits for the end. False: it hangs, which is that all of its threads were seen asleep five thousand times, a
    /// millisecond apart, or that it used a minute of CPU time: however busy the machine, neither is a run that is only
    /// slow.
    [[nodiscard]] bool ends() const {
        constexpr int most_asleep = 5000;
        const double most_ticks = 60.0 * static_cast<double>(::sysconf(_SC_CLK_TCK));
        for (int asleep = 0; runs(); ::usleep(1000)) {
            double ticks = 0;
            const bool sleeps = all_sleep(id_, ticks);
            asleep += sleeps ? 1 : 0;
            if (asleep == most_asleep || ticks > most_ticks) return false;
        }
        return true;
    }
    Outcome wait() {
        close_input();
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

    /// Whether a signal waits to be taken.
    [[nodiscard]] bool pending() const {
        std::ifstream status("/proc/" + std::to_string(id_) + "/status");
        for (std::string line; std::getline(status, line);) {
            if (line.starts_with("State:\tZ")) return false;
            if (line.starts_with("ShdPnd:") && line.find_first_of("123456789abcdef", 7) != std::string::npos)
                return true;
        }
        return false;
    }
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
    int input_ = -1;
};

inline Outcome run(std::vector<std::string> arguments, Limits limits = {}) {
    return Process(std::move(arguments), limits).wait();
}

} // namespace spillway::test
