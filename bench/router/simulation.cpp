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
    Tiles tiles;
    DeviceCost cost;
    bool failed = false;
};

RouterOptions options_of(const World& world) {
    RouterOptions options = world.options;
    options.tile_cells = tile_cells;
    return options;
}

class Simulation {
public:
    Simulation(const World& world, Policy policy) : world_(world), policy_(policy), router_(options_of(world)) {
        outcome_.times_done.resize(world.tiles);
    }

    Outcome run() {
        conditions_ = world_.at(0);
        if (conditions_.interval > 0) {
            plan(conditions_.interval, Happens::arrival);
        } else {
            arrived_ = world_.tiles;
        }
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

    void handle(const Event& event) {
        switch (event.what) {
        case Happens::arrival:
            ++arrived_;
            if (arrived_ < world_.tiles) {
                if (conditions_.interval > 0) {
                    plan(conditions_.interval, Happens::arrival);
                } else {
                    arrived_ = world_.tiles;
                }
            }
            break;
        case Happens::made:
            --busy_;
            queue_.push_back(static_cast<std::uint32_t>(event.subject));
            poked_ = true;
            break;
        case Happens::aligned:
            --busy_;
            router_.record_cpu(tile_cells, from_ms(event.took));
            finish(event.subject, &Share::cpu);
            ++outcome_.on_cpu;
            break;
        case Happens::packed:
            feeder_busy_ = false;
            poked_ = true;
            launch(event.subject);
            break;
        case Happens::copied:
            to_run_.push_back(event.subject);
            if (to_run_.size() == 1) start_run();
            break;
        case Happens::ran:
            to_run_.pop_front();
            if (!to_run_.empty()) start_run();
            to_unpack_.push_back(event.subject);
            break;
        case Happens::unpacked:
            feeder_busy_ = false;
            poked_ = true;
            end_batch(event.subject);
            break;
        }
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
        const double copy = world_.copy * static_cast<double>(batch.tiles.size());
        copy_until_ = std::max(copy_until_, now_) + copy;
        batch.cost.copy = from_ms(copy);
        plan(copy_until_ - now_, Happens::copied, index);
    }

    void start_run() {
        Batch& batch = batches_[to_run_.front()];
        const double run = conditions_.device_fixed + conditions_.device_tile * static_cast<double>(batch.tiles.size());
        batch.cost.run = from_ms(run);
        plan(run, Happens::ran, to_run_.front());
    }

    void end_batch(std::size_t index) {
        Batch& batch = batches_[index];
        --in_use_;
        cells_in_flight_ -= batch.tiles.size() * tile_cells;
        const auto fault = world_.fault ? world_.fault(++ended_) : std::nullopt;
        if (fault) {
            router_.device_failed(*fault, from_ms(now_));
            redo_.insert(redo_.end(), batch.tiles.begin(), batch.tiles.end());
            return;
        }
        router_.record_device(batch.tiles.size() * tile_cells, batch.cost);
        router_.device_ok();
        for (const std::uint32_t tile : batch.tiles) finish(tile, &Share::device);
        outcome_.on_device += batch.tiles.size();
    }

    void dispatch() {
        const std::size_t allowed = std::max<std::size_t>(conditions_.workers, 1);
        load_.update(from_ms(now_), busy_, allowed);
        feed();
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
        const Waiting waiting{queue_.size() * tile_cells, world_.stagings * world_.staging_tiles * tile_cells, 0};
        return router_.cells_worker_may_take(waiting, !can_make()) >= tile_cells;
    }

    void align(std::deque<std::uint32_t>& from) {
        plan(conditions_.align, Happens::aligned, from.front(), conditions_.align);
        from.pop_front();
    }

    void feed() {
        if (feeder_busy_) return;
        if (!to_unpack_.empty()) {
            Batch& batch = batches_[to_unpack_.front()];
            const double unpack = world_.unpack * static_cast<double>(batch.tiles.size());
            batch.cost.unpack = from_ms(unpack);
            feeder_busy_ = true;
            plan(unpack, Happens::unpacked, to_unpack_.front());
            to_unpack_.pop_front();
            return;
        }
        if (!std::exchange(poked_, false) || policy_ == Policy::cpu_alone || in_use_ == world_.stagings) return;
        const std::size_t tiles = tiles_for_device();
        if (tiles == 0) return;
        Batch batch;
        batch.tiles.assign(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(tiles));
        queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(tiles));
        const double pack = world_.pack * static_cast<double>(tiles);
        batch.cost.pack = from_ms(pack);
        batches_.push_back(std::move(batch));
        ++in_use_;
        cells_in_flight_ += tiles * tile_cells;
        feeder_busy_ = true;
        plan(pack, Happens::packed, batches_.size() - 1);
    }

    std::size_t tiles_for_device() {
        if (policy_ != Policy::router) return std::min(queue_.size(), world_.staging_tiles);
        const std::size_t idle = can_make() || busy_ >= conditions_.workers ? 0 : conditions_.workers - busy_;
        const std::size_t queued = queue_.size() * tile_cells;
        const std::size_t cells = router_.cells_device_may_take({queued, world_.staging_tiles * tile_cells, idle});
        const std::size_t tiles = cells / tile_cells;
        if (tiles == 0) return 0;
        const Choice choice = router_.decide({.now = from_ms(now_),
                                              .busy = load_.value(),
                                              .cells_ahead = queued - tiles * tile_cells,
                                              .batch_cells = tiles * tile_cells,
                                              .workers = conditions_.workers,
                                              .cells_remaining = remaining() * tile_cells,
                                              .cells_in_flight = cells_in_flight_});
        note(choice);
        return choice.side == Side::device ? tiles : 0;
    }

    // Of a source that is not exhausted as much is known to remain as may be open at once.
    [[nodiscard]] std::size_t remaining() const {
        const std::size_t arrived = arrived_ - made_ + queue_.size();
        return arrived_ < world_.tiles ? std::max(arrived, world_.window) : arrived;
    }

    void note(const Choice& choice) {
        ++decisions_;
        const bool exception = choice.why == Why::trial || choice.why == Why::exploration ||
                               choice.why == Why::half_open || choice.why == Why::down;
        if (!exception && choice.side != last_) {
            last_ = choice.side;
            ++outcome_.flips;
            flips_.push_back(decisions_);
        }
        while (!flips_.empty() && flips_.front() + 64 <= decisions_) flips_.pop_front();
        outcome_.most_flips_in_64 = std::max<std::uint64_t>(outcome_.most_flips_in_64, flips_.size());
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
    std::deque<std::size_t> to_run_, to_unpack_; // the front of to_run_ is running
    bool feeder_busy_ = false, poked_ = false;
    std::size_t in_use_ = 0, cells_in_flight_ = 0;
    double copy_until_ = 0;
    std::uint64_t ended_ = 0, decisions_ = 0;
    Side last_ = Side::cpu;
    std::deque<std::uint64_t> flips_;
};

} // namespace

Outcome simulate(const World& world, Policy policy) {
    return Simulation(world, policy).run();
}

} // namespace simulation
