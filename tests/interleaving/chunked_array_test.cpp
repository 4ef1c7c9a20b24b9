// An array that grows under every interleaving: however many make a chunk at once there is one, and whoever looks at an
// element sees it initialised.
#include "base/chunked_array.hpp"
#include "interleaving/simulation.hpp"

#include <catch2/catch.hpp>

#include <memory>

namespace spillway::interleaving {
namespace {

struct Element {
    Plain<int> made{5};
    SimulatedAtomics::atomic<int> uses{0};
};

using Elements = ChunkedArray<Element, 2, 2, SimulatedAtomics>;

void two_make_a_chunk(Simulation& simulation) {
    auto elements = std::make_shared<Elements>();
    for (std::size_t index : {0U, 1U, 0U}) {
        simulation.thread([=] {
            elements->make(index);
            expect((*elements)[index].made.read() == 5, "an element is not initialised");
            (*elements)[index].uses.fetch_add(1, std::memory_order_relaxed);
        });
    }
    simulation.finally([=] {
        const int all =
            (*elements)[0].uses.load(std::memory_order_relaxed) + (*elements)[1].uses.load(std::memory_order_relaxed);
        expect(all == 3, "an element was used in a chunk that went");
    });
}

} // namespace

TEST_CASE("of several that make a chunk all use the same one, and see it initialised") {
    const Outcome outcome = explore({.preemptions = 3}, two_make_a_chunk);
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("each order of growing is needed") {
    CHECK(verify_each_order_is_needed({.preemptions = 3}, two_make_a_chunk, {"set", "get"}) == "");
}

} // namespace spillway::interleaving
