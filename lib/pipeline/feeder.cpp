// Takes a routed stage's candidates through a device: one thread for each device, several batches under way at once.
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

Feeder::Feeder(Core& core, std::size_t stage, std::size_t number, std::shared_ptr<Device> device, std::uint16_t seat)
    : core_(core), stage_(stage), number_(number), device_(std::move(device)), seat_(seat) {}

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
    lanes_.clear(); // the streams have synchronised before any payload is freed
    Seat mine{seat_};
    core_.leave(mine);
}

void Feeder::wait() {
    EventCount<>& events = core_.points_[stage_].device_work;
    const auto ticket = events.prepare_wait();
    const bool work = core_.points_[stage_].queue.backlog() > 0;
    if (core_.over()) {
        events.cancel_wait();
    } else if (work) {
        static_cast<void>(events.wait_for(ticket, look_again)); // the router left it to the CPUs: their load may change
    } else {
        events.wait(ticket);
    }
}

bool Feeder::step(SeatState& seat) {
    const bool begun = begin(seat);
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

bool Feeder::make_lanes() {
    if (!lanes_.empty()) return true;
    try {
        if (lost_) device_->reset();
        lost_ = false;
        const std::size_t bytes = std::min(most_staging, device_->free_memory() / 2) / lanes_a_device;
        for (std::size_t i = 0; i < lanes_a_device; ++i) {
            auto lane = std::make_unique<Lane>();
            lane->staging = device_->make_staging(bytes);
            lane->stream = device_->make_stream();
            lanes_.push_back(std::move(lane));
        }
        return true;
    } catch (const DeviceError& error) {
        if (!lanes_.empty()) return true; // fewer than wished for
        failed(error.fault());
        return false;
    }
}

void Feeder::failed(DeviceFault fault) {
    core_.routers_[stage_]->device_failed(fault, now(), number_);
    if (fault == DeviceFault::lost) lost_ = true;
}

bool Feeder::begin(SeatState& seat) {
    StagePoint& point = core_.points_[stage_];
    Router& router = *core_.routers_[stage_];
    const auto queued =
        static_cast<std::size_t>(std::max<std::int64_t>(point.cells.load(std::memory_order_relaxed), 0));
    if (point.queue.backlog() <= 0 || queued == 0) return false;
    Stage& stage = *core_.plan_.stages[stage_];
    Workers& workers = core_.workers_;
    const std::size_t idle = workers.idle();
    load_.update(now(), workers.threads() - std::min(idle, workers.threads()), workers.max_threads());
    std::size_t in_flight = 0;
    for (const std::unique_ptr<Lane>& lane : lanes_) in_flight += lane->cells;
    const Waiting waiting{
        .cells = queued, .staging = stage.batch_cells, .idle_workers = std::min(idle, workers.threads())};
    const std::size_t wanted = router.cells_device_may_take(waiting, number_);
    if (wanted == 0) return false;
    if (lanes_.size() == lanes_a_device &&
        std::none_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->slots.empty(); })) {
        return false;
    }
    const Choice choice = router.decide({.now = now(),
                                         .busy = load_.value(),
                                         .cells_ahead = queued - std::min(wanted, queued),
                                         .batch_cells = wanted,
                                         .workers = workers.max_threads(),
                                         .cells_remaining = queued,
                                         .cells_in_flight = in_flight},
                                        number_);
    if (choice.side == Side::cpu || !make_lanes()) return false;
    const auto free = std::find_if(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->slots.empty(); });
    if (free == lanes_.end()) return false;
    Lane& lane = **free;
    DeviceForm& form = *stage.device_form();
    core_.take_for_device(seat, stage_, wanted, lane.staging->size(), form);
    if (seat.carried.empty()) return false;
    lane.slots.assign(seat.carried.begin(), seat.carried.end());
    lane.items.clear();
    lane.cells = 0;
    for (Slot* slot : lane.slots) {
        lane.items.push_back({&slot->payload, Outcome::kept, slot});
        lane.cells += stage.cells(slot->payload);
    }
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
        give_up(seat, lane, error.fault());
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
        give_up(seat, lane, error.fault());
        return;
    }
    Router& router = *core_.routers_[stage_];
    router.record_device(lane.cells, cost, number_);
    router.device_ok(number_);
    seat.stages[stage_].candidates += lane.slots.size();
    ++seat.stages[stage_].calls;
    seat.carried.assign(lane.slots.begin(), lane.slots.end());
    lane.slots.clear();
    lane.cells = 0;
    core_.hand_on(seat, stage_ + 1);
}

/// The lane's candidates are as they were: back into the queue with them, for the CPUs.
void Feeder::give_up(SeatState& seat, Lane& lane, DeviceFault fault) {
    failed(fault);
    seat.carried.assign(lane.slots.begin(), lane.slots.end());
    lane.slots.clear();
    lane.cells = 0;
    core_.publish(seat, seat.carried, stage_);
    if (fault == DeviceFault::lost || fault == DeviceFault::no_driver) {
        // The other lanes' work is gone too. Their streams wait for whatever still runs before the staging goes.
        for (const std::unique_ptr<Lane>& other : lanes_) {
            if (other->slots.empty()) continue;
            other->stream.reset();
            seat.carried.assign(other->slots.begin(), other->slots.end());
            core_.publish(seat, seat.carried, stage_);
        }
        lanes_.clear();
    } else {
        lane.stream.reset(); // what was given to it before the fault may still run
        try {
            lane.stream = device_->make_stream();
        } catch (const DeviceError& error) {
            failed(error.fault());
            lanes_.erase(
                std::find_if(lanes_.begin(), lanes_.end(), [&](const auto& other) { return other.get() == &lane; }));
        }
    }
}

} // namespace spillway::detail
