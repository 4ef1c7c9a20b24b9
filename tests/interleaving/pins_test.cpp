// A parent's pins under every interleaving: its payload is never moved under a child that holds a pin.
#include "directory/pins.hpp"
#include "interleaving/simulation.hpp"

#include <catch2/catch.hpp>

#include <memory>

namespace spillway::interleaving {
namespace {

struct SharedParent {
    PinWord<SimulatedAtomics> pins;
    Plain<int> payload{7}, on_disk{0};

    /// A child's turn at a stage. Busy: it would come back later.
    void use() {
        switch (pins.try_pin()) {
        case Pin::busy:
            return;
        case Pin::cold:
            payload.write(on_disk.read());
            pins.loaded();
            break;
        case Pin::held:
            break;
        }
        expect(payload.read() == 7, "the holder of a pin does not see the payload");
        pins.unpin();
    }

    void spill() {
        if (!pins.try_spill()) return;
        on_disk.write(payload.read());
        payload.write(0);
        pins.spilled(true);
    }
};

void two_children_and_a_spiller(Simulation& simulation) {
    auto parent = std::make_shared<SharedParent>();
    simulation.thread([=] { parent->use(); });
    simulation.thread([=] { parent->spill(); });
    simulation.thread([=] { parent->use(); });
}

TEST_CASE("a pinned parent stays in memory, and a cold one is loaded by one child alone") {
    const Outcome outcome = explore({.preemptions = 3}, two_children_and_a_spiller);
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("each order of the pins is needed") {
    // try_pin() acquires twice, and either would be enough: no single mutation there can fail.
    const std::vector<std::string> functions{"unpin", "try_spill", "spilled", "loaded"};
    CHECK(verify_each_order_is_needed({.preemptions = 3}, two_children_and_a_spiller, functions) == "");
}

TEST_CASE("a parent is spilled and loaded again and again in random runs, and never seen half moved") {
    const Outcome outcome = explore({.random_runs = 20'000, .seed = 13}, [](Simulation& simulation) {
        auto parent = std::make_shared<SharedParent>();
        for (int child = 0; child < 3; ++child) {
            simulation.thread([=] {
                parent->use();
                parent->use();
            });
        }
        simulation.thread([=] {
            parent->spill();
            parent->spill();
        });
    });
    CHECK(outcome.failure == "");
}

} // namespace
} // namespace spillway::interleaving
