// EventCount under every interleaving: no wake-up is lost, and none of its orders can be left out.
#include "interleaving/simulation.hpp"
#include "pool/event_count.hpp"

#include <catch2/catch.hpp>

#include <memory>

namespace spillway::interleaving {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
using Idle = EventCount<SimulatedAtomics>;

/// The weakest queue there is: a count of items, with no order of its own to help the event count.
struct Shop {
    Idle idle;
    SimulatedAtomics::atomic<int> items{0};

    void post(int count) {
        items.fetch_add(count, relaxed);
        idle.notify(static_cast<std::uint32_t>(count));
    }

    bool take() {
        int seen = items.load(relaxed);
        while (seen > 0) {
            if (items.compare_exchange_strong(seen, seen - 1, relaxed, relaxed)) return true;
        }
        return false;
    }

    void wait_and_take() {
        while (!take()) {
            const Idle::Ticket ticket = idle.prepare_wait();
            if (take()) return idle.cancel_wait();
            idle.wait(ticket);
        }
    }
};

void one_poster_one_waiter(Simulation& simulation) {
    auto shop = std::make_shared<Shop>();
    simulation.thread([=] { shop->post(1); });
    simulation.thread([=] { shop->wait_and_take(); });
    simulation.finally([=] { expect(shop->idle.waiters() == 0, "a waiter is still counted"); });
}

TEST_CASE("no wake-up is lost between one poster and one waiter") {
    const Outcome outcome = explore({.preemptions = 8}, one_poster_one_waiter);
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("each fence and order between a poster and a waiter is needed") {
    CHECK(verify_each_order_is_needed({.preemptions = 4}, one_poster_one_waiter, {"prepare_wait", "notify"}) == "");
}

TEST_CASE("no wake-up is lost when one post of two items meets two waiters") {
    const Outcome outcome = explore({.preemptions = 2}, [](Simulation& simulation) {
        auto shop = std::make_shared<Shop>();
        simulation.thread([=] { shop->post(2); });
        simulation.thread([=] { shop->wait_and_take(); });
        simulation.thread([=] { shop->wait_and_take(); });
    });
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("no wake-up is lost between two posters and a waiter of both items") {
    const Outcome outcome = explore({.preemptions = 2}, [](Simulation& simulation) {
        auto shop = std::make_shared<Shop>();
        simulation.thread([=] { shop->post(1); });
        simulation.thread([=] { shop->post(1); });
        simulation.thread([=] {
            shop->wait_and_take();
            shop->wait_and_take();
        });
    });
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("no wake-up is lost in random runs of two posters and two waiters") {
    const Outcome outcome = explore({.random_runs = 20'000, .seed = 7}, [](Simulation& simulation) {
        auto shop = std::make_shared<Shop>();
        for (int poster = 0; poster < 2; ++poster) {
            simulation.thread([=] {
                shop->post(1);
                shop->post(2);
            });
        }
        for (int waiter = 0; waiter < 2; ++waiter) {
            simulation.thread([=] {
                for (int i = 0; i < 3; ++i) shop->wait_and_take();
            });
        }
        simulation.finally([=] { expect(shop->items.load(relaxed) == 0, "an item is left"); });
    });
    CHECK(outcome.failure == "");
}

TEST_CASE("a waiter of several posts that stops when told to is always told") {
    const Outcome outcome = explore({.preemptions = 2}, [](Simulation& simulation) {
        struct Stoppable : Shop {
            SimulatedAtomics::atomic<bool> stop{false};
        };
        auto shop = std::make_shared<Stoppable>();
        simulation.thread([=] {
            shop->stop.store(true, relaxed);
            shop->idle.notify_all();
        });
        for (int waiter = 0; waiter < 2; ++waiter) {
            simulation.thread([=] {
                while (!shop->stop.load(relaxed)) {
                    const Idle::Ticket ticket = shop->idle.prepare_wait();
                    if (shop->stop.load(relaxed)) return shop->idle.cancel_wait();
                    shop->idle.wait(ticket);
                }
            });
        }
    });
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

/// The waiter gives up and leaves for good: then either it took the item in its last look, or the poster was told that
/// nobody waits.
void waiter_that_leaves(Simulation& simulation) {
    struct Leaving : Shop {
        int found = 0;
        bool taken = false;
    };
    auto shop = std::make_shared<Leaving>();
    simulation.thread([=] {
        shop->items.fetch_add(1, relaxed);
        shop->found = static_cast<int>(shop->idle.notify(1));
    });
    simulation.thread([=] {
        const Idle::Ticket ticket = shop->idle.prepare_wait();
        if (shop->take()) {
            shop->idle.cancel_wait();
            shop->taken = true;
            return;
        }
        (void)shop->idle.wait_for(ticket, std::chrono::nanoseconds(1));
        shop->taken = shop->take();
    });
    simulation.finally(
        [=] { expect(shop->found == 0 || shop->taken, "a wake-up went to a waiter that left without a look"); });
}

TEST_CASE("a waiter whose time is up sees the item in its last look, or the poster sees that it has gone") {
    const Outcome outcome = explore({.preemptions = 8}, waiter_that_leaves);
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("the fence after a timed wait is needed for the last look") {
    CHECK(verify_each_order_is_needed({.preemptions = 4}, waiter_that_leaves, {"wait_for"}) == "");
}

/// A host waits for room that a drainer makes; a flag of the host's own says that it found none.
void full_house(Simulation& simulation, bool drainer_trusts_flag) {
    struct House {
        Idle room;
        SimulatedAtomics::atomic<int> guests{1};
        SimulatedAtomics::atomic<bool> turned_away{false};
    };
    auto house = std::make_shared<House>();
    simulation.thread([=] {
        const auto may_enter = [&] {
            if (house->guests.load(relaxed) == 0) return true;
            house->turned_away.store(true, relaxed);
            return false;
        };
        while (!may_enter()) {
            const Idle::Ticket ticket = house->room.prepare_wait();
            if (may_enter()) return house->room.cancel_wait();
            house->room.wait(ticket);
        }
    });
    simulation.thread([=] {
        house->guests.store(0, relaxed);
        if (!drainer_trusts_flag || house->turned_away.load(relaxed)) house->room.notify(1);
    });
}

TEST_CASE("a poster that always notifies leaves nobody waiting for room") {
    const Outcome outcome = explore({.preemptions = 4}, [](Simulation& simulation) { full_house(simulation, false); });
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("a poster that asks a flag beside the event count whether anybody waits loses a wake-up") {
    const Outcome outcome = explore({.preemptions = 4}, [](Simulation& simulation) { full_house(simulation, true); });
    CHECK_THAT(outcome.failure, Catch::StartsWith("deadlock"));
}

/// One waiter takes the item, then lets the other go, which cannot take it: on one event count, or on one each.
void two_kinds_of_waiter(Simulation& simulation, bool one_for_both) {
    struct Kinds : Shop {
        Idle other;
        SimulatedAtomics::atomic<bool> released{false};
    };
    auto kinds = std::make_shared<Kinds>();
    Idle& second = one_for_both ? kinds->idle : kinds->other;
    simulation.thread([=] { kinds->post(1); });
    simulation.thread([=, &second] {
        kinds->wait_and_take();
        kinds->released.store(true, relaxed);
        second.notify_all();
    });
    simulation.thread([=, &second] {
        while (!kinds->released.load(relaxed)) {
            const Idle::Ticket ticket = second.prepare_wait();
            if (kinds->released.load(relaxed)) return second.cancel_wait();
            second.wait(ticket);
        }
    });
}

TEST_CASE("waiters for different things on an event count each are all woken") {
    const Outcome outcome =
        explore({.preemptions = 2}, [](Simulation& simulation) { two_kinds_of_waiter(simulation, false); });
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("a wake-up is lost where a waiter that cannot take the item sleeps on the same event count") {
    const Outcome outcome =
        explore({.preemptions = 2}, [](Simulation& simulation) { two_kinds_of_waiter(simulation, true); });
    CHECK_THAT(outcome.failure, Catch::StartsWith("deadlock"));
}

// The protocol with one step wrong, to show that the tests above could fail.

TEST_CASE("a waiter without the second look sleeps through an item") {
    const Outcome outcome = explore({}, [](Simulation& simulation) {
        auto shop = std::make_shared<Shop>();
        simulation.thread([=] { shop->post(1); });
        simulation.thread([=] {
            while (!shop->take()) shop->idle.wait(shop->idle.prepare_wait());
        });
    });
    CHECK_THAT(outcome.failure, Catch::StartsWith("deadlock"));
}

TEST_CASE("a poster that reads the waiters before it publishes wakes nobody") {
    const Outcome outcome = explore({}, [](Simulation& simulation) {
        auto shop = std::make_shared<Shop>();
        simulation.thread([=] {
            shop->idle.notify(1);
            shop->items.fetch_add(1, relaxed);
        });
        simulation.thread([=] { shop->wait_and_take(); });
    });
    CHECK_THAT(outcome.failure, Catch::StartsWith("deadlock"));
}

TEST_CASE("a waiter that reads the epoch after its second look sleeps through an item") {
    const Outcome outcome = explore({}, [](Simulation& simulation) {
        auto shop = std::make_shared<Shop>();
        simulation.thread([=] { shop->post(1); });
        simulation.thread([=] {
            while (!shop->take()) {
                if (shop->take()) return;
                shop->idle.wait(shop->idle.prepare_wait());
            }
        });
    });
    CHECK_THAT(outcome.failure, Catch::StartsWith("deadlock"));
}

} // namespace
} // namespace spillway::interleaving
