// Segments in use under every interleaving: a segment is given back once all its records are, and only then used again.
#include "interleaving/simulation.hpp"
#include "spill/segment_table.hpp"

#include <catch2/catch.hpp>

#include <memory>

namespace spillway::interleaving {
namespace {

/// A segment whose file is a variable: what is written there stays until the blocks are given back, or written again.
struct SimulatedSegment : Segment<SimulatedAtomics> {
    Plain<int> file{0};
    Plain<int> seats{0};
};

struct Store {
    using Table = SegmentTable<SimulatedAtomics, SimulatedSegment, 1, 2>;

    Table table;
    bool keeps_blocks = false;
    SimulatedAtomics::atomic<std::uint32_t> handed_on{Table::none}; ///< A record whose candidate another has now.
    SimulatedAtomics::atomic<int> given_back{0};

    std::uint32_t open_and_write() {
        const std::uint32_t index = table.open(1);
        expect(index != Table::none, "a segment is lost");
        SimulatedSegment& segment = table[index];
        expect(segment.seats.read() == 0, "a segment has two seats");
        segment.seats.write(1);
        expect(segment.file.read() == 0 || segment.allocated == 1, "what an earlier use left is in the way");
        segment.file.write(7);
        segment.allocated = 1;
        table.hold(index);
        return index;
    }
    void close(std::uint32_t index) {
        table[index].seats.write(0);
        drop(index);
    }
    void read_and_release(std::uint32_t index) {
        expect(index < table.size(), "a record's segment is not there");
        expect(table[index].file.read() == 7, "a record is gone");
        drop(index);
    }
    void drop(std::uint32_t index) {
        table.drop(index, [this](std::uint32_t drained) {
            given_back.fetch_add(1, std::memory_order_relaxed);
            if (keeps_blocks) return true;
            give_back(drained);
            return false;
        });
    }
    void give_back(std::uint32_t index) {
        SimulatedSegment& segment = table[index];
        expect(segment.seats.read() == 0, "a segment is given back under its seat");
        segment.file.write(0);
        segment.allocated = 0;
    }
    /// Whoever needs room elsewhere.
    void make_room() {
        const std::uint32_t index = table.take_kept();
        if (index == Table::none) return;
        expect(table[index].allocated == 1, "a segment without blocks is kept for them");
        give_back(index);
        table.give(index);
    }

    /// The seat's thread: two segments one after the other, a record each.
    void write_two() {
        const std::uint32_t first = open_and_write();
        handed_on.store(first, std::memory_order_release);
        close(first);
        const std::uint32_t second = open_and_write();
        read_and_release(second);
        close(second);
    }
    void take_over() {
        const std::uint32_t index = handed_on.exchange(Table::none, std::memory_order_acquire);
        if (index != Table::none) read_and_release(index);
    }
};

void a_seat_and_whoever_takes_over(Simulation& simulation) {
    auto store = std::make_shared<Store>();
    simulation.thread([=] { store->write_two(); });
    simulation.thread([=] { store->take_over(); });
    simulation.finally([=] {
        store->take_over();
        expect(store->given_back.load(std::memory_order_relaxed) == 2, "a segment was not given back, or twice");
    });
}

/// Both open one, and give it back.
void two_seats(Simulation& simulation) {
    auto store = std::make_shared<Store>();
    for (int seat = 0; seat < 2; ++seat) {
        simulation.thread([=] {
            const std::uint32_t index = store->open_and_write();
            store->close(index);
            store->read_and_release(index);
        });
    }
    simulation.finally([=] {
        expect(store->given_back.load(std::memory_order_relaxed) == 2, "a segment was not given back, or twice");
        expect(store->table.open(0) != Store::Table::none && store->table.open(0) != Store::Table::none &&
                   store->table.open(0) == Store::Table::none,
               "a segment is lost, or doubled");
    });
}

/// Drained segments keep their blocks, until one that needs room gives some back.
void a_seat_and_whoever_makes_room(Simulation& simulation) {
    auto store = std::make_shared<Store>();
    store->keeps_blocks = true;
    simulation.thread([=] { store->write_two(); });
    simulation.thread([=] {
        store->take_over();
        store->make_room();
    });
    simulation.finally([=] {
        store->take_over();
        expect(store->given_back.load(std::memory_order_relaxed) == 2, "a segment was not drained, or twice");
        store->make_room();
        store->make_room();
        expect(store->table.take_kept() == Store::Table::none, "a segment is kept twice");
        for (std::uint32_t index = 0; index < store->table.size(); ++index)
            expect(store->table[index].allocated == 0, "a segment that has blocks is not among those kept");
        expect(store->table.open(0) != Store::Table::none && store->table.open(0) != Store::Table::none &&
                   store->table.open(0) == Store::Table::none,
               "a segment is lost, or doubled");
    });
}

TEST_CASE("a segment is given back once nobody needs it, and then used again by one seat") {
    for (const auto& make : {a_seat_and_whoever_takes_over, two_seats, a_seat_and_whoever_makes_room}) {
        const Outcome outcome = explore({.preemptions = 2}, make);
        CHECK(outcome.failure == "");
        CHECK(outcome.complete);
    }
}

TEST_CASE("the orders of dropping a segment, and of its way back, are needed") {
    CHECK(verify_each_order_is_needed({.preemptions = 2}, a_seat_and_whoever_takes_over, {"arrive", "push"}) == "");
    CHECK(verify_each_order_is_needed({.preemptions = 2}, a_seat_and_whoever_makes_room, {"arrive", "push"}) == "");
}

TEST_CASE("three go round two segments in random runs") {
    const Outcome outcome = explore({.random_runs = 10'000, .seed = 31}, [](Simulation& simulation) {
        auto store = std::make_shared<Store>();
        simulation.thread([=] { store->write_two(); });
        for (int other = 0; other < 2; ++other) {
            simulation.thread([=] {
                store->take_over();
                store->take_over();
            });
        }
        simulation.finally([=] { store->take_over(); });
    });
    CHECK(outcome.failure == "");
}

} // namespace
} // namespace spillway::interleaving
