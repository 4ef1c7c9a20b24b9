// The elastic workers behind a Pool, and what they need of the work they are given.
//
//     class Run : public Work { bool run_some(Seat&) override; ... };
//     workers.add(run, 100);        // as many threads as 100 pieces of work can use
//     workers.notify(3);            // three more pieces can be taken
//     workers.remove(run);          // returns when no thread is inside, nor holds state of it
#pragma once

#include "base/try_lock.hpp"
#include "governor/cpu_quota.hpp"
#include "pool/event_count.hpp"
#include "pool/headcount.hpp"
#include "pool/idle_threads.hpp"
#include "pool/throttle.hpp"
#include "spillway/pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <sys/types.h>

namespace spillway::detail {

/// A worker's place. Threads come and go; a seat keeps its index, and with it its queue tokens and its spill segment.
struct Seat {
    std::uint16_t index = 0;
};

/// Something that workers take pieces from.
class Work {
public:
    virtual ~Work() = default;

    /// Does one piece of work, if there is one that this seat may do now. Called by one thread at a time for each seat.
    /// Whoever makes work possible after this returned false owes a notify().
    virtual bool run_some(Seat& seat) = 0;

    /// The thread of this seat takes no more pieces: destroy what belongs to the thread.
    virtual void leave(Seat& seat) noexcept = 0;

    /// Whether this seat's thread must stay, since it holds something that only it can go on with.
    [[nodiscard]] virtual bool holds(const Seat& seat) const noexcept = 0;

    /// Every 10 ms, from one busy worker.
    virtual void tick() noexcept = 0;

    /// Whether it may become possible to go on without anyone's notify(): sleepers then look, and tick, as well.
    [[nodiscard]] virtual bool waits_for_others() noexcept = 0;

    /// Whether more threads than there are could find something to do.
    [[nodiscard]] virtual bool could_use_more() const noexcept = 0;

    int priority = 0; ///< Of several works, the highest is served first.
};

class Workers {
public:
    /// Bounds every per-seat array.
    static constexpr std::size_t max_seats = 1024;
    /// Of these, for workers; the others are for feeders, which have threads of their own.
    static constexpr std::size_t worker_seats = max_seats - 64;

    explicit Workers(PoolOptions options);
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;
    ~Workers();

    /// Takes the work in, and starts as many threads as `pieces` can use. Locks.
    void add(Work& work, std::size_t pieces);

    /// Returns when every seat has left the work. Locks, and waits for what is being carried.
    void remove(Work& work);

    /// Works on `work` from the calling thread, as one more worker, until `done()`; for a run inside a stage.
    /// Whoever makes `done()` true owes a notify_all().
    void join(Work& work, const std::function<bool()>& done);

    /// One thread more than the most may run, from the one call to the other. Locks where it starts a thread.
    void begin_blocking();
    void end_blocking() noexcept { count_.unblock(); }

    /// Whether the calling thread is one of these workers.
    [[nodiscard]] bool is_worker() const noexcept;
    /// Whether it is in the middle of a piece of this one.
    [[nodiscard]] bool is_inside(const Work& work) const;

    /// `pieces` more can be taken: wakes as many idle workers. Costs a fence and a load where none is idle.
    void notify(std::size_t pieces) noexcept { idle_.notify(static_cast<std::uint32_t>(pieces)); }
    void notify_all() noexcept { idle_.notify_all(); }

    [[nodiscard]] Governor& governor() noexcept { return governor_; }

    [[nodiscard]] std::size_t threads() const noexcept { return count_.threads(); }
    /// Workers asleep or about to be, a moment ago.
    [[nodiscard]] std::size_t idle() const noexcept { return idle_.workers().waiters(); }
    [[nodiscard]] std::size_t max_threads() const noexcept { return options_.max_threads; }
    [[nodiscard]] std::uint64_t futex_calls() const noexcept { return idle_.workers().futex_calls(); }

    /// Error(fork) in a child process of the one that made the pool.
    void check_process() const;

private:
    struct Desk; // a seat with its thread and the works it has joined

    /// The calling thread's: its own, and those it has joined another work at meanwhile. Locks.
    [[nodiscard]] std::vector<Desk*> own_desks() const;
    void spawn(std::size_t count); // under mutex_; fewer where the system has no more
    void work_at(Desk& desk);
    bool work_once(Desk& desk);
    void leave_removed(Desk& desk);
    void refresh(Desk& desk);
    void leave_all(Desk& desk);
    void tick_if_due(const Desk& desk);
    void tick(const Desk& desk);
    void look_at_quota(std::int64_t now) noexcept;
    /// Unless fewer than `least` threads would be left beside those that block, which may wait for what only others do,
    /// or the desk holds something.
    bool retire(Desk& desk, std::size_t least);
    [[nodiscard]] std::size_t most_now() const noexcept {
        return std::min(unthrottled_.load(std::memory_order_relaxed) + count_.blocked(), worker_seats);
    }

    PoolOptions options_;
    pid_t process_;
    Governor governor_;
    CpuQuota quota_;
    std::chrono::nanoseconds spin_time_;     // before sleeping
    TryLock<> looking_;                      // guards throttle_
    std::atomic<std::int64_t> next_look_{0}; // at the quota
    Throttle throttle_;
    std::atomic<std::size_t> unthrottled_; // threads that the quota makes worth having; relaxed: a hint
    IdleThreads<> idle_;                   // guests: threads that have joined
    Headcount<> count_;                    // threads are added and leave under mutex_
    std::atomic<bool> closing_{false};
    std::atomic<std::uint64_t> works_version_{
        0}; // raised under mutex_ whenever works_ changes; workers look at each round
    std::atomic<std::int64_t> next_tick_{0};
    mutable std::mutex mutex_;                 // start, stop and configuration only
    std::vector<Work*> works_;                 // by falling priority; guarded by mutex_
    std::vector<std::unique_ptr<Desk>> desks_; // guarded by mutex_; a desk never moves
    EventCount<> left_;                        // remove() waits here for desks to leave
};

} // namespace spillway::detail
