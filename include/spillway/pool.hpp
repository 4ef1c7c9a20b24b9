// Threads that grow and shrink with the work; pipelines that run on the same pool share its threads and its memory
// budget.
//
//     spillway::Pool pool({.max_threads = 8});
//     auto handle = calling.start(pool, options);      // any number of pipelines
//     spillway::Report report = handle.wait();
//
// Guarantee: a worker finishes what it carries, then takes the work nearest to its end; it never blocks for room. Idle
// workers spin for some microseconds and then sleep without using the CPU. Shutdown: the destructor joins all threads;
// every pipeline must have been waited for.
#pragma once

#include "spillway/governor.hpp"

#include <cstddef>
#include <functional>
#include <memory>

namespace spillway {

struct PoolOptions {
    std::size_t min_threads = 1; ///< Never fewer workers than this while anything runs.
    std::size_t max_threads = 0; ///< Never more; 0 is what affinity and the cgroup's CPU quota allow.
    GovernorOptions memory = {}; ///< The budget that all pipelines on this pool share.
    std::function<void()> on_thread_start =
        {}; ///< Called on each new worker before its first work: for a CUDA context, say.
    std::function<void()> on_thread_stop = {}; ///< Called on each worker after its last work.
};

namespace detail {
class Workers;
}

/// Thread safety: all members may be called from any thread. A child process after fork must not use it: Error(fork).
class Pool {
public:
    explicit Pool(PoolOptions options = {});
    Pool(Pool&&) noexcept;
    Pool& operator=(Pool&&) noexcept;
    ~Pool();

    [[nodiscard]] std::size_t threads() const noexcept;     ///< Workers now.
    [[nodiscard]] std::size_t max_threads() const noexcept; ///< Most workers there may be.

    [[nodiscard]] Governor& governor() noexcept; ///< What watches the pool's memory.

    [[nodiscard]] detail::Workers& workers() noexcept { return *workers_; } ///< For pipelines.

private:
    std::unique_ptr<detail::Workers> workers_;
};

} // namespace spillway
