// A run of a plan: what the typed handle stands on.
#pragma once

#include "spillway/detail/stage.hpp"
#include "spillway/options.hpp"
#include "spillway/pool.hpp"

#include <memory>

namespace spillway::detail {

class Core;

class RunHandle {
public:
    /// Makes a pool of its own from the options.
    RunHandle(Plan& plan, const Options& options);
    RunHandle(Plan& plan, Pool& pool, const Options& options);
    RunHandle(RunHandle&& other) noexcept;
    ~RunHandle();

    /// Moves `value` into a new candidate by `emplace`. False: there is no room (where `wait` is false).
    bool push(void (*emplace)(Payload& payload, void* value), void* value, bool wait);
    void close();
    void cancel();
    [[nodiscard]] Progress progress() const;
    void help();
    Report wait();

private:
    std::unique_ptr<Pool> own_pool_;
    std::unique_ptr<Core> core_;
};

} // namespace spillway::detail
