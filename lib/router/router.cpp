// The rules of the router. What the rules are for stands in router.hpp; here is why they are as they are.
#include "spillway/router.hpp"

#include "router/rate_table.hpp"

#include <algorithm>
#include <limits>

namespace spillway {
namespace {

using std::chrono::nanoseconds;

constexpr auto relaxed = std::memory_order_relaxed; // every atomic here is a number on its own

void count(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) noexcept {
    counter.fetch_add(by, relaxed);
}

std::size_t saturating_add(std::size_t a, std::size_t b) noexcept {
    return b > std::numeric_limits<std::size_t>::max() - a ? std::numeric_limits<std::size_t>::max() : a + b;
}

std::optional<nanoseconds> to_duration(std::optional<double> expected) noexcept {
    if (!expected) return std::nullopt;
    // The largest double below 2^63.
    return nanoseconds(static_cast<nanoseconds::rep>(std::min(*expected, 9223372036854774784.0)));
}

void need(bool holds, const char* option, const char* range) {
    if (!holds) throw Error(ErrorCode::usage, "making a router", option, std::string("must be ") + range);
}

} // namespace

struct Router::Measured {
    RateTable rates;
    std::atomic<std::uint64_t> batches{0}, cells{0};
};

struct Router::DeviceState {
    enum class Health : std::uint8_t { up, half_open, down, gone };

    // Read by any thread.
    std::atomic<Health> health{Health::up};
    std::atomic<Side> side{Side::cpu};
    std::atomic<bool> takes{false};                // its last batch went to the device, and not as an exception
    std::atomic<std::size_t> most_cells{SIZE_MAX}; // of a batch, after failures
    RateTable totals, runs;
    std::atomic<std::uint64_t> decisions{0}, to_device{0}, switches{0}, times_down{0}, batches{0}, cells{0};
    std::array<std::atomic<std::uint64_t>, whys> by_why{};
    std::array<std::atomic<std::uint64_t>, device_faults> failures{};
    std::atomic<nanoseconds::rep> pack{0}, copy{0}, run{0}, unpack{0};

    // The feeder's alone.
    std::uint32_t held = 0;           // decisions until the side may change again
    bool refused = false;             // for the rest of the hold
    std::uint64_t since_explored = 0; // decisions
    std::uint32_t failures_in_row = 0, successes_in_row = 0;
    std::size_t last_batch = 0; // cells of the last one given to the device
    nanoseconds retry_at{0}, retry_wait{0};

    void go_down(nanoseconds now, const RouterOptions& options) noexcept {
        health.store(Health::down, relaxed);
        // Not a switch: nobody chose it. Once it works again it may be chosen at once, its rates are known.
        side.store(Side::cpu, relaxed);
        held = 0;
        refused = false;
        count(times_down);
        retry_at = now + retry_wait;
        retry_wait = retry_wait < options.longest_retry / 2 ? retry_wait * 2 : options.longest_retry;
        failures_in_row = 0;
    }
};

Router::Router(const RouterOptions& options, std::size_t devices)
    : options_(options), cpu_(std::make_unique<Measured>()) {
    need(options.low >= 0 && options.low <= 1, "low", "from 0 to 1");
    need(options.high >= options.low && options.high <= 1, "high", "from low to 1");
    need(options.switch_cost > 0 && options.switch_cost <= 1, "switch_cost", "above 0 and at most 1");
    need(options.hold >= 1, "hold", "at least 1");
    need(options.exploration >= 0 && options.exploration <= 0.5, "exploration", "from 0 to 0.5");
    need(options.tile_cells >= 1, "tile_cells", "at least 1");
    need(options.failures_to_down >= 1, "failures_to_down", "at least 1");
    need(options.successes_to_grow >= 1, "successes_to_grow", "at least 1");
    need(options.retry.count() > 0, "retry", "above 0");
    need(options.longest_retry >= options.retry, "longest_retry", "at least retry");
    for (std::size_t i = 0; i < devices; ++i) {
        devices_.push_back(std::make_unique<DeviceState>());
        devices_.back()->retry_wait = options.retry;
    }
}

Router::~Router() = default;

Choice Router::decide(const Load& load, std::size_t device) {
    if (device >= devices_.size()) return {Side::cpu, Why::off};
    DeviceState& state = *devices_[device];
    count(state.decisions);
    ++state.since_explored;
    if (state.held > 0) --state.held;
    const Choice choice = choose(load, state);
    if (choice.why == Why::exploration) state.since_explored = 0;
    if (choice.why == Why::switched) {
        state.side.store(choice.side, relaxed);
        state.held = options_.hold;
        state.refused = false;
        count(state.switches);
    }
    count(state.by_why[static_cast<std::size_t>(choice.why)]);
    if (choice.side == Side::device) {
        count(state.to_device);
        state.last_batch = load.batch_cells;
    }
    state.takes.store(choice.side == Side::device && (choice.why == Why::kept || choice.why == Why::switched), relaxed);
    return choice;
}

Choice Router::choose(const Load& load, DeviceState& state) const {
    using Health = DeviceState::Health;
    if (options_.gpu == Gpu::off) return {Side::cpu, Why::off};

    const Health health = state.health.load(relaxed);
    if (health == Health::gone) return {Side::cpu, Why::down};
    if (health == Health::down && load.now < state.retry_at) return {Side::cpu, Why::down};
    if (health != Health::up) {
        // One batch at a time until one has come through: the next failure then costs one batch, not all that staging
        // holds.
        state.health.store(Health::half_open, relaxed);
        return load.cells_in_flight == 0 ? Choice{Side::device, Why::half_open} : Choice{Side::cpu, Why::down};
    }

    const std::size_t batch = load.batch_cells;
    const std::size_t queued = saturating_add(load.cells_ahead, batch);
    const std::optional<double> batch_on_cpu = cpu_->rates.expected(batch);
    if (!batch_on_cpu || batch == 0) return {Side::cpu, Why::unknown};
    const double cell = *batch_on_cpu / static_cast<double>(batch); // of one worker
    const std::size_t workers = std::max<std::size_t>(load.workers, 1);
    // A tile is not split, so a few tiles do not occupy all workers: taken as if they did, one tile would look cheaper
    // on idle CPUs than on a device that does it in a fifth of a worker's time, and the side would change back and
    // forth.
    const auto on_cpus = [&](std::size_t cells) {
        const std::size_t tiles = cells / options_.tile_cells + (cells % options_.tile_cells == 0 ? 0 : 1);
        return cell * static_cast<double>(cells) / static_cast<double>(std::min(workers, tiles));
    };
    const double cpu_queued = on_cpus(queued);
    const double cpu_all = on_cpus(std::max(load.cells_remaining, queued));

    const std::optional<double> batch_on_device = state.totals.expected(batch);
    const bool saturated = load.busy > options_.high;
    if (!batch_on_device) {
        if (saturated && load.cells_in_flight == 0) return {Side::device, Why::trial};
        return {Side::cpu, Why::unknown};
    }
    // The device does one batch after another, whoever gave it. Were those of other feeders not counted, each would look
    // done soon: four that share a device of a twentieth of a worker make a run of 37 s last 57 in simulation.
    const std::size_t given = saturating_add(load.cells_in_flight, load.cells_of_others);
    const double in_flight = given == 0 ? 0 : state.runs.expected(given).value_or(0);
    const double on_device = in_flight + *batch_on_device;

    if (state.side.load(relaxed) == Side::device) {
        if (state.held > 0) {
            // Near the end of all work a slow device would keep everyone waiting: held to its batches, one of a
            // twentieth of a worker makes a run of 37 s last 64 in simulation. Once it is refused, it stays so: what is
            // known to remain goes up and down where the source is slow.
            if (cpu_all < options_.switch_cost * on_device) state.refused = true;
            return state.refused ? Choice{Side::cpu, Why::last_cells} : Choice{Side::device, Why::kept};
        }
        // Above the low threshold the CPUs have other things to do, so the device helps as long as it is done with this
        // batch before they are done with everything. Below it they could do what is queued at once.
        const double on_cpu = load.busy < options_.low ? cpu_queued : cpu_all;
        if (state.refused || on_cpu < options_.switch_cost * on_device) return {Side::cpu, Why::switched};
        return {Side::device, Why::kept};
    }

    const Why stays = load.busy < options_.low ? Why::low_load : Why::kept;
    if (on_device > cpu_all) return {Side::cpu, stays};
    if (saturated) {
        // A size that is not trusted yet is measured before the side may change because of it.
        if (!state.totals.trusted(batch)) return {Side::device, Why::trial};
        if (state.held == 0 && on_device < options_.switch_cost * cpu_all) return {Side::device, Why::switched};
    }
    // The device alone is explored. Workers take tiles whenever they have nothing else, so their rate stays fresh; and
    // a batch that is given to a worker to measure it would cost what makes it slower, times its cells.
    const bool due = options_.exploration > 0 && static_cast<double>(state.since_explored) * options_.exploration >= 1;
    if (due && load.cells_in_flight == 0) return {Side::device, Why::exploration};
    return {Side::cpu, stays};
}

void Router::record_cpu(std::size_t cells, nanoseconds spent) noexcept {
    cpu_->rates.record(cells, spent);
    count(cpu_->batches);
    count(cpu_->cells, cells);
}

void Router::record_device(std::size_t cells, const DeviceCost& cost, std::size_t device) noexcept {
    if (device >= devices_.size()) return;
    DeviceState& state = *devices_[device];
    state.totals.record(cells, cost.total());
    state.runs.record(cells, cost.run);
    count(state.batches);
    count(state.cells, cells);
    state.pack.fetch_add(cost.pack.count(), relaxed);
    state.copy.fetch_add(cost.copy.count(), relaxed);
    state.run.fetch_add(cost.run.count(), relaxed);
    state.unpack.fetch_add(cost.unpack.count(), relaxed);
}

void Router::device_failed(DeviceFault fault, nanoseconds now, std::size_t device) noexcept {
    using Health = DeviceState::Health;
    if (device >= devices_.size()) return;
    DeviceState& state = *devices_[device];
    count(state.failures[static_cast<std::size_t>(fault)]);
    state.takes.store(false, relaxed);
    state.successes_in_row = 0;
    const bool smallest = state.last_batch <= options_.tile_cells;
    state.most_cells.store(std::max(state.last_batch / 2, options_.tile_cells), relaxed);
    if (fault == DeviceFault::no_driver) {
        state.go_down(now, options_);
        state.health.store(Health::gone, relaxed);
        return;
    }
    // Running out of memory says that the batch was too large, and nothing of the device, while it can be made smaller.
    if (fault != DeviceFault::out_of_memory || smallest) ++state.failures_in_row;
    if (fault == DeviceFault::lost || state.health.load(relaxed) != Health::up ||
        state.failures_in_row >= options_.failures_to_down)
        state.go_down(now, options_);
}

void Router::device_ok(std::size_t device) noexcept {
    using Health = DeviceState::Health;
    if (device >= devices_.size()) return;
    DeviceState& state = *devices_[device];
    if (state.health.load(relaxed) == Health::half_open) state.health.store(Health::up, relaxed);
    state.failures_in_row = 0;
    if (++state.successes_in_row < options_.successes_to_grow) return;
    // Only now is it taken to be well: one that fails every few batches must not be retried at the first pace each
    // time.
    state.successes_in_row = 0;
    state.retry_wait = options_.retry;
    const std::size_t most = state.most_cells.load(relaxed);
    state.most_cells.store(saturating_add(most, most), relaxed);
}

bool Router::down(std::size_t device) const noexcept {
    using Health = DeviceState::Health;
    if (device >= devices_.size()) return true;
    const Health health = devices_[device]->health.load(relaxed);
    return health == Health::down || health == Health::gone;
}

Side Router::side(std::size_t device) const noexcept {
    return device < devices_.size() ? devices_[device]->side.load(relaxed) : Side::cpu;
}

std::size_t Router::batch_cells(std::size_t full, std::size_t device) const noexcept {
    if (device >= devices_.size()) return full;
    // The first batch of all may turn out to be very slow, and what it says of one many times as large is a guess.
    const DeviceState& state = *devices_[device];
    const std::size_t most = std::min(state.totals.next_size(), state.most_cells.load(relaxed));
    return std::min(full, std::max(most, options_.tile_cells));
}

std::size_t Router::cells_device_may_take(const Waiting& waiting, std::size_t device) const noexcept {
    if (waiting.idle_workers > waiting.cells / options_.tile_cells) return 0;
    const std::size_t left_for_workers = waiting.idle_workers * options_.tile_cells;
    return std::min(waiting.cells - left_for_workers, batch_cells(waiting.staging, device));
}

std::size_t Router::cells_worker_may_take(const Waiting& waiting, bool has_nothing_else) const noexcept {
    const bool shared =
        std::any_of(devices_.begin(), devices_.end(), [](const auto& d) { return d->takes.load(relaxed); });
    if (!shared) return waiting.cells;
    // All staging, not what is free of it: staging comes free in a moment, and must then find a batch that is worth its
    // launch. Were only the free staging's cells left, workers would take what comes while a batch of a single tile is
    // under way, and the next would be of a single tile again.
    const std::size_t left = waiting.cells - std::min(waiting.cells, waiting.staging);
    const std::size_t whole_tiles = left - left % options_.tile_cells;
    return has_nothing_else ? std::max(whole_tiles, std::min(waiting.cells, options_.tile_cells)) : whole_tiles;
}

std::optional<nanoseconds> Router::expected_on_cpu(std::size_t cells) const noexcept {
    return to_duration(cpu_->rates.expected(cells));
}

std::optional<nanoseconds> Router::expected_on_device(std::size_t cells, std::size_t device) const noexcept {
    if (device >= devices_.size()) return std::nullopt;
    return to_duration(devices_[device]->totals.expected(cells));
}

RouterReport Router::report() const {
    RouterReport report;
    report.cpu_batches = cpu_->batches.load(relaxed);
    report.cpu_cells = cpu_->cells.load(relaxed);
    report.cpu_rates = cpu_->rates.rates();
    for (std::size_t i = 0; i < devices_.size(); ++i) {
        const DeviceState& state = *devices_[i];
        DeviceReport one;
        one.decisions = state.decisions.load(relaxed);
        for (std::size_t why = 0; why < whys; ++why) one.by_why[why] = state.by_why[why].load(relaxed);
        one.to_device = state.to_device.load(relaxed);
        one.switches = state.switches.load(relaxed);
        for (std::size_t fault = 0; fault < device_faults; ++fault)
            one.failures[fault] = state.failures[fault].load(relaxed);
        one.times_down = state.times_down.load(relaxed);
        one.batches = state.batches.load(relaxed);
        one.cells = state.cells.load(relaxed);
        one.spent = {nanoseconds(state.pack.load(relaxed)), nanoseconds(state.copy.load(relaxed)),
                     nanoseconds(state.run.load(relaxed)), nanoseconds(state.unpack.load(relaxed))};
        one.down = down(i);
        one.rates = state.totals.rates();
        report.devices.push_back(std::move(one));
    }
    return report;
}

} // namespace spillway
