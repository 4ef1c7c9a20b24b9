// What one thread at a time does, under every interleaving: each sees what the last one left, and whoever was refused
// and went to sleep is woken by the one that leaves.
#include "base/try_lock.hpp"
#include "interleaving/simulation.hpp"
#include "pool/event_count.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <mutex>

namespace spillway::interleaving {
namespace {

struct Shared {
    TryLock<SimulatedAtomics> lock;
    Plain<int> contents{0};
    SimulatedAtomics::atomic<int> refused{0};

    void use() { contents.write(contents.read() + 1); }
    void wait_and_use() {
        const std::lock_guard mine(lock);
        use();
    }
    void try_to_use() {
        const std::unique_lock mine(lock, std::try_to_lock);
        if (mine) {
            use();
        } else {
            refused.fetch_add(1, std::memory_order_relaxed);
        }
    }
};

/// As hosts push into a pipeline while another closes it, and workers pull.
void two_wait_and_two_do_not(Simulation& simulation) {
    auto shared = std::make_shared<Shared>();
    for (int user = 0; user < 2; ++user) {
        simulation.thread([=] { shared->wait_and_use(); });
        simulation.thread([=] { shared->try_to_use(); });
    }
    simulation.finally([=] {
        const int refused = shared->refused.load(std::memory_order_relaxed);
        expect(refused <= 2 && shared->contents.read() + refused == 4, "a use is lost");
        shared->try_to_use();
        expect(shared->refused.load(std::memory_order_relaxed) == refused, "the lock is held when all have left");
    });
}

/// A source that one worker at a time pulls from. Both workers want one piece of it.
struct Source {
    TryLock<SimulatedAtomics> pulling;
    EventCount<SimulatedAtomics> idle;
    Plain<int> made{0};
    bool wakes = true;

    bool pull() {
        {
            const std::unique_lock mine(pulling, std::try_to_lock);
            if (!mine) return false;
            made.write(made.read() + 1);
        }
        if (wakes) idle.notify(1);
        return true;
    }
    void pull_one() {
        while (!pull()) {
            const auto ticket = idle.prepare_wait();
            if (pull()) return idle.cancel_wait();
            idle.wait(ticket);
        }
    }
};

void two_pull(Simulation& simulation, bool wakes) {
    auto source = std::make_shared<Source>();
    source->wakes = wakes;
    for (int worker = 0; worker < 2; ++worker) simulation.thread([=] { source->pull_one(); });
    simulation.finally([=] { expect(source->made.read() == 2, "a pull is lost"); });
}

void two_pull_and_wake(Simulation& simulation) {
    two_pull(simulation, true);
}

} // namespace

TEST_CASE("one at a time has the lock, sees what the last one left, and all who wait get it") {
    const Outcome outcome = explore({.preemptions = 2}, two_wait_and_two_do_not);
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("each order of the lock is needed") {
    CHECK(verify_each_order_is_needed({.preemptions = 2}, two_wait_and_two_do_not, {"try_lock", "lock", "unlock"}) ==
          "");
}

TEST_CASE("whoever finds another at the source and goes to sleep is woken by the one that leaves it") {
    const Outcome outcome = explore({.preemptions = 4}, two_pull_and_wake);
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
    CHECK(verify_each_order_is_needed({.preemptions = 4}, two_pull_and_wake,
                                      {"try_lock", "unlock", "notify", "prepare_wait"}) == "");
}

TEST_CASE("a source that is left without a word keeps the one asleep who was refused") {
    const Outcome outcome = explore({}, [](Simulation& simulation) { two_pull(simulation, false); });
    CHECK_THAT(outcome.failure, Catch::StartsWith("deadlock"));
}

} // namespace spillway::interleaving
