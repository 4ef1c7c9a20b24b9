// What is handed over under every interleaving: each is taken once, with all that its giver wrote.
#include "base/hand_over.hpp"
#include "interleaving/simulation.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <memory>

namespace spillway::interleaving {
namespace {

struct Node {
    Plain<int> payload{0};
    Node* next = nullptr;
};

struct Given {
    std::array<Node, 3> nodes{};
    HandOver<Node, &Node::next, SimulatedAtomics> waiting;
    Plain<int> taken{0};

    void give(std::size_t node) {
        nodes[node].payload.write(7);
        waiting.give(nodes[node]);
    }
    void take() {
        for (Node* node = waiting.take_all(); node != nullptr;) {
            Node* const next = node->next;
            expect(node->payload.read() == 7, "the taker does not see the payload, or takes a node twice");
            node->payload.write(0);
            taken.write(taken.read() + 1);
            node = next;
        }
    }
};

void two_give_and_one_takes(Simulation& simulation) {
    auto given = std::make_shared<Given>();
    simulation.thread([=] {
        given->give(0);
        given->give(1);
    });
    simulation.thread([=] { given->give(2); });
    simulation.thread([=] {
        given->take();
        given->take();
    });
    simulation.finally([=] {
        given->take();
        expect(given->taken.read() == 3, "a node is lost");
    });
}

} // namespace

TEST_CASE("of what two hand over each is taken once, with what its giver wrote") {
    const Outcome outcome = explore({.preemptions = 3}, two_give_and_one_takes);
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("each order of handing over is needed") {
    CHECK(verify_each_order_is_needed({.preemptions = 3}, two_give_and_one_takes, {"give", "take_all"}) == "");
}

} // namespace spillway::interleaving
