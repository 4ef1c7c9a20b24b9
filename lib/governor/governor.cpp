#include "spillway/governor.hpp"

#include "base/try_lock.hpp"
#include "governor/cgroup.hpp"
#include "governor/meminfo.hpp"
#include "governor/pressure.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <vector>

namespace spillway {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// What we leave of each limit: the kernel, allocator slack and what grows between two ticks need the rest.
constexpr double share_of_max = 0.8;
constexpr double share_of_high = 0.9;
constexpr double share_of_ram = 0.8;

/// Stands for "as much as you like"; half of what would fit, so that arithmetic on it does not overflow.
constexpr std::uint64_t unlimited = std::uint64_t{1} << 62U;

constexpr nanoseconds tick_interval = milliseconds(10);
/// The cgroup's files cost some 50 us to read, since the kernel sums them up over CPUs.
constexpr nanoseconds cgroup_interval = milliseconds(100);
constexpr nanoseconds pressure_interval = seconds(2);
constexpr double pressure_mark = 0.1; ///< Share of the interval for which some task waited.
constexpr double pressure_step = 0.9;

std::uint64_t share(double of, std::uint64_t bytes) noexcept {
    return static_cast<std::uint64_t>(of * static_cast<double>(bytes));
}

std::uint64_t allowance(const MemoryLimit& limit) noexcept {
    std::uint64_t bytes = unlimited;
    if (limit.max != MemoryLimit::no_limit) bytes = share(share_of_max, limit.max);
    if (limit.high != MemoryLimit::no_limit) bytes = std::min(bytes, share(share_of_high, limit.high));
    return bytes;
}

} // namespace

/// What ticks know; only the thread that holds `busy` touches what is not atomic or const, but for the floors.
struct Governor::Watch {
    explicit Watch(const GovernorOptions& options) {
        const Cgroups cgroups = Cgroups::of_process(options.system_root);
        limits = cgroups.memory_limits();
        pressure_path = cgroups.pressure_file();
        statm_path = options.system_root + "/proc/self/statm";
        baseline = resident_memory(statm_path.c_str()).value_or(0);
        budget = options.memory != 0 ? std::min(options.memory, unlimited) : unlimited;
        if (const auto ram = total_memory(options.system_root)) budget = std::min(budget, share(share_of_ram, *ram));
        for (const MemoryLimit& limit : limits) budget = std::min(budget, allowance(limit));
    }

    std::vector<MemoryLimit> limits;
    std::string pressure_path, statm_path;
    std::uint64_t baseline = 0;
    bool process = true;      ///< Whether untracked memory counts.
    std::uint64_t budget = 0; ///< By the options and limits alone; const after the constructor.

    std::mutex floors_change; ///< Off the data path: as pipelines begin and end.
    std::vector<const Floor*> floors;

    std::atomic<Clock::rep> due{std::numeric_limits<Clock::rep>::min()};
    TryLock<> busy;

    std::optional<Clock::time_point> cgroup_read, pressure_read;
    std::uint64_t headroom = unlimited; ///< What the cgroup's other memory leaves us.
    std::chrono::microseconds waited{0};
    std::uint64_t spilled_before = 0;
    double pressure_factor = 1;

    /// Least over the limits of what is left of each once all that is not ours is taken off.
    void read_cgroups(std::uint64_t used) noexcept {
        headroom = unlimited;
        for (const MemoryLimit& limit : limits) {
            const std::uint64_t bytes = cgroup_memory_use(limit).value_or(0);
            const std::uint64_t others = bytes > used ? bytes - used : 0;
            const std::uint64_t ours = allowance(limit);
            headroom = std::min(headroom, ours > others ? ours - others : 0);
        }
    }

    /// Returns whether the budget was cut.
    bool read_pressure(Clock::time_point now, std::uint64_t spilled, std::uint64_t floor) noexcept {
        if (pressure_path.empty()) return false;
        const auto total = some_pressure(pressure_path.c_str());
        if (!total) return false;
        bool cut = false;
        if (pressure_read) {
            const auto interval = now - *pressure_read;
            const bool high = std::chrono::duration<double>(*total - waited) > pressure_mark * interval;
            const double lower = pressure_factor * pressure_step;
            if (!high) {
                pressure_factor = std::min(1.0, pressure_factor / pressure_step);
            } else if (spilled == spilled_before && share(lower, budget) >= floor) {
                pressure_factor = lower;
                cut = true;
            }
        }
        pressure_read = now;
        waited = *total;
        spilled_before = spilled;
        return cut;
    }
};

Governor::Governor(const GovernorOptions& options)
    : low_(options.low), spill_below_(options.spill_below), spill_above_(options.spill_above),
      hold_above_(options.hold_above) {
    const bool in_order = 0 < low_ && low_ <= spill_below_ && spill_below_ <= spill_above_ &&
                          spill_above_ <= hold_above_ && hold_above_ <= 1;
    if (!in_order) {
        throw Error(ErrorCode::usage, "setting up memory", "",
                    "the marks must hold 0 < low <= spill_below <= spill_above <= hold_above <= 1");
    }
    watch_ = std::make_unique<Watch>(options);
    watch_->process = options.watch_process;
    budget_.store(watch_->budget, std::memory_order_relaxed);
}

Governor::~Governor() = default;

std::uint64_t Governor::tracked() const noexcept {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(tracked_.load(std::memory_order_relaxed), 0));
}

std::uint64_t Governor::used() const noexcept {
    return tracked() + untracked_.load(std::memory_order_relaxed);
}

/// In use now, charged or found in the process.
std::uint64_t Governor::fixed() const noexcept {
    const auto charged = static_cast<std::uint64_t>(std::max<std::int64_t>(fixed_.load(std::memory_order_relaxed), 0));
    return charged + std::min(untracked_.load(std::memory_order_relaxed), resident_.load(std::memory_order_relaxed));
}

double Governor::mark(double fraction) const noexcept {
    const std::uint64_t now = fixed(), all = budget();
    const std::uint64_t kept = std::max(now, floor()); // what is not in use yet will be
    return static_cast<double>(now) + fraction * static_cast<double>(all - std::min(all, kept));
}

Verdict Governor::verdict() noexcept {
    const auto use = static_cast<double>(used());
    if (use > mark(hold_above_)) {
        if (!spilling_.load(std::memory_order_relaxed)) spilling_.store(true, std::memory_order_relaxed);
        return Verdict::hold;
    }
    // Written only where it changes, so that the line stays shared among the workers that ask.
    if (spilling_.load(std::memory_order_relaxed)) {
        if (use >= mark(spill_below_)) return Verdict::spill;
        spilling_.store(false, std::memory_order_relaxed);
        return Verdict::run;
    }
    if (use <= mark(spill_above_)) return Verdict::run;
    spilling_.store(true, std::memory_order_relaxed);
    return Verdict::spill;
}

bool Governor::below_low() const noexcept {
    return static_cast<double>(used()) < mark(low_);
}

void Governor::follow_floors() noexcept {
    std::uint64_t highest = 0, resident = 0;
    for (const Floor* floor : watch_->floors) {
        highest = std::max(highest, floor->bytes_);
        resident += std::min(floor->resident_, unlimited - resident);
    }
    floor_.store(highest, std::memory_order_relaxed);
    resident_.store(resident, std::memory_order_relaxed);
    // A tick may have cut the budget below the new floor.
    std::uint64_t in_force = budget();
    while (in_force < highest && !budget_.compare_exchange_weak(in_force, highest, std::memory_order_relaxed)) {
    }
}

Floor::Floor(Governor& governor, std::uint64_t bytes, std::uint64_t resident)
    : governor_(governor), bytes_(bytes), resident_(resident) {
    Governor::Watch& watch = *governor.watch_;
    if (watch.budget < bytes) {
        throw Error(ErrorCode::usage, "setting up memory", "",
                    "the budget of " + format_bytes(watch.budget) + " is below the floor of " + format_bytes(bytes) +
                        ": allow at least " + std::to_string(bytes) + " bytes, or use fewer threads");
    }
    const std::lock_guard lock(watch.floors_change);
    watch.floors.push_back(this);
    governor.follow_floors();
}

Floor::~Floor() {
    const std::lock_guard lock(governor_.watch_->floors_change);
    std::erase(governor_.watch_->floors, this);
    governor_.follow_floors();
}

bool Governor::tick(Clock::time_point now) noexcept {
    Watch& watch = *watch_;
    const Clock::rep ticks = now.time_since_epoch().count();
    if (ticks < watch.due.load(std::memory_order_relaxed)) return false;
    const std::unique_lock mine(watch.busy, std::try_to_lock);
    if (!mine) return false;
    watch.due.store((now + tick_interval).time_since_epoch().count(), std::memory_order_relaxed);

    const std::uint64_t own = tracked();
    const std::uint64_t resident = resident_memory(watch.statm_path.c_str()).value_or(0);
    const std::uint64_t explained = own + watch.baseline;
    const std::uint64_t untracked = watch.process && resident > explained ? resident - explained : 0;
    untracked_.store(untracked, std::memory_order_relaxed);
    const std::uint64_t use = own + untracked;
    if (use > peak_.load(std::memory_order_relaxed)) peak_.store(use, std::memory_order_relaxed);

    if (!watch.cgroup_read || now - *watch.cgroup_read >= cgroup_interval) {
        watch.read_cgroups(use);
        watch.cgroup_read = now;
    }
    if (!watch.pressure_read || now - *watch.pressure_read >= pressure_interval) {
        if (watch.read_pressure(now, spilled_.load(std::memory_order_relaxed), floor())) {
            pressure_cuts_.fetch_add(1, std::memory_order_relaxed);
        }
    }
    const std::uint64_t wanted = std::min(share(watch.pressure_factor, watch.budget), watch.headroom);
    budget_.store(std::max(wanted, floor()), std::memory_order_relaxed);
    return true;
}

GovernorFigures Governor::figures() const noexcept {
    GovernorFigures all;
    all.budget = budget();
    all.floor = floor();
    all.tracked = tracked();
    all.untracked = untracked_.load(std::memory_order_relaxed);
    all.peak = peak_.load(std::memory_order_relaxed);
    all.pressure_cuts = pressure_cuts_.load(std::memory_order_relaxed);
    return all;
}

} // namespace spillway
