// A batch by key under every interleaving: once the last member has come or ended, one thread gets the first that is
// left, whoever claims that one gets all others, and nobody gets a stranger that has taken an ended member's slot since.
#include "directory/entry_list.hpp"
#include "directory/keyed_batch.hpp"
#include "interleaving/simulation.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <memory>

namespace spillway::interleaving {
namespace {

constexpr std::uint8_t stage = 3;

struct Member {
    StateCell<SimulatedAtomics> word;
    Plain<int> payload{0};
};

struct Batch {
    explicit Batch(std::uint32_t count) {
        for (std::uint32_t entry = 1; entry <= count; ++entry) {
            members[entry - 1].word.fill(1);
            members[entry - 1].word.carry(1);
            chunk = list.append(entry);
        }
    }

    [[nodiscard]] auto slot_at() {
        return [this](std::uint32_t entry) -> Member& { return members[entry - 1]; };
    }

    /// Comes to the stage; if it is the last, the batch begins, and is carried by the same thread.
    void arrive(std::uint32_t member) {
        members[member].payload.write(7);
        members[member].word.park(Place::memory, stage);
        if (chunk->missing.arrive()) begin(nullptr);
    }
    /// Ends before the stage. Its place in the order is passed, its slot freed and taken for another, which waits for a
    /// batch of its own.
    void end(std::uint32_t member, bool first_in_order) {
        if (chunk->missing.arrive()) begin(&members[member]);
        members[member].word.settle(State::dropped);
        if (!first_in_order) return;
        list.pass(at);
        members[member].word.release();
        members[member].word.fill(2);
        members[member].payload.write(99);
        members[member].word.park(Place::memory, stage);
    }
    void begin(const Member* ending) {
        const auto is_over = [this] { return over.load(std::memory_order_relaxed); };
        const auto first = take_first<SimulatedAtomics>(*chunk, ending, 5, slot_at(), is_over);
        if (!first) return;
        const std::uint32_t hint = first->first->word.publish(stage, first->second.place);
        const auto was = first->first->word.try_claim(hint, 6);
        expect(was.has_value(), "somebody else claimed what had one hint");
        if (!was) return;
        expect(begun.fetch_add(1, std::memory_order_relaxed) == 0, "a batch began twice");
        use(*first->first);
        const auto take = [&](Member& member, const StateWord&) {
            use(member);
            return true;
        };
        take_others<SimulatedAtomics>(*chunk, *first->first, 6, slot_at(), is_over, take);
    }
    void use(Member& member) {
        expect(member.payload.read() == 7, "a member's payload is not seen, or it is a stranger's");
        used.write(used.read() + 1);
    }
    /// Writes a parked member out, and parks it again; or fails, which ends the run.
    void spill(std::uint32_t member, bool fails = false) {
        const StateWord seen = members[member].word.peek();
        if (seen.state != State::parked || !members[member].word.try_spill(seen, 4)) return;
        if (fails) {
            over.store(true, std::memory_order_relaxed);
            return;
        }
        members[member].payload.write(members[member].payload.read());
        members[member].word.park(Place::disk, stage);
    }

    std::array<Member, 3> members{};
    EntryList<3, SimulatedAtomics> list;
    EntryList<3, SimulatedAtomics>::Cursor at = 0;
    EntryList<3, SimulatedAtomics>::Chunk* chunk = nullptr;
    SimulatedAtomics::atomic<int> begun{0};
    SimulatedAtomics::atomic<bool> over{false};
    Plain<int> used{0};
};

void two_come_beside_a_spill(Simulation& simulation) {
    auto batch = std::make_shared<Batch>(2U);
    static_cast<void>(batch->chunk->missing.arrive()); // the third will never be made
    simulation.thread([=] { batch->arrive(0); });
    simulation.thread([=] { batch->arrive(1); });
    simulation.thread([=] { batch->spill(0); });
    simulation.finally([=] { expect(batch->used.read() == 2, "a member was left behind"); });
}

template <std::uint32_t member>
void two_come_beside_a_spill_that_fails(Simulation& simulation) {
    auto batch = std::make_shared<Batch>(2U);
    static_cast<void>(batch->chunk->missing.arrive());
    simulation.thread([=] { batch->arrive(0); });
    simulation.thread([=] { batch->arrive(1); });
    simulation.thread([=] { batch->spill(member, true); });
}

void one_ends_and_is_replaced(Simulation& simulation) {
    auto batch = std::make_shared<Batch>(3U);
    simulation.thread([=] { batch->end(0, true); });
    simulation.thread([=] { batch->arrive(1); });
    simulation.thread([=] { batch->arrive(2); });
    simulation.finally([=] { expect(batch->used.read() == 2, "a member was left behind"); });
}

void all_end(Simulation& simulation) {
    auto batch = std::make_shared<Batch>(2U);
    static_cast<void>(batch->chunk->missing.arrive());
    simulation.thread([=] { batch->end(0, true); });
    simulation.thread([=] { batch->end(1, false); });
    simulation.finally([=] { expect(batch->used.read() == 0, "what had ended was used"); });
}

} // namespace

TEST_CASE("the last to come begins the batch, with all members, also while one is being written out") {
    const Outcome outcome = explore({.preemptions = 3}, two_come_beside_a_spill);
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("nobody waits for a member whose spill has failed and ended the run") {
    for (const auto& scenario : {two_come_beside_a_spill_that_fails<0>, two_come_beside_a_spill_that_fails<1>}) {
        const Outcome outcome = explore({.preemptions = 3}, scenario);
        CHECK(outcome.failure == "");
        CHECK(outcome.complete);
    }
}

TEST_CASE("a member that ends is passed over, and so is whoever has its slot next") {
    const Outcome outcome = explore({.preemptions = 3}, one_ends_and_is_replaced);
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
    const Outcome none = explore({.preemptions = 3}, all_end);
    CHECK(none.failure == "");
    CHECK(none.complete);
}

TEST_CASE("the look at a member's word must be ordered before the look at its entry") {
    CHECK(verify_each_order_is_needed({.preemptions = 3}, one_ends_and_is_replaced, {"peek"}) == "");
}

} // namespace spillway::interleaving
