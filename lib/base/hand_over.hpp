// What many threads give and one takes, all at once.
//
//     struct Group { ...; Group* next = nullptr; };
//     HandOver<Group, &Group::next> groups;
//     groups.give(*new_group.release());                                          // any thread
//     for (Group* group = groups.take_all(); group != nullptr; ) { Group* next = group->next; ...; group = next; }
//
// Guarantee: each is taken once, by a thread that sees all that its giver wrote. The owner of the nodes is whoever took
// them.
#pragma once

#include "base/atomics.hpp"

namespace spillway {

template <class Node, Node* Node::*Next, class Atomics = StandardAtomics>
class HandOver {
public:
    /// Never waits; a look and an exchange, again where another was faster.
    void give(Node& node) noexcept {
        Node* before = head_.load(std::memory_order_relaxed);
        do {
            node.*Next = before;
            // Release: pairs with the acquire of take_all(). That takes all at once, so that a node which is met here
            // again, after it was taken and given anew, misleads nobody.
        } while (!head_.compare_exchange_weak(before, &node, std::memory_order_release, std::memory_order_relaxed));
    }

    /// The newest first; null: there is none.
    [[nodiscard]] Node* take_all() noexcept { return head_.exchange(nullptr, std::memory_order_acquire); }

private:
    alignas(cache_line_pair) typename Atomics::template atomic<Node*> head_{nullptr};
};

} // namespace spillway
