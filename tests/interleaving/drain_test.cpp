// Drain under every interleaving: bodies never overlap, and no item is left when all publishers have gone.
#include "interleaving/simulation.hpp"
#include "pool/drain.hpp"

#include <catch2/catch.hpp>

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
