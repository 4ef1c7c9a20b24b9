// Puts idle threads to sleep without a mutex and never sleeps through work: an event count over one futex.
//
//     Poster of k                         Waiter
//     publish k items                     Ticket ticket = idle.prepare_wait();   // waiters++; fence; read epoch
//     idle.notify(k);                     if (there_is_work()) idle.cancel_wait();
//       // fence; read waiters;           else idle.wait(ticket);                // futex wait; waiters--
//       // if any: epoch++, wake k        look for work, from the start
//
// Guarantee: when a poster's notify() has returned, the item was seen by a waiter's second look, or a waiter was woken
// after it was published, or no thread was waiting. Mechanism: each side writes, fences, then reads what the other
// writes, so at least one of the two sees the other. A poster pays one fence and one load while nobody sleeps.
//
// Waking k threads is right only if any waiter can take any item: what waits for different things needs an event count
// each. Of several sleepers those at the lowest places are woken first: they were busy last, so their caches are warm,
// and the ones at high places sleep long enough to be sent home.
#pragma once

#include "base/atomics.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

namespace spillway {

template <class Atomics = StandardAtomics>
class EventCount {
public:
    /// What prepare_wait() saw; good for one wait() or wait_for().
    class Ticket {
        friend class EventCount;
        explicit Ticket(std::uint32_t epoch) : epoch_(epoch) {}
        std::uint32_t epoch_;
    };

    /// Announces that this thread is about to sleep. Look for work once more after it, then call exactly one of wait(),
    /// wait_for() and cancel_wait(), on the same thread.
    [[nodiscard]] Ticket prepare_wait() noexcept {
        // Relaxed: the fence orders it. Pairs with the load of waiters_ in notify().
        waiters_.fetch_add(1, std::memory_order_relaxed);
        // Pairs with the fence in notify(). If ours comes first, the poster's load sees the increment; if the poster's
        // comes first, the caller's second look sees what it published.
        Atomics::fence_seq_cst();
        // Acquire: pairs with the epoch_ increment in notify(). A ticket taken after a post cannot sleep through later
        // wakes of that post, so its second look must see what was posted.
        return Ticket(epoch_.load(std::memory_order_acquire));
    }

    /// Sleeps until a notify() since prepare_wait(); returns at once if there was one already. May return without one.
    void wait(Ticket ticket) noexcept {
        sleep(ticket, {});
        cancel_wait();
    }

    /// As wait(), for at most `timeout`, at `place` (see above). False: nobody had notified by the time it gave up. A
    /// thread that then leaves for good looks for work once more first: whoever still counted it as a waiter has
    /// published before that look.
    [[nodiscard]] bool wait_for(Ticket ticket, std::chrono::nanoseconds timeout, std::size_t place = 0) noexcept {
        sleep(ticket, timeout, place);
        cancel_wait();
        // Pairs with the fence in notify(), as in prepare_wait(), for the look that follows a timeout: either the
        // poster sees that this thread has gone, or this thread sees the item.
        Atomics::fence_seq_cst();
        return epoch_.load(std::memory_order_relaxed) != ticket.epoch_;
    }

    /// Ends what prepare_wait() began: there was work after all.
    void cancel_wait() noexcept {
        // Relaxed: a poster that still counts us wakes nobody in our place, and we look for work next.
        waiters_.fetch_sub(1, std::memory_order_relaxed);
    }

    /// Call after publishing `count` items: wakes as many sleepers, if there are any. Returns how many threads it found
    /// waiting, at most `count`. Cost where that is none: a fence and a load.
    std::uint32_t notify(std::uint32_t count = 1) noexcept {
        // Pairs with the fence in prepare_wait(): see there.
        Atomics::fence_seq_cst();
        // Relaxed: the fence orders it. Pairs with the increment in prepare_wait().
        const std::uint32_t found = std::min(count, waiters_.load(std::memory_order_relaxed));
        if (found == 0) return 0;
        // Relaxed: the fence above makes it a release, which pairs with the load of epoch_ in prepare_wait(). It also
        // fails the futex wait of whoever has an older ticket and is not asleep yet.
        epoch_.fetch_add(1, std::memory_order_relaxed);
        futex_calls_.fetch_add(Atomics::futex_wake(epoch_, found, lowest_asleep(found)), std::memory_order_relaxed);
        return found;
    }

    /// Wakes every sleeper: for stop, close and other news that concerns all of them.
    void notify_all() noexcept { notify(std::numeric_limits<std::uint32_t>::max()); }

    /// Threads between prepare_wait() and the end of their wait, a moment ago.
    [[nodiscard]] std::uint32_t waiters() const noexcept { return waiters_.load(std::memory_order_relaxed); }

    /// System calls made so far, sleeps and wakes together.
    [[nodiscard]] std::uint64_t futex_calls() const noexcept { return futex_calls_.load(std::memory_order_relaxed); }

private:
    static constexpr std::size_t places = 32; // bits of a futex wake; places beyond share them

    void sleep(Ticket ticket, std::optional<std::chrono::nanoseconds> timeout, std::size_t place = 0) noexcept {
        futex_calls_.fetch_add(1, std::memory_order_relaxed);
        const std::uint32_t bit = std::uint32_t{1} << (place % places);
        // Relaxed: only a preference hangs on it, which the wake falls back from.
        asleep_.fetch_or(bit, std::memory_order_relaxed);
        Atomics::futex_wait(epoch_, ticket.epoch_, timeout, bit);
        asleep_.fetch_and(~bit, std::memory_order_relaxed);
    }

    /// The bits of the lowest `count` places that seem to be asleep.
    [[nodiscard]] std::uint32_t lowest_asleep(std::uint32_t count) const noexcept {
        const std::uint32_t all = asleep_.load(std::memory_order_relaxed);
        if (count >= static_cast<std::uint32_t>(std::popcount(all))) return 0;
        std::uint32_t others = all;
        for (; count > 0; --count) others &= others - 1;
        return all & ~others;
    }

    // Read by every post, written only by threads about to sleep: it shares its line with nothing.
    alignas(cache_line_pair) typename Atomics::template atomic<std::uint32_t> waiters_{0};
    // The futex word, beside the counter that is written on the same occasions.
    alignas(cache_line_pair) typename Atomics::template atomic<std::uint32_t> epoch_{0};
    typename Atomics::template atomic<std::uint64_t> futex_calls_{0};
    std::atomic<std::uint32_t> asleep_{0}; // a bit for each place; no guarantee hangs on it, so it is not simulated
};

} // namespace spillway
