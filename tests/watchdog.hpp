// Ends a test that hangs, from a process of its own, so that no thread, descriptor or lock of the test's is in the way.
//
//     Watchdog watchdog;
//     for (...) { CAPTURE(seed); run(seed); watchdog.progress(); }
//
// A hang is that between two calls of progress() all threads of the test were seen asleep nine times of ten for five seconds, or used five minutes of CPU time: however busy the machine, neither is a run that is only slow. The
// test is then aborted, which Catch reports with what was captured.
#pragma once

#include "process.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>

#include <sys/mman.h>
#include <sys/prctl.h>

namespace spillway::test {

class Watchdog {
public:
    Watchdog() {
        void* const shared = ::mmap(nullptr, sizeof(Count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared == MAP_FAILED) throw std::runtime_error("mmap");
        progress_ = new (shared) Count(0);
        const pid_t test = ::getpid();
        child_ = ::fork();
        if (child_ < 0) throw std::runtime_error("fork");
        if (child_ == 0) watch(test);
    }
    ~Watchdog() {
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
        ::munmap(progress_, sizeof(Count));
    }
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

    void progress() noexcept { progress_->fetch_add(1, std::memory_order_relaxed); }

private:
    using Count = std::atomic<std::uint64_t>;

    [[noreturn]] void watch(pid_t test) const {
        constexpr int most_asleep = 500;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const double most_ticks = 300.0 * static_cast<double>(::sysconf(_SC_CLK_TCK));
        std::uint64_t seen = 0;
        int asleep = 0;
        double begin = -1;
        for (; ::getppid() == test; ::usleep(10'000)) {
            if (const std::uint64_t now = progress_->load(std::memory_order_relaxed); now != seen) {
                seen = now;
                asleep = 0;
                begin = -1;
                continue;
            }
            double ticks = 0;
            asleep =
                std::max(asleep + (all_sleep(test, ticks) ? 1 : -10), 0); // awake in a tenth of the looks: it goes on
            if (begin < 0) begin = ticks;
            if (asleep < most_asleep && ticks - begin < most_ticks) continue;
            constexpr std::string_view text = "watchdog: the test hangs\n";
            if (::write(STDERR_FILENO, text.data(), text.size()) >= 0) ::kill(test, SIGABRT);
            break;
        }
        ::_exit(0);
    }

    Count* progress_ = nullptr;
    pid_t child_ = 0;
};

} // namespace spillway::test
