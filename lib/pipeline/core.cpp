// Start and end of a run, its errors and its figures.
#include "pipeline/core.hpp"

#include "governor/free_memory.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include <sys/resource.h>

namespace spillway::detail {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t most_open_items = 1U << 16U; // beyond this, running ahead no longer helps any worker
constexpr auto trim_period =
    std::chrono::milliseconds(200); // giving pages back costs milliseconds, and they are wanted again
constexpr auto progress_period = std::chrono::milliseconds(500);
constexpr std::uint64_t least_spill_buffer = std::uint64_t{72} << 10U; // of a seat: see SegmentShape

/// Of this process, so far.
std::uint64_t page_faults() noexcept {
    rusage usage{};
    if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
    return static_cast<std::uint64_t>(usage.ru_minflt) + static_cast<std::uint64_t>(usage.ru_majflt);
}

} // namespace

void Stage::run(std::span<Item>, Local*, Run&) {}
std::unique_ptr<Expansion> Stage::expand(Item&, Parent&, Local*, Run&) {
    return nullptr;
}
void Stage::gather(Item&, Parent&, std::span<Item>, Local*, Run&) {}
void Stage::end(const Key&) {}

SeatState::SeatState(Directory& directory, std::vector<StagePoint>& points, std::uint16_t seat)
    : index(seat), free(directory), growing(points.size()), locals(points.size()), lent(points.size()),
      stages(points.size()), random(seat) {
    for (StagePoint& point : points) tokens.push_back(std::make_unique<HintQueue::Tokens>(point.queue));
}

Core::Core(Plan& plan, Pool& pool, const Options& options)
    : plan_(plan), workers_(pool.workers()), governor_(pool.governor()), on_error_(options.on_error),
      on_progress_(options.progress), log_(options.log), sink_(plan.stages.size() - 1),
      regions_(RegionOptions{.on_commit =
                                 [this](std::int64_t bytes) {
                                     if (bytes > 0) {
                                         governor_.charge(static_cast<std::uint64_t>(bytes));
                                     } else {
                                         governor_.release(static_cast<std::uint64_t>(-bytes));
                                     }
                                 }}),
      points_(plan.stages.size()), seats_(Workers::max_seats), routers_(plan.stages.size()), stop_(options.stop) {
    workers_.check_process();
    if (plan.stages.empty() || plan.stages.back()->kind != Kind::sink) {
        throw Error(ErrorCode::usage, "running " + plan.name, "", "a pipeline ends with in_order()");
    }
    if (plan.stages.size() >= StateCell<>::last_stage) {
        throw Error(ErrorCode::usage, "running " + plan.name, "", "more than 254 stages");
    }
    std::vector<std::size_t> open_fan_outs;
    std::size_t depth = 1;
    for (std::size_t i = 0; i < plan.stages.size(); ++i) {
        Stage& stage = *plan.stages[i];
        points_[i].forks = stage.kind == Kind::batch || stage.limit > 0 || stage.lender != nullptr;
        if (stage.rebuild) points_[i].choice = std::make_unique<SpillChoice>();
        rebuilds_ = rebuilds_ || static_cast<bool>(stage.rebuild);
        if (stage.kind == Kind::fan_out) {
            open_fan_outs.push_back(i);
            if (++depth > max_key_depth)
                throw Error(ErrorCode::usage, "running " + plan.name, stage.name,
                            "more than 3 fan-outs inside each other");
        }
        if (stage.kind == Kind::gather) {
            if (open_fan_outs.empty())
                throw Error(ErrorCode::usage, "running " + plan.name, stage.name,
                            "a gather without a fan-out before it");
            Stage& fan_out = *plan.stages[open_fan_outs.back()];
            points_[open_fan_outs.back()].gather = i;
            for (std::size_t j = open_fan_outs.back() + 1; j < i; ++j) {
                nested_gathers_ = nested_gathers_ || plan.stages[j]->kind == Kind::fan_out;
            }
            open_fan_outs.pop_back();
            fan_out.gathers = true;
            fan_out.keeps_parent = true;
            --depth;
        }
    }
    find_keyed_stages();
    window_ = options.open_items != 0 ? options.open_items : most_open_items;
    // Exact enough for the marks even with every seat at its step, and the governor's counter is not contended.
    told_bytes_ = static_cast<std::int64_t>(std::clamp<std::uint64_t>(governor_.budget() / 1024, 1024, 256 * 1024));
    priority = options.priority;
    open_store(options);
    // The head gets through in whatever memory, but the tables, buffers and states that every run has must fit.
    std::uint64_t of_worker = store_ != nullptr ? least_spill_buffer : 0;
    for (const std::unique_ptr<Stage>& stage : plan.stages) {
        if (stage->has_local && stage->lender == nullptr) of_worker += stage->local_bytes;
    }
    const std::uint64_t least =
        Directory::chunk_slots * sizeof(Slot) + options.resident + workers_.max_threads() * of_worker;
    floor_.emplace(governor_, least, options.resident);
    make_feeders(options);
    order_.push_back({&root_, 0});
    start_journal(options);
}

Core::~Core() {
    if (!ended_) {
        if (workers_.is_inside(*this)) { // it would go on in what no longer exists
            std::fprintf(stderr, "spillway: a stage of %s destroyed its own run\n", plan_.name.c_str());
            std::terminate();
        }
        cancel();
        try {
            static_cast<void>(finish());
        } catch (const Error&) { // the handle was dropped: nobody asks how the run ended
        }
    }
}

void Core::open_store(const Options& options) {
    const auto open = [&](const SpillOptions& where) {
        SegmentShape shape; // with buffers that are a small part of the budget
        const std::uint64_t share = governor_.budget() / (16 * workers_.max_threads());
        shape.buffer = std::clamp(share, least_spill_buffer, shape.buffer);
        store_ = std::make_unique<SpillStore>(where, static_cast<unsigned>(Workers::max_seats),
                                              where.files != nullptr ? where.files : system_files(), shape);
    };
    if (options.spill) {
        if (!options.spill->directory.empty()) open(*options.spill);
        return;
    }
    const char* wish = std::getenv("TMPDIR");
    std::string refusal;
    for (const std::string& directory :
         {std::string(wish != nullptr ? wish : ""), std::string("/var/tmp"), std::string("/tmp")}) {
        if (directory.empty()) continue;
        try {
            open({.directory = directory, .disk_limit = 0, .allow_tmpfs = false});
            return;
        } catch (const Error& error) {
            refusal = error.what();
        }
    }
    if (log_) log_("nothing will be spilled: " + refusal);
}

SeatState& Core::seat_for(std::uint16_t index) {
    std::unique_ptr<SeatState>& state = seats_[index];
    if (state == nullptr) state = std::make_unique<SeatState>(directory_, points_, index);
    return *state;
}

void Core::start() {
    started_ = Clock::now();
    futex_before_ = workers_.futex_calls();
    faults_before_ = page_faults();
    for (const std::unique_ptr<Feeder>& feeder : feeders_) feeder->start();
    const std::size_t known = plan_.source != nullptr ? plan_.source->size() : 0;
    if (stop_.stop_possible()) on_stop_.emplace(stop_, [this] { cancel(); });
    workers_.add(*this, known != 0 ? known : Workers::max_seats);
    count_threads();
}

/// For the report, whenever there may be more of them than before: those that find nothing to do leave in time.
void Core::count_threads() noexcept {
    const std::size_t now = workers_.threads();
    std::size_t most = peak_threads_.load(std::memory_order_relaxed);
    while (most < now && !peak_threads_.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
    }
}

bool Core::over() const noexcept {
    return stopping_.load(std::memory_order_relaxed) || finished_.load(std::memory_order_acquire);
}

void Core::end_run(bool by_error) noexcept {
    if (by_error) {
        stopping_.store(true, std::memory_order_release);
    } else {
        finished_.store(true, std::memory_order_release);
    }
    done_.notify_all();
    room_.notify_all();
    for (StagePoint& point : points_) point.device_work.notify_all();
    workers_.notify_all(); // also those that joined for this run only
}

void Core::record(Error error, const Key& key) {
    {
        const std::lock_guard lock(mutex_);
        // Of several errors the one with the smallest key; a host's wish to stop gives way to what went wrong.
        const bool better = !error_ || error_->code() == ErrorCode::cancelled ||
                            (error.code() != ErrorCode::cancelled && key < error_key_);
        if (better) {
            error_ = std::move(error);
            error_key_ = key;
        }
    }
    end_run(true);
}

/// Of the exception being handled.
Error Core::error_of(const Item& item) const {
    const Key where = key(item);
    const std::string doing = "running " + plan_.name;
    const std::string place = item.slot != nullptr && where.depth > 0 ? "candidate " + to_string(where) : "source";
    try {
        throw;
    } catch (const Error& own) {
        return own;
    } catch (const std::exception& exception) {
        return {ErrorCode::runtime, doing, place, exception.what()};
    } catch (...) {
        return {ErrorCode::runtime, doing, place, "an exception of unknown type"};
    }
}

void Core::fail(Item& item) {
    const Error error = error_of(item);
    item.outcome = Outcome::failed;
    if (item.slot != nullptr && on_error_ && on_error_(error, key(item)) == Reaction::drop) return;
    record(error, key(item));
}

void Core::cancel() {
    if (!finished_.load(std::memory_order_acquire))
        record(Error(ErrorCode::cancelled, "running " + plan_.name, "", "stopped on request"), {});
}

bool Core::push(void (*emplace)(Payload&, void*), void* value, bool wait) {
    workers_.check_process();
    for (;;) {
        if (over() || source_done_.load(std::memory_order_relaxed)) {
            if (stopping()) return false;
            throw Error(ErrorCode::usage, "pushing into " + plan_.name, "", "it is closed");
        }
        const auto ticket = room_.prepare_wait();
        if (may_open()) {
            room_.cancel_wait();
            break;
        }
        if (!wait || over()) {
            room_.cancel_wait();
            if (!wait) return false;
            continue;
        }
        room_.wait(ticket);
    }
    Hint hint;
    FamilyEntries::Chunk* complete_chunk = nullptr; // of a batch by key
    {
        const std::lock_guard mine(pulling_); // from other host threads, for as long as a candidate takes to be made
        if (source_done_.load(std::memory_order_relaxed))
            throw Error(ErrorCode::usage, "pushing into " + plan_.name, "", "it is closed");
        Slot& slot = host_slots_.take();
        slot.word.fill(StateWord::max_owner - 1);
        try {
            emplace(slot.payload, value);
        } catch (...) {
            slot.word.release();
            host_slots_.give(slot);
            throw;
        }
        adopt(slot, root_, root_.produced);
        const PayloadType& type = *slot.payload.type();
        const std::size_t bytes = type.plain ? 0 : type.footprint(slot.payload.object());
        slot.charged.store(bytes, std::memory_order_relaxed);
        slot.heap = bytes;
        if (bytes > 0) governor_.charge(bytes);
        const bool waits = root_.keyed == 0;
        if (plan_.stages[0]->kind == Kind::batch && !waits) {
            slot.cells = plan_.stages[0]->cells(slot.payload);
            points_[0].cells.fetch_add(static_cast<std::int64_t>(slot.cells), std::memory_order_relaxed);
        }
        slot.chunk = root_.entries.append(slot.index + 1);
        opened_.open(1);
        const bool to_sink = sink_ == 0;
        if (waits) {
            FamilyEntries::Chunk& chunk = *slot.chunk;
            slot.arrived = true;
            slot.word.park(Place::memory, 0);
            if (bytes > 0) parked_bytes_.fetch_add(bytes, std::memory_order_relaxed);
            if (chunk.missing.arrive()) complete_chunk = &chunk;
        } else if (to_sink) {
            slot.word.park(Place::memory);
        } else {
            hint = {slot.index, slot.word.publish(0, Place::memory)};
        }
        // One that waits for its batch is where a walk learns that the others must be let in, room or not.
        if (to_sink || waits) drain_wanted_.exchange(true, std::memory_order_release);
    }
    if (complete_chunk != nullptr) complete(root_, *complete_chunk, nullptr);
    if (sink_ != 0 && root_.keyed != 0) {
        try {
            points_[0].queue.push(hint);
        } catch (const std::bad_alloc&) {
            record(Error(ErrorCode::memory, "pushing into " + plan_.name, "", "out of memory"),
                   {}); // its place would never be passed
            return false;
        }
        if (points_[0].fed) points_[0].device_work.notify_all();
    }
    workers_.notify(1);
    return true;
}

void Core::close() {
    {
        const std::lock_guard mine(pulling_);
        if (!source_done_.exchange(true, std::memory_order_relaxed)) close(root_);
    }
    request_drain();
}

Progress Core::progress() const {
    Progress progress;
    progress.sources = opened_.begun();
    progress.finished = opened_.passed();
    progress.expected = plan_.source != nullptr ? plan_.source->size() : 0;
    progress.memory = static_cast<std::size_t>(governor_.used());
    progress.spilled_bytes = store_ != nullptr ? store_->statistics().bytes_written : 0;
    progress.seconds = std::chrono::duration<double>(Clock::now() - started_).count();
    return progress;
}

void Core::tick() noexcept {
    governor_.tick(Clock::now());
    room_.notify_all(); // memory may have come free without any candidate's doing
    count_threads();
    const std::uint64_t table = directory_.bytes() + (store_ != nullptr ? store_->buffered() : 0);
    // Whoever else ticks meanwhile: the differences add up to what there is.
    governor_.charge_fixed(
        static_cast<std::int64_t>(table - table_charged_.exchange(table, std::memory_order_relaxed)));
    const std::int64_t now =
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
    std::int64_t trim_due = next_trim_.load(std::memory_order_relaxed);
    const std::int64_t next_trim = now + std::chrono::nanoseconds(trim_period).count();
    if (!over() && governor_.verdict() == Verdict::hold && now >= trim_due &&
        next_trim_.compare_exchange_strong(trim_due, next_trim, std::memory_order_relaxed)) {
        regions_.trim(0);
        give_back_free_memory();
    }
    if (!on_progress_) return;
    if (now < next_progress_.load(std::memory_order_relaxed)) return;
    const std::unique_lock mine(telling_progress_, std::try_to_lock);
    if (!mine) return;
    next_progress_.store(now + std::chrono::nanoseconds(progress_period).count(), std::memory_order_relaxed);
    on_progress_(progress());
}

bool Core::waits_for_others() noexcept {
    if (over()) return false;
    if (governor_.verdict() == Verdict::hold) return true;
    for (std::size_t stage = 0; stage < sink_; ++stage) {
        // Another pool's pipeline may have it, and does not know whom to wake.
        if (plan_.stages[stage]->lender != nullptr && points_[stage].backlog() > 0) return true;
    }
    return false;
}

bool Core::could_use_more() const noexcept {
    if (over()) return false;
    if (!source_done_.load(std::memory_order_relaxed) && plan_.source != nullptr && !opened_.refused()) return true;
    const auto threads = static_cast<std::int64_t>(workers_.threads());
    return std::any_of(points_.begin(), points_.end(),
                       [&](const StagePoint& point) { return point.backlog() > threads; });
}

bool Core::holds(const Seat& seat) const noexcept {
    const std::unique_ptr<SeatState>& state = seats_[seat.index];
    return state != nullptr && std::any_of(state->growing.begin(), state->growing.end(),
                                           [](const Growing& g) { return g.family != nullptr; });
}

void Core::leave(Seat& seat) noexcept {
    std::unique_ptr<SeatState>& state = seats_[seat.index];
    if (state == nullptr) return;
    for (Growing& growing : state->growing) growing.expansion.reset();
    for (std::size_t i = 0; i < state->locals.size(); ++i) {
        if (state->locals[i] == nullptr) continue;
        state->locals[i].reset();
        governor_.charge_fixed(-static_cast<std::int64_t>(plan_.stages[i]->local_bytes));
    }
    for (std::size_t i = 0; i < sink_; ++i) { // what an exception left behind
        if (state->lent[i] != nullptr) plan_.stages[i]->lender->give_back(state->lent[i]);
    }
    fold(*state);
    state.reset();
}

void Core::fold(SeatState& seat) {
    hand_over_notes(seat);
    tell(seat, 0);
    if (seat.uncharged > 0) governor_.charge(static_cast<std::uint64_t>(seat.uncharged));
    if (seat.uncharged < 0) governor_.release(static_cast<std::uint64_t>(-seat.uncharged));
    seat.uncharged = 0;
    const std::lock_guard lock(mutex_);
    report_.candidates += seat.candidates;
    report_.emitted += seat.emitted_count;
    report_.dropped += seat.dropped + seat.failed;
    report_.failed += seat.failed;
    report_.stages.resize(plan_.stages.size());
    for (std::size_t i = 0; i < seat.stages.size(); ++i) {
        report_.stages[i].device_cells += seat.stages[i].device_cells;
        report_.stages[i].device_batches += seat.stages[i].device_batches;
        report_.stages[i].device_failures += seat.stages[i].device_failures;
        report_.stages[i].candidates += seat.stages[i].candidates;
        report_.stages[i].calls += seat.stages[i].calls;
        report_.stages[i].seconds += static_cast<double>(seat.stages[i].nanoseconds) * 1e-9;
    }
}

void Core::help() {
    workers_.join(*this, [this] { return over(); });
}

void Core::begin_blocking() {
    workers_.begin_blocking();
    count_threads();
}

void Core::end_blocking() noexcept {
    workers_.end_blocking();
}

Report Core::finish() {
    if (workers_.is_inside(*this)) {
        throw Error(ErrorCode::usage, "waiting for " + plan_.name, "",
                    "a stage of its own waits: it would never end; wait outside, or in a stage of another run");
    }
    if (workers_.is_worker()) {
        help();
    } else {
        while (!over()) {
            const auto ticket = done_.prepare_wait();
            if (over()) {
                done_.cancel_wait();
                break;
            }
            done_.wait(ticket);
        }
    }
    on_stop_.reset();
    count_threads();
    for (const std::unique_ptr<Feeder>& feeder : feeders_) feeder->join();
    workers_.remove(*this);
    take_down();
    floor_.reset();
    ended_ = true;
    const std::lock_guard lock(mutex_);
    if (error_) throw *error_;
    report_.sources = opened_.begun();
    report_.restored = restored_.load(std::memory_order_relaxed);
    report_.rebuilt = rebuilt_.load(std::memory_order_relaxed);
    if (store_ != nullptr) {
        const SpillStatistics spilled = store_->statistics();
        report_.spilled = spilled.records_written;
        report_.spilled_bytes = spilled.bytes_written;
    }
    report_.futex_calls = workers_.futex_calls() - futex_before_;
    report_.page_faults = page_faults() - faults_before_;
    const GovernorFigures figures = governor_.figures();
    report_.memory_budget = static_cast<std::size_t>(figures.budget);
    report_.memory_peak = static_cast<std::size_t>(std::max(figures.peak, figures.tracked));
    report_.threads_peak = peak_threads_.load(std::memory_order_relaxed);
    report_.seconds = std::chrono::duration<double>(Clock::now() - started_).count();
    for (std::size_t i = 0; i < report_.stages.size(); ++i) {
        report_.stages[i].name = plan_.stages[i]->name;
        report_.stages[i].by_key = plan_.stages[i]->by_key;
        if (routers_[i] == nullptr) continue;
        RouterReport& routing = report_.stages[i].routing;
        routing = routers_[i]->report();
        const std::vector<DeviceReport> feeders = std::exchange(routing.devices, {});
        for (std::size_t first = 0; first < feeders.size(); first += feeders_a_device_)
            routing.devices.push_back(joined(std::span(feeders).subspan(first, feeders_a_device_)));
        report_.stages[i].cpu_cells = routing.cpu_cells;
        for (const DeviceReport& device : routing.devices) {
            report_.stages[i].device_cells += device.cells;
            report_.stages[i].device_batches += device.batches;
            report_.stages[i].switches += device.switches;
            for (const std::uint64_t count : device.failures) report_.stages[i].device_failures += count;
        }
    }
    return report_;
}

/// After the last worker has left: whatever an early end left behind.
void Core::take_down() {
    for (std::unique_ptr<SeatState>& seat : seats_) {
        if (seat != nullptr) fold(*seat);
        seat.reset();
    }
    std::uint64_t charged = 0;
    std::vector<std::unique_ptr<Slab>> slabs; // what the families' payloads lie in, too
    std::vector<Family*> families;
    for (std::uint32_t i = 0; i < directory_.size(); ++i) {
        Slot& slot = directory_[i];
        const StateWord word = slot.word.peek();
        if (word.state == State::free) continue;
        if (slot.children != nullptr) families.push_back(slot.children);
        if (word.place == Place::disk && store_ != nullptr) store_->release(slot.place);
        charged += std::exchange(slot.heap, 0);
        slot.charged.store(0, std::memory_order_relaxed);
        slot.payload.reset();
        if (slot.slab != nullptr) slabs.emplace_back(std::exchange(slot.slab, nullptr));
        slot.word.release();
    }
    for (Family* family : families) free_family(*family);
    slabs.clear();
    if (journal_ != nullptr) journal_->finish();
    governor_.release(charged);
    governor_.charge_fixed(-static_cast<std::int64_t>(table_charged_.exchange(0, std::memory_order_relaxed)));
}

} // namespace spillway::detail
