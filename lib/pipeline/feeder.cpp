// Takes a routed stage's candidates through a device: several batches under way at once.
#include "pipeline/feeder.hpp"

#include "pipeline/core.hpp"

#include <algorithm>
#include <chrono>

namespace spillway::detail {
namespace {

using Clock = std::chrono::steady_clock;

/// Most of a device's free memory that is taken, in all lanes together.
constexpr std::size_t most_staging = std::size_t{256} << 20U;

/// How often a feeder that left its work to the CPUs looks at the load again.
constexpr auto look_again = std::chrono::milliseconds(5);

/// How often one with nothing to do looks whether its device was lost to another pipeline, which does not know of it.
constexpr auto look_for_loss = std::chrono::milliseconds(100);

std::chrono::nanoseconds now() noexcept {
    return Clock::now().time_since_epoch();
}

} // namespace

struct Feeder::Lane {
    std::unique_ptr<Staging> staging;
    std::unique_ptr<Stream> stream; // destroyed first: it waits for what it was given
    std::vector<Slot*> slots;
    std::vector<Item> items;
    std::size_t cells = 0;
    std::chrono::nanoseconds pack{0};
    std::uint64_t started = 0; // order of launches
};

Feeder::Feeder(Core& core, std::size_t stage, std::size_t number, std::shared_ptr<Device> device, std::uint16_t seat,
               const Options& options)
    : core_(core), stage_(stage), number_(number), device_(std::move(device)), use_(device_->use_), seat_(seat),
      retries_(options.router.failures_to_down), retry_(options.router.retry), sharers_(options.feeders) {}

Feeder::~Feeder() {
    join();
}

void Feeder::start() {
    thread_ = std::thread([this] { run(); });
}

void Feeder::join() {
    if (thread_.joinable()) thread_.join();
}

void Feeder::run() {
    SeatState& seat = core_.seat_for(seat_);
    try {
        // Before the first batch wants it: pinned memory takes longer to get than a batch takes to do.
        static_cast<void>(make_lanes());
        tell_staging();
        while (!core_.over()) {
            if (!step(seat)) wait();
        }
    } catch (const Error& error) {
        core_.record(error, {});
    } catch (const std::exception& exception) {
        core_.record(Error(ErrorCode::runtime, "feeding " + device_->name(), "", exception.what()), {});
    } catch (...) {
        core_.record(Error(ErrorCode::runtime, "feeding " + device_->name(), "", "an exception of unknown type"), {});
    }
    let_go(); // the streams have synchronised before any payload is freed
    Seat mine{seat_};
    core_.leave(mine);
}

void Feeder::wait() {
    EventCount<>& events = core_.points_[stage_].device_work;
    const auto ticket = events.prepare_wait();
    const bool work = core_.points_[stage_].queue.backlog() > 0 || !again_.empty();
    if (core_.over() || (!lanes_.empty() && use_.lost())) {
        events.cancel_wait();
    } else if (work) {
        static_cast<void>(events.wait_for(ticket, look_again)); // the router left it to the CPUs: their load may change
    } else if (!lanes_.empty()) {
        static_cast<void>(events.wait_for(ticket, look_for_loss));
    } else {
        events.wait(ticket);
    }
}

bool Feeder::step(SeatState& seat) {
    let_go_of_lost(seat);
    const std::uint64_t failed_before = seat.failed;
    const bool begun = begin(seat);
    if (seat.failed != failed_before) { // one could not be made again, and no worker knows that it has ended
        core_.count_ended(seat);
        core_.request_drain();
    }
    tell_staging();
    Lane* oldest = nullptr;
    bool free = false;
    for (const std::unique_ptr<Lane>& lane : lanes_) {
        if (lane->slots.empty()) {
            free = true;
        } else if (oldest == nullptr || lane->started < oldest->started) {
            oldest = lane.get();
        }
    }
    if (oldest == nullptr) return begun;
    // With a lane free and more to pack, packing comes first; else there is nothing to do but to wait for the device.
    if (!begun || !free || oldest->stream->done()) end(seat, *oldest);
    return true;
}

/// Throws DeviceError where the device is still lost.
bool Feeder::enter() {
    switch (use_.enter()) {
    case DeviceUse<>::Entry::refused: // whoever holds on to it sees that it is lost, and lets go
        return false;
    case DeviceUse<>::Entry::to_reset:
        try {
            device_->reset();
        } catch (...) {
            use_.reset(false);
            throw;
        }
        use_.reset(true);
        break;
    case DeviceUse<>::Entry::in:
        break;
    }
    return true;
}

/// Streams before staging: they wait for what they were given.
void Feeder::let_go() {
    if (lanes_.empty()) return;
    for (const std::unique_ptr<Lane>& lane : lanes_) lane->stream.reset();
    lanes_.clear();
    use_.leave();
}

/// Another feeder found the device lost: what this one has given to it is gone, too.
void Feeder::let_go_of_lost(SeatState& seat) {
    if (lanes_.empty() || !use_.lost()) return;
    for (const std::unique_ptr<Lane>& lane : lanes_) {
        lane->stream.reset();
        take_back(seat, *lane);
    }
    let_go();
}

bool Feeder::make_lanes() {
    if (!lanes_.empty()) return true;
    bool entered = false;
    try {
        if (!enter()) return false;
        entered = true;
        const std::size_t bytes = std::min(most_staging, device_->free_memory() / 2) / (lanes_a_device * sharers_);
        for (std::size_t i = 0; i < lanes_a_device; ++i) {
            auto lane = std::make_unique<Lane>();
            lane->staging = device_->make_staging(bytes);
            lane->stream = device_->make_stream();
            lanes_.push_back(std::move(lane));
        }
        return true;
    } catch (const DeviceError& error) {
        const bool lost = entered && error.fault() == DeviceFault::lost;
        if (lost) use_.lose();
        if (!lanes_.empty() && !lost) return true; // fewer than wished for
        if (!lanes_.empty()) {
            let_go();
        } else if (entered) {
            use_.leave();
        }
        failed(error);
        return false;
    } catch (...) {
        if (entered && lanes_.empty()) use_.leave(); // else whoever lets go of the lanes does
        throw;
    }
}

/// Routed by load, the router knows what follows. Routed by key nobody else may do the work: some retries, then the
/// error ends the run.
void Feeder::failed(const DeviceError& error) {
    if (core_.routers_[stage_] != nullptr) {
        core_.routers_[stage_]->device_failed(error.fault(), now(), number_);
        return;
    }
    if (++failures_in_a_row_ > retries_) throw DeviceError(error);
    EventCount<>& events = core_.points_[stage_].device_work; // the end of the run ends the pause
    const auto ticket = events.prepare_wait();
    if (core_.over()) {
        events.cancel_wait();
    } else {
        static_cast<void>(events.wait_for(ticket, retry_));
    }
}

Feeder::Lane* Feeder::free_lane() const {
    for (const std::unique_ptr<Lane>& lane : lanes_) {
        if (lane->slots.empty()) return lane.get();
    }
    return nullptr;
}

/// Into seat.carried: what the router gives to this device. The lane to take it through; null: nothing.
Feeder::Lane* Feeder::take_by_load(SeatState& seat) {
    StagePoint& point = core_.points_[stage_];
    Router& router = *core_.routers_[stage_];
    const std::size_t queued = point.queued_cells();
    if (point.queue.backlog() <= 0 || queued == 0) return nullptr;
    Workers& workers = core_.workers_;
    const std::size_t idle = workers.idle();
    load_.update(now(), workers.threads() - std::min(idle, workers.threads()), workers.max_threads());
    const Waiting waiting{
        .cells = queued, .staging = staging_cells(), .idle_workers = std::min(idle, workers.threads())};
    const std::size_t wanted = router.cells_device_may_take(waiting, number_);
    if (wanted == 0) return nullptr;
    if (lanes_.size() == lanes_a_device && free_lane() == nullptr) return nullptr;
    const Choice choice = router.decide({.now = now(),
                                         .busy = load_.value(),
                                         .cells_ahead = queued - std::min(wanted, queued),
                                         .batch_cells = wanted,
                                         .workers = workers.max_threads(),
                                         .cells_remaining = core_.cells_remaining(stage_),
                                         .cells_in_flight = cells_in_flight_.load(std::memory_order_relaxed),
                                         .cells_of_others = cells_of_others()},
                                        number_);
    if (choice.side == Side::cpu || !make_lanes()) return nullptr;
    Lane* lane = free_lane();
    if (lane == nullptr) return nullptr;
    core_.take_for_device(seat, stage_, wanted, lane->staging->size(), *core_.plan_.stages[stage_]->device_form());
    return seat.carried.empty() ? nullptr : lane;
}

/// Into seat.carried: the next batch, one that failed before first.
Feeder::Lane* Feeder::take_by_key(SeatState& seat) {
    if (again_.empty() && core_.points_[stage_].queue.backlog() <= 0) return nullptr;
    if (lanes_.size() == lanes_a_device && free_lane() == nullptr) return nullptr;
    if (!make_lanes()) return nullptr;
    Lane* lane = free_lane();
    if (lane == nullptr) return nullptr;
    DeviceForm& form = *core_.plan_.stages[stage_]->device_form();
    if (!again_.empty()) {
        seat.carried = std::move(again_.back());
        again_.pop_back();
    } else {
        core_.take_for_device(seat, stage_, 1, lane->staging->size(), form);
    }
    if (seat.carried.empty() || !form.overlaps) return seat.carried.empty() ? nullptr : lane;
    std::size_t bytes = form.header_bytes();
    for (const Slot* slot : seat.carried) bytes += form.bytes(slot->payload);
    if (bytes > lane->staging->size()) {
        throw Error(ErrorCode::memory, "batching by key for " + device_->name(), core_.plan_.stages[stage_]->name,
                    "a batch takes " + std::to_string(bytes) + " bytes of staging, and there are " +
                        std::to_string(lane->staging->size()));
    }
    return lane;
}

bool Feeder::begin(SeatState& seat) {
    Stage& stage = *core_.plan_.stages[stage_];
    Lane* const taken = stage.by_key ? take_by_key(seat) : take_by_load(seat);
    if (taken == nullptr) return false;
    Lane& lane = *taken;
    DeviceForm& form = *stage.device_form();
    lane.slots.assign(seat.carried.begin(), seat.carried.end());
    lane.items.clear();
    std::size_t cells = 0, bytes = form.header_bytes();
    for (Slot* slot : lane.slots) {
        lane.items.push_back({&slot->payload, Outcome::kept, slot});
        cells += stage.cells(slot->payload);
        if (form.overlaps) bytes += form.bytes(slot->payload);
    }
    set_cells(lane, cells);
    if (form.overlaps && lane.cells > 0) bytes_a_cell_ = static_cast<double>(bytes) / static_cast<double>(lane.cells);
    lane.started = ++launches_;
    const auto start = now();
    try {
        if (form.overlaps) {
            form.pack(lane.items, *lane.staging);
            lane.pack = now() - start;
            form.launch(*lane.staging, *lane.stream);
        } else {
            form.run(lane.items);
            lane.pack = now() - start;
        }
    } catch (const DeviceError& error) {
        give_up(seat, lane, error);
    }
    return true;
}

void Feeder::end(SeatState& seat, Lane& lane) {
    DeviceForm& form = *core_.plan_.stages[stage_]->device_form();
    DeviceCost cost{.pack = lane.pack, .copy = {}, .run = {}, .unpack = {}};
    try {
        if (form.overlaps) {
            lane.stream->synchronise();
            const DeviceTimes times = lane.stream->take_times();
            const auto start = now();
            form.unpack(*lane.staging, lane.items);
            cost = {.pack = lane.pack, .copy = times.copy, .run = times.run, .unpack = now() - start};
        }
    } catch (const DeviceError& error) {
        give_up(seat, lane, error);
        return;
    }
    StageTally& tally = seat.stages[stage_];
    if (core_.routers_[stage_] != nullptr) {
        core_.routers_[stage_]->record_device(lane.cells, cost, number_);
        core_.routers_[stage_]->device_ok(number_);
    } else {
        failures_in_a_row_ = 0;
        tally.device_cells += lane.cells;
        ++tally.device_batches;
    }
    tally.candidates += lane.slots.size();
    ++tally.calls;
    seat.carried.assign(lane.slots.begin(), lane.slots.end());
    lane.slots.clear();
    set_cells(lane, 0);
    core_.hand_on(seat, stage_ + 1);
}

void Feeder::set_cells(Lane& lane, std::size_t cells) {
    // This thread alone writes it. Relaxed: for the others it is a number on its own.
    cells_in_flight_.store(cells_in_flight_.load(std::memory_order_relaxed) + cells - lane.cells,
                           std::memory_order_relaxed);
    lane.cells = cells;
}

/// Of this stage: what another stage's cells cost is not known here.
std::size_t Feeder::cells_of_others() const {
    std::size_t cells = 0;
    for (const std::unique_ptr<Feeder>& other : core_.feeders_) {
        if (other.get() != this && other->stage_ == stage_ && other->device_ == device_)
            cells += other->cells_in_flight_.load(std::memory_order_relaxed);
    }
    return cells;
}

/// What one staging holds, by what the last batch took of it; one CPU batch where nothing has been packed yet.
std::size_t Feeder::staging_cells() const {
    const Stage& stage = *core_.plan_.stages[stage_];
    if (lanes_.empty() || bytes_a_cell_ <= 0) return stage.batch_cells;
    const double cells = static_cast<double>(lanes_.front()->staging->size()) / bytes_a_cell_;
    return std::max(stage.batch_cells, static_cast<std::size_t>(cells));
}

/// The stage's workers go by what all its feeders have.
void Feeder::tell_staging() {
    const std::size_t cells = lanes_.size() * staging_cells();
    if (cells == told_staging_) return;
    core_.points_[stage_].staging_cells.fetch_add(cells - told_staging_, std::memory_order_relaxed); // modulo 2^64
    told_staging_ = cells;
}

/// The lane's candidates are as they were: the CPUs do them or, where they are batched by key, this device again.
void Feeder::take_back(SeatState& seat, Lane& lane) {
    if (lane.slots.empty()) return;
    if (core_.plan_.stages[stage_]->by_key) {
        again_.push_back(lane.slots);
    } else {
        seat.carried.assign(lane.slots.begin(), lane.slots.end());
        core_.hand_to_workers(seat, stage_);
    }
    lane.slots.clear();
    set_cells(lane, 0);
}

void Feeder::give_up(SeatState& seat, Lane& lane, const DeviceError& error) {
    take_back(seat, lane);
    if (core_.plan_.stages[stage_]->by_key) ++seat.stages[stage_].device_failures;
    if (error.fault() == DeviceFault::lost || error.fault() == DeviceFault::no_driver) {
        if (error.fault() == DeviceFault::lost) use_.lose();
        // The other lanes' work is gone too. Their streams wait for whatever still runs before the staging goes.
        for (const std::unique_ptr<Lane>& other : lanes_) {
            other->stream.reset();
            take_back(seat, *other);
        }
        let_go();
        for (StagePoint& point : core_.points_) point.device_work.notify_all(); // who shares the device lets go of it
        failed(error);
        return;
    }
    lane.stream.reset(); // what was given to it before the fault may still run
    failed(error);
    try {
        lane.stream = device_->make_stream();
    } catch (const DeviceError& second) {
        if (second.fault() == DeviceFault::lost) use_.lose(); // the others are let go of in the next step
        lanes_.erase(
            std::find_if(lanes_.begin(), lanes_.end(), [&](const auto& other) { return other.get() == &lane; }));
        if (lanes_.empty()) use_.leave();
        failed(second);
    }
}

void Core::make_feeders(const Options& options) {
    if (options.router.gpu == Gpu::off) return;
    if (options.feeders == 0) throw Error(ErrorCode::usage, "running " + plan_.name, "feeders", "0 of a device");
    feeders_a_device_ = options.feeders;
    std::uint16_t next_seat = Workers::worker_seats;
    const auto add = [&](std::size_t stage, std::size_t device) {
        for (std::size_t i = 0; i < options.feeders; ++i) {
            if (next_seat == Workers::max_seats)
                throw Error(ErrorCode::usage, "running " + plan_.name, "", "more than 64 feeders of all routed stages");
            feeders_.push_back(std::make_unique<Feeder>(*this, stage, device * options.feeders + i,
                                                        options.devices[device], next_seat++, options));
        }
    };
    for (std::size_t stage = 0; stage < plan_.stages.size(); ++stage) {
        if (plan_.stages[stage]->device_form() == nullptr) continue;
        if (options.devices.empty()) {
            if (options.router.gpu != Gpu::required) continue;
            throw Error(ErrorCode::usage, "running " + plan_.name, plan_.stages[stage]->name,
                        "a device is required, and none was given");
        }
        points_[stage].fed = true;
        if (plan_.stages[stage]->by_key) { // by key, whatever the load; and of several devices one, so that it repeats
            add(stage, 0);
            continue;
        }
        RouterOptions router = options.router;
        router.tile_cells = std::max<std::size_t>(plan_.stages[stage]->batch_cells / 4, 1);
        routers_[stage] = std::make_unique<Router>(router, options.devices.size() * options.feeders);
        for (std::size_t i = 0; i < options.devices.size(); ++i) add(stage, i);
    }
}

} // namespace spillway::detail
