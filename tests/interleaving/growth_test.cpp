// A table that grows under every interleaving: as the directory's, whose slots are handed out by indices.
#include "directory/growth.hpp"
#include "interleaving/simulation.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <bit>
#include <memory>

namespace spillway::interleaving {
namespace {

struct Table {
    static constexpr std::uint32_t most = 4;

    explicit Table(std::uint32_t elements) : step(elements) {}

    const std::uint32_t step;
    Growth<SimulatedAtomics> growth;
    SimulatedAtomics::atomic<std::uint32_t> free{
        0}; ///< A bit for each element; as a queue, it orders what it hands on.
    std::array<Plain<int>, most> made{};
    std::array<Plain<int>, most> holders{};

    bool pop(std::uint32_t& index) {
        std::uint32_t seen = free.load(std::memory_order_relaxed);
        while (seen != 0) {
            index = static_cast<std::uint32_t>(std::countr_zero(seen));
            if (free.compare_exchange_weak(seen, seen & (seen - 1), std::memory_order_acquire,
                                           std::memory_order_relaxed))
                return true;
        }
        return false;
    }
    void take() {
        std::uint32_t index = 0;
        growth.take([&] { return pop(index); },
                    [this](std::uint32_t from) {
                        expect(from + step <= most, "the table grows although some are free");
                        for (std::uint32_t i = from; i < from + step; ++i) made[i].write(made[i].read() + 1);
                        return from + step;
                    },
                    [this](std::uint32_t from, std::uint32_t) {
                        free.fetch_or(((1U << step) - 1) << from, std::memory_order_release);
                    });
        expect(made[index].read() == 1, "an element is not made, or twice");
        expect(holders[index].read() == 0, "an element has two holders");
        holders[index].write(1);
    }
    void look_at_all() {
        const std::uint32_t size = growth.size();
        for (std::uint32_t i = 0; i < size; ++i) expect(made[i].read() == 1, "what may be looked at is not made");
    }
};

/// One step for each.
void two_take_beside_a_look(Simulation& simulation) {
    auto table = std::make_shared<Table>(1U);
    for (int taker = 0; taker < 2; ++taker) simulation.thread([=] { table->take(); });
    simulation.thread([=] { table->look_at_all(); });
    simulation.finally([=] { expect(table->growth.size() == 2, "it did not grow as often as nothing was free"); });
}

/// One step for both.
void two_take(Simulation& simulation) {
    auto table = std::make_shared<Table>(2U);
    for (int taker = 0; taker < 2; ++taker) simulation.thread([=] { table->take(); });
    simulation.finally([=] { expect(table->growth.size() == 2, "it grew again although some were free"); });
}

} // namespace

TEST_CASE("a table grows only when nothing is free, and whoever takes or looks sees what was made") {
    for (const auto& make : {two_take_beside_a_look, two_take}) {
        const Outcome outcome = explore({.preemptions = 2}, make);
        CHECK(outcome.failure == "");
        CHECK(outcome.complete);
    }
}

TEST_CASE("each order of growing a table is needed") {
    CHECK(verify_each_order_is_needed({.preemptions = 2}, two_take_beside_a_look,
                                      {"take", "size", "try_lock", "unlock"}) == "");
}

TEST_CASE("three take from a table that grows twice in random runs") {
    const Outcome outcome = explore({.random_runs = 20'000, .seed = 29}, [](Simulation& simulation) {
        auto table = std::make_shared<Table>(2U);
        for (int taker = 0; taker < 3; ++taker) simulation.thread([=] { table->take(); });
        simulation.thread([=] { table->look_at_all(); });
        simulation.finally([=] {
            expect(table->growth.size() == 4, "three need two steps of two, and no more");
            table->take(); // the fourth
        });
    });
    CHECK(outcome.failure == "");
}

TEST_CASE("a table that cannot grow says so, and grows another time") {
    const Outcome outcome = explore({.preemptions = 1}, [](Simulation& simulation) {
        auto table = std::make_shared<Table>(2U);
        simulation.finally([=] {
            bool refused = false;
            try {
                table->growth.take([] { return false; }, [](std::uint32_t) -> std::uint32_t { throw std::bad_alloc(); },
                                   [](std::uint32_t, std::uint32_t) {});
            } catch (const std::bad_alloc&) {
                refused = true;
            }
            expect(refused && table->growth.size() == 0, "it grew all the same");
            table->take();
        });
    });
    CHECK(outcome.failure == "");
}

} // namespace spillway::interleaving
