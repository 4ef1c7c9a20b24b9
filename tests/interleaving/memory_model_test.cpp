// The simulation itself: litmus tests whose allowed outcomes are known from the C++ standard and the literature.
#include "interleaving/simulation.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <set>
#include <string>
#include <utility>

namespace spillway::interleaving {
namespace {

using Atomic = SimulatedAtomics::atomic<int>;
constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;
using Outcomes = std::set<std::pair<int, int>>;

struct Litmus {
    Atomic x, y, z;
    Plain<int> payload;
    int first = -1, second = -1;
};

/// All pairs (first, second) that the two or three threads can end with.
template <class... Threads>
Outcomes outcomes(Threads... threads) {
    Outcomes seen;
    const Outcome outcome = explore({.preemptions = 8}, [&](Simulation& simulation) {
        auto litmus = std::make_shared<Litmus>();
        (simulation.thread([=] { threads(*litmus); }), ...);
        simulation.finally([litmus, &seen] { seen.insert({litmus->first, litmus->second}); });
    });
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
    return seen;
}

TEST_CASE("store buffering lets both threads miss the other's store, unless both fence") {
    const auto left = [](bool fence) {
        return [=](Litmus& litmus) {
            litmus.x.store(1, release);
            if (fence) SimulatedAtomics::fence_seq_cst();
            litmus.first = litmus.y.load(acquire);
        };
    };
    const auto right = [](bool fence) {
        return [=](Litmus& litmus) {
            litmus.y.store(1, release);
            if (fence) SimulatedAtomics::fence_seq_cst();
            litmus.second = litmus.x.load(acquire);
        };
    };
    CHECK(outcomes(left(true), right(true)) == Outcomes{{0, 1}, {1, 0}, {1, 1}});
    CHECK(outcomes(left(false), right(true)).contains({0, 0}));
    CHECK(outcomes(left(true), right(false)).contains({0, 0}));
}

TEST_CASE("a message arrives with its flag only through release and acquire") {
    const auto sender = [](std::memory_order order) {
        return [=](Litmus& litmus) {
            litmus.x.store(1, relaxed);
            litmus.y.store(1, order);
        };
    };
    const auto receiver = [](std::memory_order order) {
        return [=](Litmus& litmus) {
            litmus.first = litmus.y.load(order);
            litmus.second = litmus.x.load(relaxed);
        };
    };
    CHECK(outcomes(sender(release), receiver(acquire)) == Outcomes{{0, 0}, {0, 1}, {1, 1}});
    CHECK(outcomes(sender(relaxed), receiver(acquire)).contains({1, 0}));
    CHECK(outcomes(sender(release), receiver(relaxed)).contains({1, 0}));
}

TEST_CASE("fences around relaxed accesses pass a message too") {
    const auto sender = [](Litmus& litmus) {
        litmus.x.store(1, relaxed);
        SimulatedAtomics::fence_seq_cst();
        litmus.y.store(1, relaxed);
    };
    const auto receiver = [](Litmus& litmus) {
        litmus.first = litmus.y.load(relaxed);
        SimulatedAtomics::fence_seq_cst();
        litmus.second = litmus.x.load(relaxed);
    };
    CHECK(outcomes(sender, receiver) == Outcomes{{0, 0}, {0, 1}, {1, 1}});
}

TEST_CASE("two reads of one atomic never go back in time") {
    const auto writer = [](Litmus& litmus) {
        litmus.x.store(1, relaxed);
        litmus.x.store(2, relaxed);
    };
    const auto reader = [](Litmus& litmus) {
        litmus.first = litmus.x.load(relaxed);
        litmus.second = litmus.x.load(relaxed);
    };
    CHECK(outcomes(writer, reader) == Outcomes{{0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 2}});
}

TEST_CASE("a message is passed on by a second thread, which is causality") {
    const auto first = [](Litmus& litmus) { litmus.x.store(1, relaxed), litmus.y.store(1, release); };
    const auto second = [](Litmus& litmus) {
        if (litmus.y.load(acquire) == 1) litmus.z.store(1, release);
    };
    const auto third = [](Litmus& litmus) {
        litmus.first = litmus.z.load(acquire);
        litmus.second = litmus.x.load(relaxed);
    };
    CHECK(outcomes(first, second, third) == Outcomes{{0, 0}, {0, 1}, {1, 1}});
}

TEST_CASE("a read-modify-write continues the release sequence that it reads, a store breaks it") {
    const auto sender = [](Litmus& litmus) { litmus.x.store(1, relaxed), litmus.y.store(1, release); };
    const auto adder = [](Litmus& litmus) { litmus.y.fetch_add(1, relaxed); };
    const auto storer = [](Litmus& litmus) {
        if (litmus.y.load(relaxed) == 1) litmus.y.store(2, relaxed);
    };
    const auto receiver = [](Litmus& litmus) {
        litmus.first = litmus.y.load(acquire);
        litmus.second = litmus.x.load(relaxed);
    };
    CHECK_FALSE(outcomes(sender, adder, receiver).contains({2, 0}));
    CHECK(outcomes(sender, storer, receiver).contains({2, 0}));
}

TEST_CASE("of two exchanges on one expected value one succeeds") {
    const auto claim = [](int Litmus::*result) {
        return [=](Litmus& litmus) {
            int expected = 0;
            litmus.*result = litmus.x.compare_exchange_strong(expected, 1, acquire, relaxed) ? 1 : 0;
        };
    };
    CHECK(outcomes(claim(&Litmus::first), claim(&Litmus::second)) == Outcomes{{0, 1}, {1, 0}});
}

TEST_CASE("a plain variable accessed by two threads without order is reported as a race") {
    const auto race = [](std::memory_order order) {
        return explore({}, [=](Simulation& simulation) {
            auto litmus = std::make_shared<Litmus>();
            simulation.thread([=] { litmus->payload.write(7), litmus->x.store(1, order); });
            simulation.thread([=] {
                if (litmus->x.load(acquire) == 1) expect(litmus->payload.read() == 7, "the payload is wrong");
            });
        });
    };
    CHECK(race(release).failure == "");
    CHECK_THAT(race(relaxed).failure, Catch::StartsWith("race"));
}

TEST_CASE("a sleep that nobody ends is reported as a deadlock, with the trace") {
    const Outcome outcome = explore({}, [](Simulation& simulation) {
        auto word = std::make_shared<SimulatedAtomics::atomic<std::uint32_t>>(0);
        simulation.thread([=] { SimulatedAtomics::futex_wait(*word, 0); });
        simulation.thread([=] { SimulatedAtomics::futex_wake(*word, 1); }); // forgets to change the word
    });
    CHECK_THAT(outcome.failure, Catch::StartsWith("deadlock") && Catch::Contains("sleep of atomic 0"));
}

TEST_CASE("the same seed gives the same random runs") {
    const auto sample = [](std::uint64_t seed) {
        std::string results;
        explore({.random_runs = 50, .seed = seed}, [&](Simulation& simulation) {
            auto litmus = std::make_shared<Litmus>();
            simulation.thread([=] { litmus->x.store(1, relaxed), litmus->first = litmus->y.load(relaxed); });
            simulation.thread([=] { litmus->y.store(1, relaxed), litmus->second = litmus->x.load(relaxed); });
            simulation.finally([=, &results] { results += std::to_string(litmus->first * 2 + litmus->second); });
        });
        return results;
    };
    CHECK(sample(3) == sample(3));
    CHECK(sample(3) != sample(4));
}

} // namespace
} // namespace spillway::interleaving
