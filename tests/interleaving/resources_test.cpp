// Things that are lent, under every interleaving: each to one borrower at a time, who sees what the last one left.
#include "interleaving/simulation.hpp"
#include "spillway/resources.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <memory>

namespace spillway::interleaving {
namespace {

constexpr std::size_t things = 2;

struct Lent {
    resources<std::size_t, SimulatedAtomic> pool{things, [next = std::size_t{0}]() mutable { return next++; }};
    std::array<Plain<int>, things> used{};
    SimulatedAtomics::atomic<int> refused{0};

    void borrow() {
        detail::Local* const thing = pool.try_borrow();
        if (thing == nullptr) {
            refused.fetch_add(1, std::memory_order_relaxed);
            return;
        }
        Plain<int>& mine = used[static_cast<detail::LocalOf<std::size_t>*>(thing)->state];
        mine.write(mine.read() + 1);
        pool.give_back(thing);
    }
};

void three_borrow_two(Simulation& simulation) {
    auto lent = std::make_shared<Lent>();
    for (int borrower = 0; borrower < 3; ++borrower) simulation.thread([=] { lent->borrow(); });
    simulation.finally([=] {
        const int all = lent->used[0].read() + lent->used[1].read() + lent->refused.load(std::memory_order_relaxed);
        expect(all == 3, "a borrower's use is lost");
        expect(lent->pool.try_borrow() != nullptr && lent->pool.try_borrow() != nullptr, "a thing did not come back");
    });
}

TEST_CASE("a thing is lent to one at a time, who sees what the last one left, and all come back") {
    const Outcome outcome = explore({.preemptions = 3}, three_borrow_two);
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("each order of lending is needed") {
    CHECK(verify_each_order_is_needed({.preemptions = 3}, three_borrow_two, {"try_borrow", "give_back"}) == "");
}

} // namespace
} // namespace spillway::interleaving
