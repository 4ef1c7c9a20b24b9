// A family's entries and its countdown under every interleaving: the walker finds each entry, in order, with what was
// written before it, and knows the end; and of all that arrive one is the last, who sees everything.
#include "directory/entry_list.hpp"
#include "interleaving/simulation.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <memory>

namespace spillway::interleaving {
namespace {

constexpr std::size_t entries = 5; // in chunks of two: two links

struct Walked {
    EntryList<2, SimulatedAtomics> list;
    std::array<Plain<int>, entries + 1> payload{}; // of each entry
    std::uint32_t expected = 1;

    void produce() {
        for (std::uint32_t entry = 1; entry <= entries; ++entry) {
            payload[entry].write(static_cast<int>(entry));
            static_cast<void>(list.append(entry));
        }
        list.close();
    }

    /// As the drain does: as far as it gets. What is left is walked in the end.
    void walk(EntryList<2, SimulatedAtomics>::Cursor& at) {
        for (int look = 0; look < 7; ++look) {
            const bool ended = list.closed();
            const std::uint32_t entry = list.at(at);
            if (entry == 0) {
                if (ended) expect(expected == entries + 1, "the walker took the end for nearer than it is");
                continue;
            }
            expect(entry == expected, "an entry was passed over or came twice");
            expect(payload[entry].read() == static_cast<int>(entry),
                   "the walker does not see what an entry stands for");
            ++expected;
            list.pass(at);
        }
    }
};

void producer_and_walker(Simulation& simulation) {
    auto family = std::make_shared<Walked>();
    auto at = std::make_shared<EntryList<2, SimulatedAtomics>::Cursor>(0);
    simulation.thread([=] { family->produce(); });
    simulation.thread([=] { family->walk(*at); });
    simulation.finally([=] {
        family->walk(*at);
        expect(family->expected == entries + 1, "entries are missing");
    });
}

/// Two children end while the producer may still expect more: a gather.
struct Gathered {
    Countdown<SimulatedAtomics> left{1};
    std::array<Plain<int>, 3> results{};
    SimulatedAtomics::atomic<int> fired{0};

    void end(std::size_t child) {
        results[child].write(1);
        arrive();
    }
    void arrive() {
        if (!left.arrive()) return;
        for (const Plain<int>& result : results) expect(result.read() == 1, "the last one does not see every result");
        expect(fired.fetch_add(1, std::memory_order_relaxed) == 0, "a gather fired twice");
    }
};

void producer_and_two_children(Simulation& simulation) {
    auto gather = std::make_shared<Gathered>();
    gather->left.expect(2); // before they can end
    simulation.thread([=] {
        gather->left.expect(1); // a third, which the producer carries through itself
        gather->end(0);
        gather->arrive();
    });
    simulation.thread([=] { gather->end(1); });
    simulation.thread([=] { gather->end(2); });
    simulation.finally([=] { expect(gather->fired.load(std::memory_order_relaxed) == 1, "a gather never fired"); });
}

} // namespace

TEST_CASE("a walker beside the producer sees every entry once, in order, and the end last") {
    const Outcome outcome = explore({.preemptions = 3}, producer_and_walker);
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("each order of the entry list is needed") {
    CHECK(verify_each_order_is_needed({.preemptions = 2}, producer_and_walker, {"append", "close", "at", "pop"}) == "");
}

TEST_CASE("of a producer and its children the last alone is told, and sees all") {
    const Outcome outcome = explore({.preemptions = 3}, producer_and_two_children);
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
    CHECK(verify_each_order_is_needed({.preemptions = 3}, producer_and_two_children, {"arrive"}) == "");
}

} // namespace spillway::interleaving
