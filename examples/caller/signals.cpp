#include "signals.hpp"

#include <csignal>
#include <unistd.h>

namespace caller {

namespace {

sigset_t stopping_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
    return set;
}

} // namespace

StopOnSignal::StopOnSignal() {
    const sigset_t set = stopping_signals();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    thread_ = std::thread([this] { wait(); });
}

StopOnSignal::~StopOnSignal() {
    done_ = true;
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
}

void StopOnSignal::wait() {
    const sigset_t set = stopping_signals();
    for (int signal = 0; sigwait(&set, &signal) == 0 && !done_;) {
        if (caught_ != 0) _exit(128 + signal);
        caught_ = signal;
        stop_.request_stop();
    }
}

} // namespace caller
