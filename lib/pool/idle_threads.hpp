// Where idle threads sleep: workers, any of which takes any work, and guests, who have come for one work alone and must
// not use up a wake-up that is meant for a worker.
//
//     idle.notify(k);                                      // after publishing k pieces of work
//     ... idle.workers() ...                               // as event_count.hpp says
//     idle.guest_comes(); ... idle.guests() ...; idle.guest_goes();
//
// Guarantee: neither sleeps through what was published before a notify; without guests that costs one load more than
// the workers' event count. Mechanism: a guest counts itself, and fences when it prepares to wait; whoever notifies has
// fenced, for the workers, between publishing and the look at the guests' number.
#pragma once

#include "base/atomics.hpp"
#include "pool/event_count.hpp"

#include <cstdint>
#include <limits>

namespace spillway {

template <class Atomics = StandardAtomics>
class IdleThreads {
public:
    [[nodiscard]] EventCount<Atomics>& workers() noexcept { return workers_; }
    [[nodiscard]] const EventCount<Atomics>& workers() const noexcept { return workers_; }
    [[nodiscard]] EventCount<Atomics>& guests() noexcept { return guests_; }

    // Relaxed: ordered by the fences, see above.
    void guest_comes() noexcept { guest_count_.fetch_add(1, std::memory_order_relaxed); }
    void guest_goes() noexcept { guest_count_.fetch_sub(1, std::memory_order_relaxed); }

    void notify(std::uint32_t count) noexcept {
        workers_.notify(count); // first: its fence orders the look below
        if (guest_count_.load(std::memory_order_relaxed) > 0) guests_.notify_all();
    }
    void notify_all() noexcept { notify(std::numeric_limits<std::uint32_t>::max()); }

private:
    EventCount<Atomics> workers_;
    typename Atomics::template atomic<std::uint32_t> guest_count_{0};
    EventCount<Atomics> guests_;
};

} // namespace spillway
