// Threads that block and leave, under every interleaving: enough are left for what those that block may wait for.
#include "base/turn.hpp"
#include "interleaving/simulation.hpp"
#include "pool/headcount.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <mutex>

namespace spillway::interleaving {
namespace {

/// As the pool's: starting a thread and leaving it are done one at a time.
struct Threads {
    static constexpr std::size_t enough = 1;

    Headcount<SimulatedAtomics> count;
    Turn<SimulatedAtomics> changing;

    explicit Threads(int threads) {
        for (int i = 0; i < threads; ++i) count.add();
    }
    [[nodiscard]] bool too_few() const { return count.threads() < enough + count.blocked(); }
    void block() {
        count.block();
        if (!too_few()) return;
        const std::lock_guard mine(changing);
        if (too_few()) count.add();
    }
    void leave() {
        const std::lock_guard mine(changing);
        static_cast<void>(count.leave(enough));
    }
};

/// Neither comes back: whatever is blocked must have another thread beside it.
void block_and_leave(Simulation& simulation, int blocking, int leaving) {
    auto threads = std::make_shared<Threads>(blocking + leaving);
    for (int i = 0; i < blocking; ++i) simulation.thread([=] { threads->block(); });
    for (int i = 0; i < leaving; ++i) simulation.thread([=] { threads->leave(); });
    simulation.finally([=] {
        expect(!threads->too_few(), "nobody is left to do what the blocked one waits for");
        expect(threads->count.threads() <= static_cast<std::size_t>(blocking + 1), "more threads than are of use");
    });
}

void one_blocks_and_one_leaves(Simulation& simulation) {
    block_and_leave(simulation, 1, 1);
}

} // namespace

TEST_CASE("beside those that block enough threads are left, or started, and no more") {
    const Outcome one = explore({.preemptions = 4}, one_blocks_and_one_leaves);
    CHECK(one.failure == "");
    CHECK(one.complete);
    for (int blocking = 1; blocking <= 2; ++blocking) {
        const Outcome three = explore(
            {.preemptions = 2}, [=](Simulation& simulation) { block_and_leave(simulation, blocking, 3 - blocking); });
        CHECK(three.failure == "");
        CHECK(three.complete);
    }
}

TEST_CASE("both fences between a thread that blocks and one that leaves are needed") {
    CHECK(verify_each_order_is_needed({.preemptions = 4}, one_blocks_and_one_leaves, {"block", "leave"}) == "");
}

} // namespace spillway::interleaving
