// The compiled core of a run: the way of candidates from the source through the stages to the ordered sink.
//
//     worker:   pull or take  ->  carry through stages  ->  park  ->  drain
//
// A worker carries candidates depth-first and queues them only where the road forks: before a batched or limited stage,
// after a fan-out, after a batch. Parked candidates wait in the order until the drain passes them, which one worker at
// a time does. Files: core.cpp start and end; carry.cpp the way through the stages; queues.cpp into the queues and out of
// them; keyed.cpp batches by key; order.cpp the drain, families and gathers; memory.cpp charging, spilling, restoring;
// resume.cpp the journal; feeder.cpp the way through devices.
#pragma once

#include "base/try_lock.hpp"
#include "directory/directory.hpp"
#include "pipeline/feeder.hpp"
#include "pipeline/open_window.hpp"
#include "pipeline/spill_choice.hpp"
#include "pool/drain.hpp"
#include "pool/hint_queue.hpp"
#include "pool/turnstile.hpp"
#include "pool/workers.hpp"
#include "spill/run_journal.hpp"
#include "spill/store.hpp"
#include "spillway/detail/run.hpp"
#include "spillway/detail/stage.hpp"
#include "spillway/region.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

namespace spillway::detail {

/// Where candidates wait for a stage, and what the stage has cost so far.
struct StagePoint {
    HintQueue queue;
    HintQueue given_back;                                        ///< What a device failed at: for workers only.
    alignas(cache_line_pair) std::atomic<std::int64_t> cells{0}; ///< batch: cost of what is queued.
    std::atomic<std::uint64_t> cells_seen{0};                    ///< Routed: cost of what was ever queued.
    Turnstile<> turnstile;                                       ///< limit: workers inside.
    std::atomic<std::uint64_t> nanoseconds{0}; ///< Moving average: one candidate, from here to where it is put down.
    EventCount<> device_work;                  ///< Feeders that have nothing to take.
    /// Routed: cells that all staging of its feeders holds. Each adds what its own becomes; read on its own.
    std::atomic<std::size_t> staging_cells{0};
    std::unique_ptr<SpillChoice> choice; ///< Where its results can be made again.
    std::size_t gather = 0;              ///< fan_out: the stage that its children end at, where they are gathered.
    bool forks = false;                  ///< Whether a candidate that comes here is queued rather than carried on.
    bool fed = false;                    ///< Whether feeders take from the queue.

    /// Hints that workers may take.
    [[nodiscard]] std::int64_t backlog() const noexcept { return queue.backlog() + given_back.backlog(); }
    /// Cells that are queued. As for the queue itself, only about.
    [[nodiscard]] std::size_t queued_cells() const noexcept {
        return static_cast<std::size_t>(std::max<std::int64_t>(cells.load(std::memory_order_relaxed), 0));
    }
};

/// A fan-out going on at a seat: its coroutine may hold on to the seat's local state, so no other seat resumes it.
struct Growing {
    Family* family = nullptr;
    std::unique_ptr<Expansion> expansion;
};

struct StageTally {
    std::uint64_t candidates = 0, calls = 0;
    std::uint64_t nanoseconds = 0;
    std::uint64_t device_cells = 0, device_batches = 0, device_failures = 0; ///< Where it is routed by key.
};

/// What one seat has of a run. Touched by the seat's thread only.
struct SeatState {
    SeatState(Directory& directory, std::vector<StagePoint>& points, std::uint16_t seat);

    std::uint16_t index;
    FreeSlots free;
    std::vector<std::unique_ptr<HintQueue::Tokens>> tokens;
    std::vector<Growing> growing;               ///< By stage. Destroyed before locals, which it may look into.
    std::vector<std::unique_ptr<Local>> locals; ///< By stage.
    std::vector<Local*> lent;                   ///< By stage: what it has borrowed while inside.
    std::vector<std::unique_ptr<Slab>> slabs;   ///< Empty ones, for reuse.
    std::vector<std::byte> buffer;              ///< For encoding and decoding.
    std::vector<Item> items;
    std::vector<Slot*> carried;
    std::vector<Slot*> emitted;
    std::vector<Hint> hints;
    std::vector<Family*> ended; ///< One entry for each child that ended and is not yet counted.
    std::vector<StageTally> stages;
    std::unique_ptr<JournalGroup> group; ///< For the journal; none while there is nothing to hand over.
    std::int64_t uncharged = 0;          ///< Bytes not yet told to the governor.
    std::uint64_t candidates = 0, emitted_count = 0, dropped = 0, failed = 0;
    std::uint64_t random = 0;
    std::uint32_t rounds = 0, groups = 0; ///< Pulls, and groups carried.
    unsigned parents_back = 0;            ///< Parents that were read back for this group.
    bool came_back = false;               ///< A candidate of this group was not in memory.
};

class Core final : public Work, public Run {
public:
    Core(Plan& plan, Pool& pool, const Options& options);
    ~Core() override;

    void start();
    bool push(void (*emplace)(Payload&, void*), void* value, bool wait);
    void close();
    void cancel();
    [[nodiscard]] Progress progress() const;
    /// Works from the calling thread until the end.
    void help();
    /// Waits for the end, takes everything down, and reports or throws.
    Report finish();

    // Work
    bool run_some(Seat& seat) override;
    void leave(Seat& seat) noexcept override;
    [[nodiscard]] bool holds(const Seat& seat) const noexcept override;
    void tick() noexcept override;
    [[nodiscard]] bool waits_for_others() noexcept override;
    [[nodiscard]] bool could_use_more() const noexcept override;

    // Run
    [[nodiscard]] Key key(const Item& item) const override;
    [[nodiscard]] std::pmr::memory_resource& memory(const Item& item) override;
    [[nodiscard]] Parent* parent(const Item& item) const noexcept override;
    [[nodiscard]] bool stopping() const noexcept override { return stopping_.load(std::memory_order_relaxed); }
    void fail(Item& item) override;
    void begin_blocking() override;
    void end_blocking() noexcept override;

private:
    friend class Feeder;

    // core.cpp
    SeatState& seat_for(std::uint16_t index);
    [[nodiscard]] Error error_of(const Item& item) const;
    void record(Error error, const Key& key);
    void end_run(bool by_error) noexcept;
    void count_threads() noexcept;
    [[nodiscard]] bool over() const noexcept;
    void open_store(const Options& options);
    void fold(SeatState& seat);
    void take_down();
    void free_family(Family& family);

    // feeder.cpp
    void make_feeders(const Options& options);

    // carry.cpp
    bool work(SeatState& seat);
    bool pull(SeatState& seat);
    bool pump(SeatState& seat, std::size_t stage);
    void carry(SeatState& seat, std::size_t stage, bool inside);
    bool run_stage(SeatState& seat, std::size_t stage);
    void expand(SeatState& seat, std::size_t stage);
    void close_family(SeatState& seat, Growing growing);
    void adopt(Slot& slot, Family& family, std::uint64_t root) noexcept;
    [[nodiscard]] std::size_t carry_size(std::size_t stage) const noexcept;
    [[nodiscard]] bool may_enter(SeatState& seat, std::size_t stage) noexcept;
    void step_out(SeatState& seat, std::size_t stage) noexcept;
    [[nodiscard]] bool may_open() noexcept;
    [[nodiscard]] Local* local(SeatState& seat, std::size_t stage);
    [[nodiscard]] bool can_take_in(SeatState& seat, std::size_t stage) const noexcept;

    // queues.cpp
    bool take(SeatState& seat, std::size_t stage, bool partial);
    bool take_given_back(SeatState& seat, std::size_t stage);
    bool claim(SeatState& seat, const Hint& hint);
    [[nodiscard]] bool may_grow(const SeatState& seat, Kind kind) noexcept;
    void take_for_device(SeatState& seat, std::size_t stage, std::size_t cells, std::size_t bytes,
                         const DeviceForm& form);
    void hand_on(SeatState& seat, std::size_t stage);
    void hand_to_workers(SeatState& seat, std::size_t stage);
    [[nodiscard]] std::size_t cells_remaining(std::size_t stage) const noexcept;
    void publish(SeatState& seat, std::span<Slot* const> slots, std::size_t stage);
    void make_ready(SeatState& seat, std::span<Slot* const> slots, std::size_t stage);
    void hand_back(SeatState& seat, Slot& slot, std::size_t stage, Place place);

    // keyed.cpp
    void find_keyed_stages();
    [[nodiscard]] auto slot_at() noexcept {
        return [this](std::uint32_t entry) -> Slot& { return directory_[entry - 1]; };
    }
    void arrive(SeatState& seat, std::span<Slot* const> slots, std::size_t stage);
    [[nodiscard]] bool ends_before(Slot& slot) noexcept;
    void complete(Family& family, FamilyEntries::Chunk& chunk, const Slot* ending);
    void close(Family& family);
    void collect(SeatState& seat);
    bool take_by_key(SeatState& seat, std::size_t stage);

    // order.cpp
    void park(SeatState& seat);
    void settle(SeatState& seat, Slot& slot, State state);
    Slot* drain(SeatState& seat, bool want_head);
    void walk(SeatState& seat, bool want_head, Slot*& head);
    void emit(SeatState& seat);
    void free_slot(SeatState& seat, Slot& slot);
    void count_ended(SeatState& seat);
    void fire(SeatState& seat, Family& family);
    void tell_what_the_head_wants(const Family* starving, std::uint64_t urgent, bool pressed) noexcept;
    void request_drain() noexcept;

    // memory.cpp
    struct Sampled {
        std::uint64_t root = 0;
        Slot* slot = nullptr;
        StateWord word; // as it was seen
    };
    static constexpr std::size_t scanned = 64; // of a sample
    // The cheap way out of each stands here, where it is inlined: most candidates have nothing to charge and no parent.
    void charge(SeatState& seat, Slot& slot) {
        const bool nothing = slot.payload.type()->plain && slot.slab == nullptr;
        if (!nothing || slot.charged.load(std::memory_order_relaxed) != 0) charge_payload(seat, slot);
    }
    void charge_payload(SeatState& seat, Slot& slot);
    void discharge(SeatState& seat, Slot& slot) {
        if (slot.charged.load(std::memory_order_relaxed) != 0) discharge_payload(seat, slot);
    }
    void discharge_payload(SeatState& seat, Slot& slot);
    void tell(SeatState& seat, std::int64_t bytes);
    [[nodiscard]] bool far_behind_head(std::uint64_t root) const noexcept;
    [[nodiscard]] Place make_way(SeatState& seat, Slot& slot, std::size_t stage);
    [[nodiscard]] Place put_away(SeatState& seat, Slot& slot, std::size_t stage);
    [[nodiscard]] std::size_t maker(const Slot& slot, std::size_t stage) const noexcept;
    bool write_out(SeatState& seat, Slot& slot);
    void leave_recipe(std::size_t stage, const Payload& made, Payload& left) const noexcept;
    void try_rebuild(SeatState& seat, Slot& slot, std::size_t stage);
    [[nodiscard]] bool restore(SeatState& seat, Slot& slot, const StateWord& was);
    [[nodiscard]] bool take_up(SeatState& seat, Slot& slot, const StateWord& was);
    std::size_t sample(SeatState& seat, Place place, std::span<Sampled, scanned> found);
    void put_back(SeatState& seat, Slot& slot, const StateWord& was, Place place);
    void relieve(SeatState& seat);
    [[nodiscard]] bool prefetch(SeatState& seat);
    [[nodiscard]] bool pin(SeatState& seat, Family* family) { return family == &root_ || pin_parents(seat, family); }
    [[nodiscard]] bool pin_parents(SeatState& seat, Family* family);
    [[nodiscard]] bool pin_parent(SeatState& seat, Family& family);
    [[nodiscard]] bool pin_soon(SeatState& seat, Family* family);
    void unpin(SeatState& seat, Family* family) {
        if (family != &root_) unpin_parents(seat, family);
    }
    void unpin_parents(SeatState& seat, Family* family);
    void release_slab(SeatState& seat, Slot& slot) {
        if (slot.slab != nullptr) recycle_slab(seat, slot);
    }
    void recycle_slab(SeatState& seat, Slot& slot);

    // resume.cpp
    void start_journal(const Options& options);
    [[nodiscard]] bool is_journaled(const Slot& slot) const noexcept;
    void pass_over_journaled(SeatState& seat);
    void replay(SeatState& seat, const Key& key);
    void note_result(SeatState& seat, Slot& slot);
    void note_nothing(SeatState& seat, const Slot& slot);
    void note_family(SeatState& seat, const Family& family);
    void hand_over_notes(SeatState& seat);

    static constexpr std::size_t most_carried = 64;   // keeps the items of a group in the first-level cache
    static constexpr std::size_t most_batched = 1024; // bounds what one batch may hold of the memory outside the marks

    Plan& plan_;
    Workers& workers_;
    Governor& governor_;
    std::optional<Floor> floor_; // until the run has ended
    std::function<Reaction(const Error&, const Key&)> on_error_;
    std::function<void(const Progress&)> on_progress_;
    std::function<void(std::string_view)> log_;
    std::size_t window_;      // most open source items
    std::int64_t told_bytes_; // a seat tells the governor of its changes in steps of this
    std::size_t sink_;        // index of the sink: the last stage

    Directory directory_;
    RegionPool regions_;
    std::unique_ptr<SpillStore> store_; // none: nothing spills
    RunJournal* journal_ = nullptr;     // none: nothing is kept beyond the run
    std::atomic<bool> first_noted_{false};
    std::vector<StagePoint> points_;
    std::vector<std::unique_ptr<SeatState>> seats_; // by seat index; each element is touched by its seat's thread only

    std::vector<std::unique_ptr<Router>> routers_; // by stage; of routed stages with a device
    std::vector<std::unique_ptr<Feeder>> feeders_;
    std::size_t feeders_a_device_ = 1;

    Family root_;                                // the source's items, in order
    alignas(cache_line_pair) TryLock<> pulling_; // guards the source and the producer side of root_
    std::atomic<bool> source_done_{false};
    OpenWindow<> opened_; // source items; passed by the drain
    EventCount<> room_;   // hosts that wait to push

    struct Cursor {
        Family* family;
        FamilyEntries::Cursor at;
    };
    Drain<> drain_;
    std::atomic<bool> drain_wanted_{false};
    std::vector<Cursor> order_; // guarded by drain_; from the source's family down to the head of the order
    static constexpr std::uint64_t no_root = ~std::uint64_t{0};
    std::atomic<std::uint64_t> urgent_root_{no_root}; // the source item whose gather the drain waits for
    bool nested_gathers_ = false;
    bool rebuilds_ = false;                        // some stage can make its results again
    std::atomic<bool> pressed_{false};             // the head waits for a fan-out that others are in the middle of
    std::atomic<const Family*> starving_{nullptr}; // the family whose next entry the drain waits for
    std::vector<std::size_t> keyed_;               // by fan-out: the stage on its children's way that batches by key

    alignas(cache_line_pair) std::atomic<bool> stopping_{false};
    std::atomic<bool> finished_{false};
    std::atomic<std::uint64_t> parked_bytes_{0};
    std::atomic<std::uint64_t> restored_{0}, rebuilt_{0};
    std::atomic<std::int64_t> on_disk_{0}; // candidates; about
    std::atomic<std::int64_t> parents_on_disk_{0};
    std::atomic<std::uint64_t> table_charged_{0}; // bytes of directory and spill buffers that the governor counts
    EventCount<> done_;
    mutable std::mutex mutex_; // errors and the report: off the data path
    std::optional<Error> error_;
    Key error_key_;
    Report report_;
    std::chrono::steady_clock::time_point started_;
    std::atomic<std::int64_t> next_progress_{0};
    TryLock<> telling_progress_; // what one call of on_progress_ wrote is there in the next
    std::atomic<std::int64_t> next_trim_{0};
    std::atomic<std::size_t> peak_threads_{0};
    std::uint64_t futex_before_ = 0;  // of the pool, when this run began
    std::uint64_t faults_before_ = 0; // of the process, then
    std::optional<std::stop_callback<std::function<void()>>> on_stop_;
    std::stop_token stop_;
    FreeSlots host_slots_{directory_}; // guarded by pulling_
    bool ended_ = false;
};

} // namespace spillway::detail
