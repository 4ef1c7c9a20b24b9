// Workers and guests that sleep, under every interleaving: each wakes the workers it is for, and no guest sleeps through.
#include "interleaving/simulation.hpp"
#include "pool/idle_threads.hpp"

#include <catch2/catch.hpp>

#include <memory>

namespace spillway::interleaving {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

/// One piece of work for any worker, whose end the guest waits for.
struct Pool {
    IdleThreads<SimulatedAtomics> idle;
    SimulatedAtomics::atomic<int> pieces{0};
    SimulatedAtomics::atomic<bool> done{false};

    template <class Notify>
    void work(Notify notify) {
        while (pieces.load(relaxed) == 0) {
            const auto ticket = idle.workers().prepare_wait();
            if (pieces.load(relaxed) > 0) {
                idle.workers().cancel_wait();
            } else {
                idle.workers().wait(ticket);
            }
        }
        done.store(true, relaxed);
        notify();
    }
    void wait_as_guest() {
        idle.guest_comes();
        while (!done.load(relaxed)) {
            const auto ticket = idle.guests().prepare_wait();
            if (done.load(relaxed)) {
                idle.guests().cancel_wait();
            } else {
                idle.guests().wait(ticket);
            }
        }
        idle.guest_goes();
    }
};

void a_worker_and_a_guest(Simulation& simulation) {
    auto pool = std::make_shared<Pool>();
    simulation.thread([=] {
        pool->pieces.store(1, relaxed);
        pool->idle.notify(1);
    });
    simulation.thread([=] { pool->work([=] { pool->idle.notify_all(); }); });
    simulation.thread([=] { pool->wait_as_guest(); });
}

} // namespace

TEST_CASE("a worker is woken for its work beside a sleeping guest, and the guest when that is done") {
    const Outcome outcome = explore({.preemptions = 2}, a_worker_and_a_guest);
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("the fences of whoever notifies and of those who prepare to wait are needed") {
    CHECK(verify_each_order_is_needed({.preemptions = 2}, a_worker_and_a_guest, {"notify", "prepare_wait"}) == "");
}

TEST_CASE("a guest sleeps on when whoever notifies looks for guests before the workers' fence") {
    const Outcome outcome = explore({.preemptions = 3}, [](Simulation& simulation) {
        struct Hasty : Pool {
            SimulatedAtomics::atomic<int> guests{0};
        };
        auto pool = std::make_shared<Hasty>();
        pool->pieces.store(1, relaxed);
        simulation.thread([=] {
            pool->work([=] {
                const bool any = pool->guests.load(relaxed) > 0;
                pool->idle.workers().notify_all();
                if (any) pool->idle.guests().notify_all();
            });
        });
        simulation.thread([=] {
            pool->guests.fetch_add(1, relaxed);
            pool->wait_as_guest();
        });
    });
    CHECK_THAT(outcome.failure, Catch::StartsWith("deadlock"));
}

} // namespace spillway::interleaving
