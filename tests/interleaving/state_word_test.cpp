// A candidate's state word under every interleaving: one winner for each claim, no candidate lost, none processed
// twice, and the payload visible to whoever owns it next.
#include "directory/state_word.hpp"
#include "interleaving/simulation.hpp"
#include "pool/drain.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <memory>

namespace spillway::interleaving {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

/// A queue with room for one hint from each of two producers; 0 is none, so hints are stored as version + 1.
class Hints {
public:
    /// `order` release and acquire: as a real queue. Relaxed: a queue that orders nothing but itself.
    explicit Hints(bool ordered)
        : release_(ordered ? std::memory_order_release : relaxed),
          acquire_(ordered ? std::memory_order_acquire : relaxed) {}

    void push(std::size_t producer, std::uint32_t version) { places_[producer].store(version + 1, release_); }

    std::optional<std::uint32_t> take(std::size_t producer) {
        if (places_[producer].load(relaxed) == 0) return std::nullopt;
        const std::uint32_t hint = places_[producer].exchange(0, acquire_);
        return hint == 0 ? std::nullopt : std::optional(hint - 1);
    }

    /// Reads without taking, so that several threads can come with one hint.
    std::optional<std::uint32_t> look(std::size_t producer) const {
        const std::uint32_t hint = places_[producer].load(acquire_);
        return hint == 0 ? std::nullopt : std::optional(hint - 1);
    }

private:
    std::memory_order release_, acquire_;
    std::array<SimulatedAtomics::atomic<std::uint32_t>, 2> places_;
};

struct Candidate {
    explicit Candidate(bool ordered_queue = true) : hints(ordered_queue) {}

    /// Filling -> Ready, with its hint, before the threads start.
    void make_ready() {
        word.fill(1);
        payload.write(7);
        hints.push(0, word.publish(0, Place::memory));
    }

    /// What a worker does with a hint. The payload must be there, in memory or, where the word says so, on disk.
    void try_process(std::uint32_t hint) {
        const std::optional<StateWord> claimed = word.try_claim(hint, 2);
        if (!claimed) return;
        if (claimed->place != Place::memory) {
            payload.write(claimed->place == Place::disk ? on_disk.read() : 7); // or made again
            word.loaded(2);
        }
        expect(payload.read() == 7, "the claimer does not see the payload");
        payload.write(0);
        processed.write(processed.read() + 1);
        word.park(Place::memory);
    }

    /// What a spiller does; `owes_hint` false is the broken form.
    void try_spill_ready(bool owes_hint = true) {
        const StateWord seen = word.peek();
        if (seen.state != State::ready || !word.try_spill(seen, 3)) return;
        expect(payload.read() == 7, "the spiller does not see the payload");
        on_disk.write(payload.read());
        payload.write(0);
        const std::uint32_t version = word.publish(0, Place::disk);
        if (owes_hint) hints.push(1, version);
    }

    /// What a spiller does with a payload that can be made again.
    void try_drop_ready() {
        const StateWord seen = word.peek();
        if (seen.state != State::ready || !word.try_spill(seen, 3)) return;
        payload.write(0);
        hints.push(1, word.publish(0, Place::recipe));
    }

    /// What a worker does that finds nothing else to do.
    void try_prefetch() {
        const StateWord seen = word.peek();
        if (seen.state != State::ready || !word.try_load(seen, 3)) return;
        expect(on_disk.read() == 7, "the one that reads ahead does not see what was written");
        payload.write(on_disk.read());
        on_disk.write(0);
        word.loaded(3);
        hints.push(1, word.publish(0, Place::memory));
    }

    void expect_not_lost() {
        int live = 0;
        for (std::size_t producer = 0; producer < 2; ++producer) {
            const std::optional<std::uint32_t> hint = hints.look(producer);
            if (hint == word.peek().version && word.peek().state == State::ready) ++live;
        }
        expect(processed.read() + live == 1, "a candidate is lost, doubled, or has more than one live hint");
    }

    StateCell<SimulatedAtomics> word;
    Hints hints;
    Plain<int> payload{0}, on_disk{0}, processed{0};
};

/// Both come with the same hint, through a queue that orders nothing: the word alone makes the payload visible.
void two_claimers(Simulation& simulation) {
    auto candidate = std::make_shared<Candidate>(false);
    simulation.thread([=] { candidate->make_ready(); });
    for (int worker = 0; worker < 2; ++worker) {
        simulation.thread([=] {
            if (const auto hint = candidate->hints.look(0)) candidate->try_process(*hint);
        });
    }
    simulation.finally([=] { expect(candidate->processed.read() <= 1, "two claims won"); });
}

TEST_CASE("of two claims with one hint one wins, and sees the payload through the word alone") {
    const Outcome outcome = explore({.preemptions = 4}, two_claimers);
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("the release and the acquire of the word are needed for the payload") {
    CHECK(verify_each_order_is_needed({.preemptions = 2}, two_claimers, {"store", "exchange"}) == "");
}

TEST_CASE("a hint that is stale is dropped, whatever became of its slot") {
    const Outcome outcome = explore({.preemptions = 4}, [](Simulation& simulation) {
        auto candidate = std::make_shared<Candidate>();
        candidate->make_ready();
        simulation.thread([=] { // takes it through its life, and a second candidate into the same slot
            const auto hint = candidate->hints.look(0);
            if (!candidate->word.try_claim(*hint, 2)) return;
            candidate->payload.write(0);
            candidate->word.release();
            candidate->word.fill(2);
            candidate->payload.write(8);
            candidate->hints.push(1, candidate->word.publish(0, Place::memory));
        });
        simulation.thread([=] {
            const auto hint = candidate->hints.look(0);
            if (candidate->word.try_claim(*hint, 3))
                expect(candidate->payload.read() == 7, "an old hint claimed a new candidate");
        });
    });
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

void claim_beside_spill(Simulation& simulation, bool ordered_queue, bool owes_hint) {
    auto candidate = std::make_shared<Candidate>(ordered_queue);
    candidate->make_ready();
    simulation.thread([=] { candidate->try_spill_ready(owes_hint); });
    simulation.thread([=] {
        for (std::size_t producer = 0; producer < 2; ++producer) {
            if (const auto hint = candidate->hints.take(producer)) candidate->try_process(*hint);
        }
    });
    simulation.finally([=] { candidate->expect_not_lost(); });
}

TEST_CASE("a claim beside a spill: the candidate is processed once, or waits on disk with one live hint") {
    const Outcome outcome =
        explore({.preemptions = 8}, [](Simulation& simulation) { claim_beside_spill(simulation, true, true); });
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("a claim beside a drop: the candidate is processed once, as it was or made again, or has one live hint") {
    const Outcome outcome = explore({.preemptions = 8}, [](Simulation& simulation) {
        auto candidate = std::make_shared<Candidate>();
        candidate->make_ready();
        simulation.thread([=] { candidate->try_drop_ready(); });
        simulation.thread([=] {
            for (std::size_t producer = 0; producer < 2; ++producer) {
                if (const auto hint = candidate->hints.take(producer)) candidate->try_process(*hint);
            }
        });
        simulation.finally([=] { candidate->expect_not_lost(); });
    });
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("a claim beside a read ahead: the candidate is processed once, or waits in memory with one live hint") {
    const Outcome outcome = explore({.preemptions = 8}, [](Simulation& simulation) {
        auto candidate = std::make_shared<Candidate>();
        simulation.thread([=] {
            candidate->word.fill(1);
            candidate->on_disk.write(7);
            candidate->hints.push(0, candidate->word.publish(0, Place::disk));
        });
        simulation.thread([=] { candidate->try_prefetch(); });
        simulation.thread([=] {
            for (std::size_t producer = 0; producer < 2; ++producer) {
                if (const auto hint = candidate->hints.take(producer)) candidate->try_process(*hint);
            }
        });
        simulation.finally([=] {
            if (candidate->word.peek().state != State::free) candidate->expect_not_lost();
        });
    });
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("a spiller that does not hand out a new hint loses the candidate") {
    const Outcome outcome = explore({}, [](Simulation& simulation) { claim_beside_spill(simulation, true, false); });
    CHECK_THAT(outcome.failure, Catch::StartsWith("a candidate is lost"));
}

TEST_CASE("a queue that orders nothing loses the candidate: its taker may see the word of before the publication") {
    const Outcome outcome = explore({}, [](Simulation& simulation) { claim_beside_spill(simulation, false, true); });
    CHECK_THAT(outcome.failure, Catch::StartsWith("a candidate is lost"));
}

TEST_CASE("two workers and a spiller process a candidate once in random runs") {
    const Outcome outcome = explore({.random_runs = 20'000, .seed = 5}, [](Simulation& simulation) {
        auto candidate = std::make_shared<Candidate>();
        candidate->make_ready();
        simulation.thread([=] { candidate->try_spill_ready(); });
        for (int worker = 0; worker < 2; ++worker) {
            simulation.thread([=] {
                for (std::size_t producer = 0; producer < 2; ++producer) {
                    if (const auto hint = candidate->hints.take(producer)) candidate->try_process(*hint);
                }
            });
        }
        simulation.finally([=] { candidate->expect_not_lost(); });
    });
    CHECK(outcome.failure == "");
}

/// The end of a life: whoever parks, or puts back what it has spilled, owes a drain.
struct Ordered : Candidate {
    Drain<SimulatedAtomics> drain;
    Plain<int> emitted{0};

    void drain_now() {
        const auto ended = [&] { return word.peek().state == State::parked || word.peek().state == State::failed; };
        drain.run(
            [&] {
                const StateWord seen = word.peek();
                if (seen.state == State::failed) {
                    expect(payload.read() == 9, "the drainer does not see what the owner left");
                } else if (seen.state != State::parked || !word.try_take(seen, 4)) {
                    return;
                } else {
                    expect((seen.place == Place::disk ? on_disk : payload).read() == 7,
                           "the drainer does not see the result");
                }
                emitted.write(emitted.read() + 1);
                word.release();
            },
            ended);
    }
};

void park_beside_spill(Simulation& simulation, bool owes_drain) {
    auto candidate = std::make_shared<Ordered>();
    simulation.thread([=] {
        candidate->word.fill(2);
        candidate->payload.write(7);
        candidate->word.carry(2);
        candidate->word.park(Place::memory);
        candidate->drain_now();
    });
    simulation.thread([=] {
        const StateWord seen = candidate->word.peek();
        if (!candidate->word.try_spill(seen, 3)) return;
        candidate->on_disk.write(candidate->payload.read());
        candidate->payload.write(0);
        candidate->word.park(Place::disk);
        if (owes_drain) candidate->drain_now();
    });
    simulation.finally([=] { expect(candidate->emitted.read() == 1, "a parked candidate was not emitted once"); });
}

TEST_CASE("a parked candidate is emitted once, whether or not it is spilled meanwhile") {
    const Outcome outcome =
        explore({.preemptions = 4}, [](Simulation& simulation) { park_beside_spill(simulation, true); });
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("a spiller of a parked candidate that does not drain afterwards leaves it behind") {
    const Outcome outcome = explore({}, [](Simulation& simulation) { park_beside_spill(simulation, false); });
    CHECK_THAT(outcome.failure, Catch::StartsWith("a parked candidate was not emitted once"));
}

TEST_CASE("a parked candidate on disk is emitted once, whether or not it is read ahead meanwhile") {
    for (const bool owes_drain : {true, false}) {
        const Outcome outcome = explore({.preemptions = 4}, [=](Simulation& simulation) {
            auto candidate = std::make_shared<Ordered>();
            simulation.thread([=] {
                candidate->word.fill(2);
                candidate->on_disk.write(7);
                candidate->word.park(Place::disk);
                candidate->drain_now();
            });
            simulation.thread([=] {
                const StateWord seen = candidate->word.peek();
                if (!candidate->word.try_load(seen, 3)) return;
                candidate->payload.write(candidate->on_disk.read());
                candidate->word.loaded(3);
                candidate->word.park(Place::memory);
                if (owes_drain) candidate->drain_now();
            });
            simulation.finally(
                [=] { expect(candidate->emitted.read() == 1, "a parked candidate was not emitted once"); });
        });
        CHECK(outcome.failure.empty() == owes_drain);
    }
}

void failed_candidate(Simulation& simulation) {
    auto candidate = std::make_shared<Ordered>();
    simulation.thread([=] {
        candidate->word.fill(2);
        candidate->payload.write(9);
        candidate->word.settle(State::failed);
        candidate->drain_now();
    });
    simulation.thread([=] { candidate->drain_now(); });
    simulation.finally(
        [=] { expect(candidate->emitted.read() == 1, "a failed candidate did not fill its place once"); });
}

TEST_CASE("a failed candidate fills its place once, and the drainer sees why through the word") {
    const Outcome outcome = explore({.preemptions = 4}, failed_candidate);
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
    CHECK(verify_each_order_is_needed({.preemptions = 2}, failed_candidate, {"peek", "store"}) == "");
}

} // namespace
} // namespace spillway::interleaving
