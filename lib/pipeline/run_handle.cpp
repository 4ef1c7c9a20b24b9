// What the typed pipeline holds of a run: the core, and the pool where the run has one of its own.
#include "pipeline/core.hpp"

namespace spillway::detail {
namespace {

PoolOptions pool_options(const Options& options) {
    PoolOptions pool;
    pool.max_threads = options.threads;
    pool.memory.memory = options.memory;
    return pool;
}

} // namespace

RunHandle::RunHandle(Plan& plan, const Options& options)
    : own_pool_(std::make_unique<Pool>(pool_options(options))),
      core_(std::make_unique<Core>(plan, *own_pool_, options)) {
    core_->start();
}

RunHandle::RunHandle(Plan& plan, Pool& pool, const Options& options)
    : core_(std::make_unique<Core>(plan, pool, options)) {
    core_->start();
}

RunHandle::RunHandle(RunHandle&&) noexcept = default;
RunHandle::~RunHandle() = default;
bool RunHandle::push(void (*emplace)(Payload&, void*), void* value, bool wait) {
    return core_->push(emplace, value, wait);
}
void RunHandle::close() {
    core_->close();
}
void RunHandle::cancel() {
    core_->cancel();
}
Progress RunHandle::progress() const {
    return core_->progress();
}
void RunHandle::help() {
    core_->help();
}
Report RunHandle::wait() {
    return core_->finish();
}

} // namespace spillway::detail
