// A serial section without a mutex: whoever comes does the work of all, and nobody waits.
//
//     Publisher                           Drainer (the publisher that got the flag)
//     publish the item                    process all that is published
//     fence                               release the flag
//     try the flag; taken: go on          fence
//                                         look again; more: try the flag again
//
//     inbox.push(item);
//     drain.run([&] { while (auto next = inbox.pop()) write(*next); }, [&] { return !inbox.empty(); });
//
// Guarantee: bodies never overlap, each sees all that the one before it wrote, and an item that was published before
// run() was called is processed by this thread or by one that is now in run(). Mechanism: a publisher that finds the
// flag taken has fenced between its item and that look; the drainer fences between releasing the flag and looking
// again; one of them sees the other.
#pragma once

#include "base/atomics.hpp"

#include <atomic>

namespace spillway {

template <class Atomics = StandardAtomics>
class Drain {
public:
    /// Call after publishing. `drain_all()` processes everything that can be processed now; `has_more()` says whether
    /// anything that it could process is there, and is called without the flag: it only looks. Both may run on any
    /// publisher's thread. If `drain_all` throws, the flag is released and the exception passed on; what is left waits
    /// for the next run(). Never blocks. Cost when another thread drains: a fence, a load.
    template <class Body, class More>
    void run(Body drain_all, More has_more) {
        // Pairs with the fence below, of the thread that holds the flag. If ours comes first, its has_more() sees our
        // item; if its comes first, our look at the flag sees it released.
        Atomics::fence_seq_cst();
        do {
            // Relaxed: only spares the line a write while another drains; the fence has ordered it.
            if (busy_.load(std::memory_order_relaxed)) return;
            // Acquire: pairs with the store in Release, so that this body sees all that the last one wrote.
            if (busy_.exchange(true, std::memory_order_acquire)) return;
            {
                const Release release{busy_};
                drain_all();
            }
            // Pairs with the fence above, of a publisher that found the flag taken.
            Atomics::fence_seq_cst();
        } while (has_more());
    }

private:
    using Flag = typename Atomics::template atomic<bool>;

    struct Release {
        Flag& busy;
        // Release: pairs with the exchange of the next drainer.
        ~Release() { busy.store(false, std::memory_order_release); }
    };

    alignas(cache_line_pair) Flag busy_{false};
};

} // namespace spillway
