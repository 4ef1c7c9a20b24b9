// Standard input that a stop request ends, also while it waits for whoever writes it.
//
//     std::optional<caller::StoppableInput> input;
//     if (path == "-") input.emplace(stop);        // before anything is read
//     ... read standard input to its end; after a stop request that may be in the middle ...
//     input->check();                              // the end was its end
//
// Mechanism: htslib reads on after a signal, so what can block is passed on through a pipe, whose end a stop closes.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <stop_token>
#include <thread>

namespace caller {

/// What was standard input before is read from descriptor 0 as long as the process lives; one at a time.
class StoppableInput {
public:
    /// Does nothing where standard input is a regular file. Throws Error(runtime) where there are no descriptors left.
    explicit StoppableInput(const std::stop_token& stop);
    ~StoppableInput();
    StoppableInput(const StoppableInput&) = delete;
    StoppableInput& operator=(const StoppableInput&) = delete;

    /// Throws Error(input) where reading failed rather than ended.
    void check() const;

private:
    void pass_on();
    [[nodiscard]] bool ready(int file, short events) const;

    int source_ = -1; // standard input as it was
    int target_ = -1; // the pipe's, which never blocks
    int wake_ = -1;   // becomes readable when it is time to end
    std::atomic<int> error_ = 0;
    std::optional<std::stop_callback<std::function<void()>>> on_stop_;
    std::thread thread_;
};

} // namespace caller
