// How the members of a batch by key, one chunk of a family, are taken out of Parked once the last of them has come or
// ended: one thread takes the first that is left, and whoever claims that one takes the others.
//
//     if (chunk.missing.arrive())
//         if (auto first = take_first(chunk, nullptr, owner, slot_at, over)) ...publish it: one hint for the batch...
//     take_others(chunk, *claimed, owner, slot_at, over, [&](Slot& slot, const StateWord& was) { ...; return true; });
//
// `slot_at(index)` is the slot that an entry names. Members wait in Parked, where a spill may hold one for a while, or,
// when that fails and ends the run, for ever: `over()` says that nobody needs the batch any more. Those that ended
// without a result (Dropped, Failed) are passed over. A chunk stands as long as one of its entries has not been passed
// by the walker of the order.
#pragma once

#include "directory/state_word.hpp"

#include <optional>
#include <utility>

namespace spillway {

/// Only by whoever was told by the chunk's count that all have come. `ending`: a member that is about to end, and keeps
/// the chunk standing until then. None: no member is left, or all is over.
template <class Atomics = StandardAtomics, class Chunk, class Slot, class SlotAt, class Over>
[[nodiscard]] std::optional<std::pair<Slot*, StateWord>> take_first(Chunk& chunk, const Slot* ending,
                                                                    std::uint16_t owner, SlotAt slot_at, Over over) {
    for (auto& entry : chunk.entries) {
        // Relaxed, here and below: whoever made the entries has counted, and the count's last one sees them.
        const std::uint32_t index = entry.load(std::memory_order_relaxed);
        if (index == 0) continue; // passed by the walker, or never made
        Slot& slot = slot_at(index);
        if (&slot == ending) continue;
        for (;;) {
            const StateWord word = slot.word.peek();
            // One that had ended may have been passed, freed and taken for another since: what made it so came after
            // the walker had cleared the entry, so a look at the word that sees it (peek() acquires) is followed by one
            // that sees 0.
            if (entry.load(std::memory_order_relaxed) == 0 || word.state == State::dropped ||
                word.state == State::failed)
                break;
            if (word.state == State::parked && slot.word.try_take(word, owner)) return std::pair(&slot, word);
            if (over()) return std::nullopt;
            Atomics::pause(); // being written out; that ends
        }
    }
    return std::nullopt;
}

/// Only by the owner of `first`, which take_first() gave: it has not ended, so the chunk and all entries after its own
/// stand. `take` is given each other member with its word as it was, taken; false from it ends the search.
template <class Atomics = StandardAtomics, class Chunk, class Slot, class SlotAt, class Over, class Take>
void take_others(Chunk& chunk, const Slot& first, std::uint16_t owner, SlotAt slot_at, Over over, Take take) {
    bool behind = false; // the first one's entry
    for (auto& entry : chunk.entries) {
        const std::uint32_t index = entry.load(std::memory_order_relaxed);
        if (index == 0) continue;
        Slot& slot = slot_at(index);
        if (&slot == &first) {
            behind = true;
            continue;
        }
        if (!behind) continue;
        for (;;) {
            const StateWord word = slot.word.peek();
            if (word.state == State::dropped || word.state == State::failed) break;
            if (word.state == State::parked && slot.word.try_take(word, owner)) {
                if (!take(slot, word)) return;
                break;
            }
            if (over()) return;
            Atomics::pause(); // being written out; that ends
        }
    }
}

} // namespace spillway
