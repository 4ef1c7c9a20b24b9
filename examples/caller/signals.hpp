// Ctrl-C and its like as a stop request: the first asks the run to end in order, a second ends the process at once.
//
//     caller::StopOnSignal signals;                        // before any other thread is started
//     run(options, signals.token());
//     if (signals.caught() != 0) return 128 + signals.caught();
#pragma once

#include <atomic>
#include <stop_token>
#include <thread>

namespace caller {

/// Takes SIGINT, SIGTERM and SIGHUP while it lives; threads started meanwhile inherit that they do not. They stay blocked
/// afterwards: a signal that comes when the output is whole must not make it look like a broken run's.
class StopOnSignal {
public:
    StopOnSignal();
    ~StopOnSignal();
    StopOnSignal(const StopOnSignal&) = delete;
    StopOnSignal& operator=(const StopOnSignal&) = delete;

    [[nodiscard]] std::stop_token token() const { return stop_.get_token(); }
    /// The first signal, or 0.
    [[nodiscard]] int caught() const { return caught_.load(); }

private:
    void wait();

    std::stop_source stop_;
    std::atomic<int> caught_ = 0;
    std::atomic<bool> done_ = false;
    std::thread thread_;
};

} // namespace caller
