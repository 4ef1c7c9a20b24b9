#include "pool/workers.hpp"

#include "spillway/error.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <system_error>

#include <time.h>
#include <unistd.h>

namespace spillway::detail {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto tick_period =
    std::chrono::milliseconds(10);                        // how soon pressure is seen, and a second doubling of threads
constexpr auto spin_time = std::chrono::microseconds(15); // about what a futex wake-up costs the waker and the woken
constexpr std::int64_t look_period = 1'000'000'000;       // ns: ten of the kernel's quota periods
constexpr auto retire_after = std::chrono::seconds(5);    // idle longer than any gap between regions

std::int64_t now_ns() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

PoolOptions with_threads(PoolOptions options) {
    if (options.max_threads == 0)
        options.max_threads = std::max<std::size_t>(allowed_threads(options.memory.system_root), options.min_threads);
    options.max_threads = std::clamp<std::size_t>(options.max_threads, 1, Workers::worker_seats / 2);
    options.min_threads = std::clamp<std::size_t>(options.min_threads, 1, options.max_threads);
    return options;
}

bool any_waits_for_others(std::span<Work* const> works) noexcept {
    return std::any_of(works.begin(), works.end(), [](Work* work) { return work->waits_for_others(); });
}

} // namespace

struct Workers::Desk {
    Seat seat;
    std::thread thread;
    std::thread::id worker; // whose desk it is now; guarded by Workers::mutex_
    bool taken = false;     // guarded by Workers::mutex_
    bool lent = false;      // a host's thread sits here: it does one work only
    std::uint64_t seen_version = 0;
    std::vector<Work*> works;     // touched by the desk's thread only, under Workers::mutex_
    const Work* inside = nullptr; // what the thread does a piece of just now

    bool run_some(Work& work) {
        inside = &work;
        const bool some = work.run_some(seat);
        inside = nullptr;
        return some;
    }
};

Workers::Workers(PoolOptions options)
    : options_(with_threads(std::move(options))), process_(::getpid()), governor_(options_.memory),
      quota_(CpuQuota::of_process(options_.memory.system_root)),
      spin_time_(quota_.cpus ? std::chrono::nanoseconds(0) : spin_time), // what spins uses up what others could work in
      throttle_(options_.max_threads), unthrottled_(options_.max_threads) {}

Workers::~Workers() {
    closing_.store(true, std::memory_order_release);
    idle_.workers().notify_all();
    for (const std::unique_ptr<Desk>& desk : desks_) {
        if (!desk->thread.joinable()) continue;
        if (::getpid() == process_) {
            desk->thread.join();
        } else {
            desk->thread.detach(); // after fork the thread does not exist here
        }
    }
}

void Workers::check_process() const {
    if (::getpid() != process_) {
        throw Error(ErrorCode::fork, "using a pool", "", "it was made before fork(); make one in the child process");
    }
}

void Workers::add(Work& work, std::size_t pieces) {
    const std::lock_guard lock(mutex_);
    const auto place =
        std::find_if(works_.begin(), works_.end(), [&](const Work* other) { return other->priority < work.priority; });
    works_.insert(place, &work);
    works_version_.fetch_add(1, std::memory_order_release);
    const std::size_t wanted = std::clamp(pieces, options_.min_threads, unthrottled_.load(std::memory_order_relaxed));
    if (threads() < wanted) spawn(wanted - threads());
    if (threads() == 0) {
        works_.erase(std::find(works_.begin(), works_.end(), &work));
        throw Error(ErrorCode::runtime, "starting workers", "", "the system refuses to create a single thread");
    }
    idle_.workers().notify_all();
}

void Workers::remove(Work& work) {
    {
        const std::lock_guard lock(mutex_);
        std::erase(works_, &work); // if it was ever added: starting it may have failed
        works_version_.fetch_add(1, std::memory_order_release);
    }
    idle_.notify_all();
    left_.notify_all();
    // Where a stage waits for another run of its own pool, its thread is not coming round: it leaves that and whatever
    // else has been removed here, for another that waits in the same way.
    const std::vector<Desk*> own = own_desks();
    const auto left = [&] {
        const std::lock_guard lock(mutex_);
        return std::none_of(desks_.begin(), desks_.end(), [&](const std::unique_ptr<Desk>& desk) {
            return std::find(desk->works.begin(), desk->works.end(), &work) != desk->works.end();
        });
    };
    for (;;) {
        const auto ticket = left_.prepare_wait();
        for (Desk* desk : own) leave_removed(*desk);
        if (left()) {
            left_.cancel_wait();
            return;
        }
        left_.wait(ticket);
    }
}

std::vector<Workers::Desk*> Workers::own_desks() const {
    const std::lock_guard lock(mutex_);
    std::vector<Desk*> own;
    for (const std::unique_ptr<Desk>& desk : desks_) {
        if (desk->taken && desk->worker == std::this_thread::get_id()) own.push_back(desk.get());
    }
    return own;
}

void Workers::spawn(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        auto free =
            std::find_if(desks_.begin(), desks_.end(), [](const std::unique_ptr<Desk>& desk) { return !desk->taken; });
        if (free == desks_.end()) {
            if (desks_.size() == worker_seats) return;
            desks_.push_back(std::make_unique<Desk>());
            free = std::prev(desks_.end());
            (*free)->seat.index = static_cast<std::uint16_t>(desks_.size() - 1);
        }
        Desk& desk = **free;
        if (desk.thread.joinable()) desk.thread.join(); // it has retired: it holds no lock and is on its way out
        desk.taken = true;
        desk.lent = false;
        desk.seen_version = 0;
        count_.add();
        try {
            desk.thread = std::thread([this, &desk] { work_at(desk); });
            desk.worker = desk.thread.get_id();
        } catch (const std::system_error&) {
            desk.taken = false; // fewer threads, not a failed run
            count_.remove();
            return;
        }
    }
}

void Workers::leave_removed(Desk& desk) {
    std::vector<Work*> gone;
    {
        const std::lock_guard lock(mutex_);
        std::copy_if(desk.works.begin(), desk.works.end(), std::back_inserter(gone), [&](const Work* work) {
            return work != desk.inside && std::find(works_.begin(), works_.end(), work) == works_.end();
        });
    }
    if (gone.empty()) return;
    for (Work* work : gone) work->leave(desk.seat); // still among desk.works, so that remove() waits for it
    {
        const std::lock_guard lock(mutex_);
        std::erase_if(desk.works, [&](Work* work) { return std::find(gone.begin(), gone.end(), work) != gone.end(); });
    }
    left_.notify_all();
}

void Workers::refresh(Desk& desk) {
    for (;;) {
        leave_removed(desk);
        const std::lock_guard lock(mutex_);
        const auto there = [&](const Work* work) {
            return std::find(works_.begin(), works_.end(), work) != works_.end();
        };
        if (!std::all_of(desk.works.begin(), desk.works.end(), there)) continue; // removed just now
        desk.works = works_;
        desk.seen_version = works_version_.load(std::memory_order_relaxed);
        return;
    }
}

void Workers::leave_all(Desk& desk) {
    for (Work* work : desk.works) work->leave(desk.seat);
    {
        const std::lock_guard lock(mutex_);
        desk.works.clear();
    }
    left_.notify_all();
}

bool Workers::work_once(Desk& desk) {
    if (works_version_.load(std::memory_order_acquire) != desk.seen_version) refresh(desk);
    for (std::size_t i = 0; i < desk.works.size(); ++i) { // what a stage waits for is taken out: see remove()
        if (desk.run_some(*desk.works[i])) {
            tick_if_due(desk);
            return true;
        }
    }
    return false;
}

void Workers::tick_if_due(const Desk& desk) {
    const std::int64_t now = now_ns();
    std::int64_t due = next_tick_.load(std::memory_order_relaxed);
    if (now < due) return;
    // Relaxed: the winner alone ticks, and what it reads there is atomic itself.
    if (!next_tick_.compare_exchange_strong(due, now + std::chrono::nanoseconds(tick_period).count(),
                                            std::memory_order_relaxed)) {
        return;
    }
    tick(desk);
}

void Workers::tick(const Desk& desk) {
    look_at_quota(now_ns());
    bool more = false;
    for (std::size_t i = 0; i < desk.works.size();
         ++i) { // whom it tells of its progress may wait for another: see remove()
        Work& work = *desk.works[i];
        work.tick();
        more = more || work.could_use_more();
    }
    if (!more || threads() >= most_now() || closing_) return;
    const std::lock_guard lock(mutex_);
    const std::size_t now_there = threads();
    spawn(std::min(now_there, most_now() - std::min(now_there, most_now())));
}

void Workers::look_at_quota(std::int64_t now) noexcept {
    if (!quota_.cpus || now < next_look_.load(std::memory_order_relaxed)) return;
    const std::unique_lock mine(looking_, std::try_to_lock);
    if (!mine) return;
    next_look_.store(now + look_period, std::memory_order_relaxed);
    timespec used{};
    const auto periods = quota_.periods();
    if (periods && ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0) {
        const auto cpu_time = std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
        const std::size_t worth = throttle_.look({*periods, cpu_time, std::chrono::nanoseconds(now)});
        unthrottled_.store(std::max(worth, options_.min_threads), std::memory_order_relaxed);
    }
}

void Workers::begin_blocking() {
    count_.block();
    if (threads() >= most_now()) return; // without the lock, which is for starting one
    const std::lock_guard lock(mutex_);
    if (threads() < most_now() && !closing_) spawn(1);
}

bool Workers::retire(Desk& desk, std::size_t least) {
    for (Work* work : desk.works) {
        if (work->holds(desk.seat)) return false;
    }
    const std::lock_guard lock(mutex_);
    return count_.leave(least);
}

void Workers::work_at(Desk& desk) {
    if (options_.on_thread_start) options_.on_thread_start();
    bool retired = false;
    while (!retired) {
        if (threads() > most_now() && retire(desk, unthrottled_.load(std::memory_order_relaxed))) {
            retired = true;            // whoever was blocked works again, or the quota is better shared by fewer
            idle_.workers().notify(1); // there may be work, and a wake-up for it that this thread has used up
            break;
        }
        if (work_once(desk)) continue;
        if (closing_.load(std::memory_order_acquire)) break;
        const auto spin_until = Clock::now() + spin_time_;
        bool found = false;
        while (!found && Clock::now() < spin_until) {
            for (int i = 0; i < 32; ++i) StandardAtomics::pause();
            found = work_once(desk);
        }
        if (found) continue;
        const auto ticket = idle_.workers().prepare_wait();
        // Before the look as well as after it: what kept us from the work may end between the two.
        bool watch = any_waits_for_others(desk.works);
        if (work_once(desk) || closing_.load(std::memory_order_acquire)) {
            idle_.workers().cancel_wait();
            continue;
        }
        watch = watch || any_waits_for_others(desk.works);
        if (watch) {
            static_cast<void>(idle_.workers().wait_for(ticket, std::chrono::nanoseconds(tick_period), desk.seat.index));
            tick_if_due(desk);
        } else if (!idle_.workers().wait_for(ticket, std::chrono::nanoseconds(retire_after), desk.seat.index)) {
            retired = !work_once(desk) &&
                      retire(desk, options_.min_threads); // the look that the event count asks of whoever leaves
        }
    }
    leave_all(desk);
    if (options_.on_thread_stop) options_.on_thread_stop();
    const std::lock_guard lock(mutex_);
    if (!retired) count_.remove();
    desk.worker = {};
    desk.taken = false;
}

void Workers::join(Work& work, const std::function<bool()>& done) {
    Desk* desk = nullptr;
    {
        const std::lock_guard lock(mutex_);
        auto free =
            std::find_if(desks_.begin(), desks_.end(), [](const std::unique_ptr<Desk>& d) { return !d->taken; });
        if (free == desks_.end()) {
            if (desks_.size() == worker_seats)
                throw Error(ErrorCode::runtime, "joining a pool", "", "it has no free seat");
            desks_.push_back(std::make_unique<Desk>());
            free = std::prev(desks_.end());
            (*free)->seat.index = static_cast<std::uint16_t>(desks_.size() - 1);
        }
        desk = free->get();
        desk->taken = true;
        desk->lent = true;
        desk->worker = std::this_thread::get_id();
        desk->works = {&work};
        desk->seen_version = works_version_.load(std::memory_order_relaxed);
    }
    // Its worker's own desk is not coming round meanwhile: it leaves what is removed here.
    std::optional<std::uint64_t> seen_version; // none: some may have been removed before we came
    const auto leave_what_ended = [&] {
        const std::uint64_t version = works_version_.load(std::memory_order_acquire);
        if (seen_version == version) return;
        seen_version = version;
        for (Desk* own : own_desks()) {
            if (own != desk) leave_removed(*own);
        }
    };
    // Apart from the workers' ticks, each of which is for all works.
    std::int64_t due = now_ns();
    const auto tick_own = [&] {
        const std::int64_t now = now_ns();
        if (now < due) return;
        due = now + std::chrono::nanoseconds(tick_period).count();
        tick(*desk);
    };
    idle_.guest_comes();
    while (!done()) {
        leave_what_ended();
        if (desk->run_some(work)) {
            tick_own();
            continue;
        }
        const auto ticket = idle_.guests().prepare_wait();
        leave_what_ended();
        bool watch = work.waits_for_others();
        if (done() || desk->run_some(work)) {
            idle_.guests().cancel_wait();
            continue;
        }
        watch = watch || work.waits_for_others();
        static_cast<void>(idle_.guests().wait_for(ticket, watch ? tick_period : retire_after));
        tick_own();
    }
    idle_.guest_goes();
    leave_all(*desk);
    const std::lock_guard lock(mutex_);
    desk->worker = {};
    desk->taken = false;
}

bool Workers::is_worker() const noexcept {
    const std::lock_guard lock(mutex_);
    return std::any_of(desks_.begin(), desks_.end(), [](const std::unique_ptr<Desk>& desk) {
        return desk->taken && desk->worker == std::this_thread::get_id();
    });
}

bool Workers::is_inside(const Work& work) const {
    const std::vector<Desk*> own = own_desks();
    return std::any_of(own.begin(), own.end(), [&](const Desk* desk) { return desk->inside == &work; });
}

} // namespace spillway::detail

namespace spillway {

Pool::Pool(PoolOptions options) : workers_(std::make_unique<detail::Workers>(std::move(options))) {}
Pool::Pool(Pool&&) noexcept = default;
Pool& Pool::operator=(Pool&&) noexcept = default;
Pool::~Pool() = default;
std::size_t Pool::threads() const noexcept {
    return workers_->threads();
}
std::size_t Pool::max_threads() const noexcept {
    return workers_->max_threads();
}
Governor& Pool::governor() noexcept {
    return workers_->governor();
}

} // namespace spillway
