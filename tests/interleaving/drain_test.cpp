// Drain under every interleaving: bodies never overlap, and no item is left when all publishers have gone.
#include "interleaving/simulation.hpp"
#include "pool/drain.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <memory>

namespace spillway::interleaving {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

struct Sink {
    Drain<SimulatedAtomics> drain;
    SimulatedAtomics::atomic<int> inbox{0};
    Plain<int> written{0}; // a race here is two bodies at once, or one that does not see what the last one wrote

    void write_all() {
        if (const int items = inbox.exchange(0, relaxed); items > 0) written.write(written.read() + items);
    }
    void publish() {
        inbox.fetch_add(1, relaxed);
        drain.run([&] { write_all(); }, [&] { return inbox.load(relaxed) > 0; });
    }
};

void publishers(Simulation& simulation, int count) {
    auto sink = std::make_shared<Sink>();
    for (int i = 0; i < count; ++i) simulation.thread([=] { sink->publish(); });
    simulation.finally([=] {
        expect(sink->inbox.load(relaxed) == 0, "an item was lost");
        expect(sink->written.read() == count, "not every item was written");
    });
}

void two_publishers(Simulation& simulation) {
    publishers(simulation, 2);
}

TEST_CASE("what two publishers bring is written, one body at a time") {
    const Outcome outcome = explore({.preemptions = 6}, two_publishers);
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("what three publishers bring is written, one body at a time") {
    const Outcome outcome = explore({.preemptions = 2}, [](Simulation& simulation) { publishers(simulation, 3); });
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("nothing is lost in random runs of three publishers with two items each") {
    const Outcome outcome = explore({.random_runs = 20'000, .seed = 11}, [](Simulation& simulation) {
        auto sink = std::make_shared<Sink>();
        for (int i = 0; i < 3; ++i) {
            simulation.thread([=] {
                sink->publish();
                sink->publish();
            });
        }
        simulation.finally([=] { expect(sink->written.read() == 6, "not every item was written"); });
    });
    CHECK(outcome.failure == "");
}

TEST_CASE("each fence and order of the drain is needed") {
    CHECK(verify_each_order_is_needed({.preemptions = 4}, two_publishers, {"run", "~Release"}) == "");
}

/// As the ordered sink uses it: what is published are the states of three candidates, and one flag asks for a walk over
/// them. `raise` asks; of two that ask before a walk, the walk must see what both published.
template <class Raise>
void requests(Simulation& simulation, Raise raise) {
    struct Order {
        Drain<SimulatedAtomics> drain;
        SimulatedAtomics::atomic<bool> wanted{false};
        std::array<SimulatedAtomics::atomic<bool>, 3> parked;
        Plain<std::size_t> passed{0};
    };
    auto order = std::make_shared<Order>();
    for (std::size_t candidate = 0; candidate < 3; ++candidate) {
        simulation.thread([=] {
            order->parked[candidate].store(true, std::memory_order_release);
            raise(order->wanted);
            order->drain.run(
                [&] {
                    order->wanted.exchange(false, std::memory_order_acquire);
                    std::size_t at = order->passed.read();
                    while (at < 3 && order->parked[at].load(std::memory_order_acquire)) ++at;
                    order->passed.write(at);
                },
                [&] { return order->wanted.load(relaxed); });
        });
    }
    simulation.finally([=] { expect(order->passed.read() == 3, "a parked candidate was not passed"); });
}

TEST_CASE("a walk that was asked for with an exchange sees what each of the askers published") {
    const auto raise = [](SimulatedAtomics::atomic<bool>& wanted) { wanted.exchange(true, std::memory_order_release); };
    const Outcome outcome = explore({.preemptions = 2}, [&](Simulation& simulation) { requests(simulation, raise); });
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
    const Outcome random =
        explore({.random_runs = 20'000, .seed = 17}, [&](Simulation& simulation) { requests(simulation, raise); });
    CHECK(random.failure == "");
}

TEST_CASE("a walk that was asked for with a store may miss what an earlier asker published") {
    // The later store ends the earlier one's release sequence: the walk synchronises with the later asker alone.
    const auto raise = [](SimulatedAtomics::atomic<bool>& wanted) { wanted.store(true, std::memory_order_release); };
    const Outcome outcome = explore({.preemptions = 3}, [&](Simulation& simulation) { requests(simulation, raise); });
    CHECK_THAT(outcome.failure, Catch::StartsWith("a parked candidate was not passed"));
}

TEST_CASE("a drainer without the second look leaves an item behind") {
    const Outcome outcome = explore({}, [](Simulation& simulation) {
        auto sink = std::make_shared<Sink>();
        for (int i = 0; i < 2; ++i) {
            simulation.thread([=] {
                sink->inbox.fetch_add(1, relaxed);
                sink->drain.run([&] { sink->write_all(); }, [] { return false; });
            });
        }
        simulation.finally([=] { expect(sink->inbox.load(relaxed) == 0, "an item was lost"); });
    });
    CHECK_THAT(outcome.failure, Catch::StartsWith("an item was lost"));
}

TEST_CASE("a drainer that looks again before it releases the flag leaves an item behind") {
    const Outcome outcome = explore({}, [](Simulation& simulation) {
        auto sink = std::make_shared<Sink>();
        for (int i = 0; i < 2; ++i) {
            simulation.thread([=] {
                sink->inbox.fetch_add(1, relaxed);
                const auto drain_until_empty = [&] {
                    do {
                        sink->write_all();
                    } while (sink->inbox.load(relaxed) > 0);
                };
                sink->drain.run(drain_until_empty, [] { return false; });
            });
        }
        simulation.finally([=] { expect(sink->inbox.load(relaxed) == 0, "an item was lost"); });
    });
    CHECK_THAT(outcome.failure, Catch::StartsWith("an item was lost"));
}

} // namespace
} // namespace spillway::interleaving
