// One thread at a time, under every interleaving: each sees what the last one left, and none sleeps on.
#include "base/turn.hpp"
#include "interleaving/simulation.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <mutex>

namespace spillway::interleaving {
namespace {

struct Shared {
    Turn<SimulatedAtomics> turn;
    Plain<int> handle{0};

    void use() {
        const std::lock_guard mine(turn);
        handle.write(handle.read() + 1);
    }
};

void three_take_turns(Simulation& simulation) {
    auto shared = std::make_shared<Shared>();
    for (int user = 0; user < 3; ++user) simulation.thread([=] { shared->use(); });
    simulation.finally([=] { expect(shared->handle.read() == 3, "a turn's work is lost"); });
}

TEST_CASE("turns never overlap, each sees what the one before it left, and whoever waits is woken") {
    const Outcome outcome = explore({.preemptions = 3}, three_take_turns);
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("each order of a turn is needed") {
    CHECK(verify_each_order_is_needed({.preemptions = 3}, three_take_turns, {"lock", "unlock"}) == "");
}

} // namespace
} // namespace spillway::interleaving
