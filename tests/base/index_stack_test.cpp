// The free list under every interleaving: an index is had by one thread at a time, and brings what was written with it.
#include "base/index_stack.hpp"
#include "interleaving/simulation.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <memory>

namespace spillway::interleaving {
namespace {

/// Two entries, both free.
struct FreeList {
    IndexStack<SimulatedAtomics> stack;
    std::array<SimulatedAtomic<std::uint32_t>, 2> links{};
    std::array<Plain<int>, 2> entries{Plain<int>{0}, Plain<int>{0}};

    auto next() {
        return [this](std::uint32_t index) -> SimulatedAtomic<std::uint32_t>& { return links[index]; };
    }
    FreeList() {
        stack.push(0, next());
        stack.push(1, next());
    }
    std::uint32_t take() {
        const std::uint32_t index = stack.pop(next());
        if (index == IndexStack<>::none) return index;
        expect(entries[index].read() == 0, "an entry was taken twice");
        entries[index].write(1);
        return index;
    }
    void give(std::uint32_t index) {
        if (index == IndexStack<>::none) return;
        entries[index].write(0);
        stack.push(index, next());
    }
};

/// The ABA problem: one thread sleeps in its pop while the other takes both entries and gives one back.
void sleeper_and_churner(Simulation& simulation) {
    auto list = std::make_shared<FreeList>();
    simulation.thread([=] { static_cast<void>(list->take()); });
    simulation.thread([=] {
        const std::uint32_t first = list->take();
        static_cast<void>(list->take());
        list->give(first);
    });
}

void two_churners(Simulation& simulation) {
    auto list = std::make_shared<FreeList>();
    for (int thread = 0; thread < 2; ++thread) {
        simulation.thread([=] { list->give(list->take()); });
    }
}

/// One thread turns the stack over: whoever pops beside it must not follow a link of before.
void popper_and_turner(Simulation& simulation) {
    auto list = std::make_shared<FreeList>();
    simulation.thread([=] { list->give(list->take()); });
    simulation.thread([=] {
        const std::uint32_t first = list->take();
        const std::uint32_t second = list->take();
        list->give(first);
        list->give(second);
    });
    simulation.finally([=] {
        const bool both = list->take() != IndexStack<>::none && list->take() != IndexStack<>::none;
        expect(both && list->take() == IndexStack<>::none, "an entry was lost");
    });
}

TEST_CASE("a pop that slept through others' pops and pushes does not take an entry twice") {
    for (const auto& make : {sleeper_and_churner, two_churners, popper_and_turner}) {
        const Outcome outcome = explore({.preemptions = 3}, make);
        CHECK(outcome.failure == "");
        CHECK(outcome.complete);
    }
}

TEST_CASE("the orders of push and pop are needed") {
    CHECK(verify_each_order_is_needed({.preemptions = 3}, popper_and_turner, {"push", "pop"}) == "");
}

TEST_CASE("entries come back in random runs of three threads, none lost and none twice") {
    const Outcome outcome = explore({.random_runs = 20'000, .seed = 3}, [](Simulation& simulation) {
        auto list = std::make_shared<FreeList>();
        for (int thread = 0; thread < 3; ++thread) {
            simulation.thread([=] {
                list->give(list->take());
                list->give(list->take());
            });
        }
        simulation.finally([=] {
            const bool both = list->take() != IndexStack<>::none && list->take() != IndexStack<>::none;
            expect(both && list->take() == IndexStack<>::none, "an entry was lost");
        });
    });
    CHECK(outcome.failure == "");
}

} // namespace
} // namespace spillway::interleaving
