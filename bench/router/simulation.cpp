#include "simulation.hpp"

#include <algorithm>
#include <deque>
#include <queue>
#include <utility>

namespace simulation {
namespace {

using namespace spillway;

using Tiles = std::vector<std::uint32_t>;

std::chrono::nanoseconds from_ms(double ms) {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(ms * 1e6));
}

enum class Happens { arrival, made, aligned, packed, copied, ran, unpacked };

struct Event {
    double ms = 0;
    std::uint64_t order = 0; // of equal times, the one planned first
    Happens what = Happens::arrival;
    std::size_t subject = 0; // batch; or the tile
    double took = 0;

    friend bool operator>(const Event& a, const Event& b) { return a.ms != b.ms ? a.ms > b.ms : a.order > b.order; }
};

struct Batch {
    std::size_t feeder = 0;
    Tiles tiles;
    DeviceCost cost;
    bool failed = false;
};

/// Events in the last 64 decisions, and the most there ever were.
class MostIn64 {
public:
    void decision(bool event) {
        ++decisions_;
        if (event) events_.push_back(decisions_);
        while (!events_.empty() && events_.front() + 64 <= decisions_) events_.pop_front();
        most_ = std::max<std::uint64_t>(most_, events_.size());
    }
    [[nodiscard]] std::uint64_t most() const noexcept { return most_; }

private:
    std::uint64_t decisions_ = 0, most_ = 0;
    std::deque<std::uint64_t> events_;
};

struct Device {
    double times = 1;
    double copy_until = 0;
    std::deque<std::size_t> to_run; // batches; the front one is running
};

struct Feeder {
    std::size_t device = 0;
    bool busy = false, poked = false;
    std::size_t in_use = 0, cells_in_flight = 0;
    std::deque<std::size_t> to_unpack;
    Side last = Side::cpu;
    MostIn64 flips, switches;
};

RouterOptions options_of(const World& world) {
    RouterOptions options = world.options;
    options.tile_cells = tile_cells;
    return options;
}

class Simulation {
public:
    Simulation(const World& world, Policy policy)
        : world_(world), policy_(policy), router_(options_of(world), world.devices.size() * world.feeders) {
        outcome_.times_done.resize(world.tiles);
        for (const double times : world.devices) {
            for (std::size_t i = 0; i < world.feeders; ++i) feeders_.emplace_back().device = devices_.size();
            devices_.emplace_back().times = times;
        }
        outcome_.changes.resize(feeders_.size());
    }

    Outcome run() {
        conditions_ = world_.at(0);
        plan_arrival();
        dispatch();
        while (done_ < world_.tiles && !events_.empty()) {
            const Event event = events_.top();
            events_.pop();
            now_ = event.ms;
            conditions_ = world_.at(now_ / 1000);
            handle(event);
            dispatch();
        }
        outcome_.seconds = now_ / 1000;
        outcome_.report = router_.report();
        return std::move(outcome_);
    }

private:
    void plan(double in_ms, Happens what, std::size_t subject = 0, double took = 0) {
        events_.push({now_ + in_ms, order_++, what, subject, took});
    }

    void plan_arrival() {
        if (conditions_.interval > 0) {
            plan(conditions_.interval * static_cast<double>(conditions_.burst), Happens::arrival);
        } else {
            arrived_ = world_.tiles;
        }
    }

    void handle(const Event& event) {
        switch (event.what) {
        case Happens::arrival:
            arrived_ = std::min(arrived_ + conditions_.burst, world_.tiles);
            if (arrived_ < world_.tiles) plan_arrival();
            break;
        case Happens::made:
            --busy_;
            queue_.push_back(static_cast<std::uint32_t>(event.subject));
            for (Feeder& feeder : feeders_) feeder.poked = true;
            break;
        case Happens::aligned:
            --busy_;
            router_.record_cpu(tile_cells, from_ms(event.took));
            finish(event.subject, &Share::cpu);
            ++outcome_.on_cpu;
            break;
        case Happens::packed:
            is_free(feeder_of(event.subject));
            launch(event.subject);
            break;
        case Happens::copied: {
            Device& device = device_of(event.subject);
            device.to_run.push_back(event.subject);
            if (device.to_run.size() == 1) start_run(device);
            break;
        }
        case Happens::ran: {
            Device& device = device_of(event.subject);
            device.to_run.pop_front();
            if (!device.to_run.empty()) start_run(device);
            feeder_of(event.subject).to_unpack.push_back(event.subject);
            break;
        }
        case Happens::unpacked:
            is_free(feeder_of(event.subject));
            end_batch(event.subject);
            break;
        }
    }

    Feeder& feeder_of(std::size_t batch) { return feeders_[batches_[batch].feeder]; }
    Device& device_of(std::size_t batch) { return devices_[feeder_of(batch).device]; }

    static void is_free(Feeder& feeder) {
        feeder.busy = false;
        feeder.poked = true;
    }

    void finish(std::size_t tile, std::size_t Share::*side) {
        ++outcome_.times_done[tile];
        ++done_;
        const auto second = static_cast<std::size_t>(now_ / 1000);
        if (outcome_.shares.size() <= second) outcome_.shares.resize(second + 1);
        ++(outcome_.shares[second].*side);
    }

    void launch(std::size_t index) {
        Batch& batch = batches_[index];
        Device& device = device_of(index);
        const double copy = world_.copy * static_cast<double>(batch.tiles.size());
        device.copy_until = std::max(device.copy_until, now_) + copy;
        batch.cost.copy = from_ms(copy);
        plan(device.copy_until - now_, Happens::copied, index);
    }

    void start_run(const Device& device) {
        Batch& batch = batches_[device.to_run.front()];
        const double run = device.times * (conditions_.device_fixed +
                                           conditions_.device_tile * static_cast<double>(batch.tiles.size()));
        batch.cost.run = from_ms(run);
        plan(run, Happens::ran, device.to_run.front());
    }

    void end_batch(std::size_t index) {
        Batch& batch = batches_[index];
        Feeder& feeder = feeders_[batch.feeder];
        --feeder.in_use;
        feeder.cells_in_flight -= batch.tiles.size() * tile_cells;
        const auto fault = world_.fault ? world_.fault(++ended_) : std::nullopt;
        if (fault) {
            router_.device_failed(*fault, from_ms(now_), batch.feeder);
            redo_.insert(redo_.end(), batch.tiles.begin(), batch.tiles.end());
            return;
        }
        router_.record_device(batch.tiles.size() * tile_cells, batch.cost, batch.feeder);
        router_.device_ok(batch.feeder);
        for (const std::uint32_t tile : batch.tiles) finish(tile, &Share::device);
        outcome_.on_device += batch.tiles.size();
    }

    void dispatch() {
        const std::size_t allowed = std::max<std::size_t>(conditions_.workers, 1);
        load_.update(from_ms(now_), busy_, allowed);
        for (std::size_t number = 0; number < feeders_.size(); ++number) feed(number);
        while (busy_ < conditions_.workers && work()) ++busy_;
        load_.update(from_ms(now_), busy_, allowed);
    }

    [[nodiscard]] bool can_make() const { return made_ < arrived_ && made_ - done_ < world_.window; }

    // One worker's choice of work; false: it stays idle.
    bool work() {
        if (!redo_.empty()) {
            align(redo_);
            return true;
        }
        if (may_align()) {
            align(queue_);
            return true;
        }
        if (!can_make()) return false;
        plan(conditions_.make, Happens::made, made_++);
        return true;
    }

    [[nodiscard]] bool may_align() const {
        if (queue_.empty() || policy_ == Policy::device_alone) return false;
        if (policy_ != Policy::router) return true;
        const std::size_t staging = feeders_.size() * world_.stagings * world_.staging_tiles * tile_cells;
        const Waiting waiting{queue_.size() * tile_cells, staging, 0};
        return router_.cells_worker_may_take(waiting, !can_make()) >= tile_cells;
    }

    void align(std::deque<std::uint32_t>& from) {
        plan(conditions_.align, Happens::aligned, from.front(), conditions_.align);
        from.pop_front();
    }

    void feed(std::size_t number) {
        Feeder& feeder = feeders_[number];
        if (feeder.busy) return;
        if (!feeder.to_unpack.empty()) {
            Batch& batch = batches_[feeder.to_unpack.front()];
            const double unpack = world_.unpack * static_cast<double>(batch.tiles.size());
            batch.cost.unpack = from_ms(unpack);
            feeder.busy = true;
            plan(unpack, Happens::unpacked, feeder.to_unpack.front());
            feeder.to_unpack.pop_front();
            return;
        }
        if (!std::exchange(feeder.poked, false) || policy_ == Policy::cpu_alone || feeder.in_use == world_.stagings)
            return;
        const std::size_t tiles = tiles_for_device(number);
        if (tiles == 0) return;
        Batch batch;
        batch.feeder = number;
        batch.tiles.assign(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(tiles));
        queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(tiles));
        const double pack = world_.pack * static_cast<double>(tiles);
        batch.cost.pack = from_ms(pack);
        batches_.push_back(std::move(batch));
        ++feeder.in_use;
        feeder.cells_in_flight += tiles * tile_cells;
        feeder.busy = true;
        plan(pack, Happens::packed, batches_.size() - 1);
    }

    std::size_t tiles_for_device(std::size_t number) {
        if (policy_ != Policy::router) return std::min(queue_.size(), world_.staging_tiles);
        const std::size_t idle = can_make() || busy_ >= conditions_.workers ? 0 : conditions_.workers - busy_;
        const std::size_t queued = queue_.size() * tile_cells;
        const std::size_t cells =
            router_.cells_device_may_take({queued, world_.staging_tiles * tile_cells, idle}, number);
        const std::size_t tiles = cells / tile_cells;
        if (tiles == 0) return 0;
        const Choice choice = router_.decide({.now = from_ms(now_),
                                              .busy = load_.value(),
                                              .cells_ahead = queued - tiles * tile_cells,
                                              .batch_cells = tiles * tile_cells,
                                              .workers = conditions_.workers,
                                              .cells_remaining = remaining() * tile_cells,
                                              .cells_in_flight = feeders_[number].cells_in_flight,
                                              .cells_of_others = cells_of_others(number)},
                                             number);
        note(choice, number);
        return choice.side == Side::device ? tiles : 0;
    }

    [[nodiscard]] std::size_t cells_of_others(std::size_t number) const {
        std::size_t cells = 0;
        for (std::size_t i = 0; i < feeders_.size(); ++i) {
            if (i != number && feeders_[i].device == feeders_[number].device) cells += feeders_[i].cells_in_flight;
        }
        return cells;
    }

    // Of a source that is not exhausted as much is known to remain as may be open at once.
    [[nodiscard]] std::size_t remaining() const {
        const std::size_t arrived = arrived_ - made_ + queue_.size();
        return arrived_ < world_.tiles ? std::max(arrived, world_.window) : arrived;
    }

    void note(const Choice& choice, std::size_t number) {
        Feeder& feeder = feeders_[number];
        const bool exception = choice.why == Why::trial || choice.why == Why::exploration ||
                               choice.why == Why::half_open || choice.why == Why::down;
        const bool flips = !exception && choice.side != feeder.last;
        if (flips) feeder.last = choice.side;
        feeder.flips.decision(flips);
        feeder.switches.decision(choice.why == Why::switched);
        Changes& changes = outcome_.changes[number];
        changes.flips += flips ? 1U : 0U;
        changes.most_flips_in_64 = feeder.flips.most();
        changes.most_switches_in_64 = feeder.switches.most();
    }

    const World& world_;
    const Policy policy_;
    Router router_;
    LoadAverage load_;
    Conditions conditions_;
    Outcome outcome_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    double now_ = 0;
    std::uint64_t order_ = 0;

    std::size_t arrived_ = 0, made_ = 0, done_ = 0, busy_ = 0;
    std::deque<std::uint32_t> queue_, redo_;

    std::vector<Batch> batches_;
    std::vector<Device> devices_;
    std::vector<Feeder> feeders_;
    std::uint64_t ended_ = 0;
};

} // namespace

Outcome simulate(const World& world, Policy policy) {
    return Simulation(world, policy).run();
}

} // namespace simulation
