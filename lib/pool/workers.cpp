#include "pool/workers.hpp"

#include "spillway/error.hpp"

#include <algorithm>
#include <iterator>
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

} // namespace

struct Workers::Desk {
    Seat seat;
    std::thread thread;
    std::thread::id worker; // whose desk it is now; guarded by Workers::mutex_
    bool taken = false;     // guarded by Workers::mutex_
    bool lent = false;      // a host's thread sits here: it does one work only
    std::uint64_t seen_version = 0;
    std::vector<Work*> works; // touched by the desk's thread only, under Workers::mutex_
};

Workers::Workers(PoolOptions options)
    : options_(with_threads(std::move(options))), process_(::getpid()), governor_(options_.memory),
      quota_(CpuQuota::of_process(options_.memory.system_root)),
      spin_time_(quota_.cpus ? std::chrono::nanoseconds(0) : spin_time), // what spins uses up what others could work in
      throttle_(options_.max_threads), unthrottled_(options_.max_threads) {}

Workers::~Workers() {
    closing_.store(true, std::memory_order_release);
    events_.notify_all();
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
    if (threads_ < wanted) spawn(wanted - threads_);
    if (threads_ == 0) {
        works_.erase(std::find(works_.begin(), works_.end(), &work));
        throw Error(ErrorCode::runtime, "starting workers", "", "the system refuses to create a single thread");
    }
    events_.notify_all();
}

void Workers::remove(Work& work) {
    {
        const std::lock_guard lock(mutex_);
        works_.erase(std::find(works_.begin(), works_.end(), &work));
        works_version_.fetch_add(1, std::memory_order_release);
    }
    events_.notify_all();
    const auto left = [&] {
        const std::lock_guard lock(mutex_);
        return std::none_of(desks_.begin(), desks_.end(), [&](const std::unique_ptr<Desk>& desk) {
            return std::find(desk->works.begin(), desk->works.end(), &work) != desk->works.end();
        });
    };
    while (!left()) {
        const auto ticket = left_.prepare_wait();
        if (left()) {
            left_.cancel_wait();
            break;
        }
        left_.wait(ticket);
    }
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
        threads_.fetch_add(1, std::memory_order_relaxed);
        try {
            desk.thread = std::thread([this, &desk] { work_at(desk); });
            desk.worker = desk.thread.get_id();
        } catch (const std::system_error&) {
            desk.taken = false; // fewer threads, not a failed run
            threads_.fetch_sub(1, std::memory_order_relaxed);
            return;
        }
    }
}

void Workers::refresh(Desk& desk) {
    for (;;) {
        std::vector<Work*> gone;
        {
            const std::lock_guard lock(mutex_);
            const auto removed = [&](Work* work) {
                return std::find(works_.begin(), works_.end(), work) == works_.end();
            };
            std::copy_if(desk.works.begin(), desk.works.end(), std::back_inserter(gone), removed);
            if (gone.empty()) {
                desk.works = works_;
                desk.seen_version = works_version_.load(std::memory_order_relaxed);
                return;
            }
        }
        for (Work* work : gone) work->leave(desk.seat); // still among desk.works, so that remove() waits for it
        {
            const std::lock_guard lock(mutex_);
            std::erase_if(desk.works,
                          [&](Work* work) { return std::find(gone.begin(), gone.end(), work) != gone.end(); });
        }
        left_.notify_all();
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
    for (Work* work : desk.works) {
        if (work->run_some(desk.seat)) {
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
    look_at_quota(now);
    bool more = false;
    for (Work* work : desk.works) {
        work->tick();
        more = more || work->could_use_more();
    }
    if (!more || threads_ >= most_now() || closing_) return;
    const std::lock_guard lock(mutex_);
    const std::size_t threads = threads_.load();
    spawn(std::min(threads, most_now() - std::min(threads, most_now())));
}

void Workers::look_at_quota(std::int64_t now) noexcept {
    if (!quota_.cpus || now < next_look_.load(std::memory_order_relaxed)) return;
    // Acquire: pairs with the release below, of whoever looked before.
    if (looking_.exchange(true, std::memory_order_acquire)) return;
    next_look_.store(now + look_period, std::memory_order_relaxed);
    timespec used{};
    const auto periods = quota_.periods();
    if (periods && ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0) {
        const auto cpu_time = std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
        const std::size_t worth = throttle_.look({*periods, cpu_time, std::chrono::nanoseconds(now)});
        unthrottled_.store(std::max(worth, options_.min_threads), std::memory_order_relaxed);
    }
    looking_.store(false, std::memory_order_release);
}

void Workers::begin_blocking() {
    blocked_.fetch_add(1, std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    if (threads_ < most_now() && !closing_) spawn(1);
}

bool Workers::retire(Desk& desk, std::size_t least) {
    for (Work* work : desk.works) {
        if (work->holds(desk.seat)) return false;
    }
    {
        const std::lock_guard lock(mutex_);
        if (threads_ <= least) return false;
        threads_.fetch_sub(1, std::memory_order_relaxed);
    }
    return true;
}

void Workers::work_at(Desk& desk) {
    if (options_.on_thread_start) options_.on_thread_start();
    bool retired = false;
    while (!retired) {
        if (threads_.load(std::memory_order_relaxed) > most_now() && retire(desk, most_now())) {
            retired = true;    // whoever was blocked works again, or the quota is better shared by fewer
            events_.notify(1); // there may be work, and a wake-up for it that this thread has used up
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
        const auto ticket = events_.prepare_wait();
        if (work_once(desk) || closing_.load(std::memory_order_acquire)) {
            events_.cancel_wait();
            continue;
        }
        const bool watch =
            std::any_of(desk.works.begin(), desk.works.end(), [](Work* work) { return work->waits_for_others(); });
        if (watch) {
            static_cast<void>(events_.wait_for(ticket, std::chrono::nanoseconds(tick_period), desk.seat.index));
            tick_if_due(desk);
        } else if (!events_.wait_for(ticket, std::chrono::nanoseconds(retire_after), desk.seat.index)) {
            retired = !work_once(desk) &&
                      retire(desk, options_.min_threads); // the look that the event count asks of whoever leaves
        }
    }
    leave_all(desk);
    if (options_.on_thread_stop) options_.on_thread_stop();
    const std::lock_guard lock(mutex_);
    if (!retired) threads_.fetch_sub(1, std::memory_order_relaxed);
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
    joined_.fetch_add(1, std::memory_order_relaxed);
    while (!done()) {
        if (work.run_some(desk->seat)) continue;
        const auto ticket = joined_events_.prepare_wait();
        if (done() || work.run_some(desk->seat)) {
            joined_events_.cancel_wait();
            continue;
        }
        joined_events_.wait(ticket);
    }
    joined_.fetch_sub(1, std::memory_order_relaxed);
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
