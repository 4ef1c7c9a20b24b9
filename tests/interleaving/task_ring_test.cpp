// Tasks for another thread under every interleaving: each is done once, in order, and sees what its giver wrote; neither
// side sleeps through the other, nor ends with something left to do.
#include "interleaving/simulation.hpp"
#include "router/task_ring.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <memory>

namespace spillway::interleaving {
namespace {

/// A stream whose tasks are to double one of its numbers; 0 is no task.
struct Stream {
    TaskRing<std::size_t, 1, SimulatedAtomics> ring;
    std::array<Plain<int>, 3> numbers{};
    Plain<std::size_t> done{0};

    void give(std::size_t task) {
        numbers[task].write(7);
        ring.give(task);
    }
    void work() {
        ring.work([this](const std::size_t& task) {
            expect(task == done.read() + 1, "a task is not done in its turn");
            done.write(task);
            expect(numbers[task].read() == 7, "a task does not see what its giver wrote");
            numbers[task].write(14);
        });
    }
};

void give_and_wait(Simulation& simulation) {
    auto stream = std::make_shared<Stream>();
    simulation.thread([=] {
        stream->give(1);
        stream->ring.wait();
        expect(stream->ring.done(), "what was waited for is not done");
        expect(stream->numbers[1].read() == 14, "whoever has waited does not see what the task did");
        stream->ring.close();
    });
    simulation.thread([=] { stream->work(); });
}

/// The giver waits for room, but not for the end of what it gave last.
void give_two_and_close(Simulation& simulation) {
    auto stream = std::make_shared<Stream>();
    simulation.thread([=] {
        stream->give(1);
        stream->give(2);
        expect(stream->numbers[1].read() == 14, "a task is in the place of one that is not done");
        stream->ring.close();
    });
    simulation.thread([=] { stream->work(); });
    simulation.finally([=] { expect(stream->numbers[2].read() == 14, "a task was left when the ring closed"); });
}

} // namespace

TEST_CASE("tasks are done in their turn, all of them, and whoever waits for them sees what they did") {
    for (const auto& make : {give_and_wait, give_two_and_close}) {
        const Outcome outcome = explore({.preemptions = 2}, make);
        CHECK(outcome.failure == "");
        CHECK(outcome.complete);
    }
}

TEST_CASE("each order of the ring, and each fence of its event counts, is needed") {
    CHECK(verify_each_order_is_needed({.preemptions = 2}, give_two_and_close,
                                      {"give", "work", "notify", "prepare_wait"}) == "");
    CHECK(verify_each_order_is_needed({.preemptions = 2}, give_and_wait, {"done"}) == "");
}

} // namespace spillway::interleaving
