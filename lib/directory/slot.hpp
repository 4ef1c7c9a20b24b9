// A candidate's entry in the directory, and the families that hold candidates in the order of the output.
//
//     root family:  [slot 0][slot 1][slot 2] ...            one entry for each source item
//                       |
//                   family of slot 0: [child 0][child 1]    one entry for each child, in the order they were made
//
// The order is walked depth-first by one drainer at a time; entries lead to slots, slots to their children's family. An
// entry is written once, when its candidate is made, so the walk always finds the head of the order, whatever state
// that is in.
#pragma once

#include "base/countdown.hpp"
#include "base/spill_place.hpp"
#include "directory/entry_list.hpp"
#include "directory/pins.hpp"
#include "directory/state_word.hpp"
#include "spillway/candidate.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace spillway {
class Slab;
}

namespace spillway::detail {

struct Family;

/// So many to a chunk that a source of small candidates allocates seldom, so few that a region's handful of sites
/// wastes little. Where a stage batches by key, as many make a batch.
using FamilyEntries = EntryList<30>;

/// Type-stable: a slot never moves and is never freed while the directory lives, so a stale hint may always look at its
/// word. All but the atomics belong to the owner that the word names.
struct alignas(64) Slot {
    StateCell<> word;
    std::atomic<std::uint64_t> root{
        0}; ///< Ordinal of its source item. Relaxed: scans sample it, and believe it only after a claim.
    Payload payload;
    Family* family = nullptr;              ///< That it is a child of.
    Family* children = nullptr;            ///< That it is the parent of, while expanded or gathering.
    std::uint64_t ordinal = 0;             ///< Among its family.
    std::atomic<std::size_t> charged{0};   ///< Bytes that the governor counts for its payload. Relaxed: as root.
    SpillPlace place;                      ///< On disk, where the word says so.
    Slab* slab = nullptr;                  ///< What its payload was allocated from, where a stage asked for one.
    FamilyEntries::Chunk* chunk = nullptr; ///< Where its family holds it; good while the drain has not passed it.
    std::size_t heap = 0;                  ///< Of `charged`: what is not in a slab.
    std::size_t cells = 0;                 ///< That it counts for at the batched stage that it waits for.
    std::uint32_t index = 0;               ///< Its own place in the directory.
    bool in_slab = false;                  ///< Whether the payload on disk is to go to a slab again.
    bool arrived = false;                  ///< Whether it has counted in `chunk`.

    /// Brings it to this core, for writing.
    void prefetch() const noexcept {
        for (std::size_t line = 0; line < sizeof(Slot); line += 64)
            __builtin_prefetch(reinterpret_cast<const std::byte*>(this) + line, 1);
    }
};

/// The children of one parent, or the items of the source. Made by one producer at a time, walked by one drainer at a
/// time.
struct Family : Parent {
    static constexpr std::size_t no_stage = ~std::size_t{0};

    Slot* parent = nullptr;       ///< None for the source's.
    Key key;                      ///< Of the parent.
    std::uint64_t root = 0;       ///< Ordinal of the source item above; of no meaning for the source's own family.
    std::size_t stage = 0;        ///< The fan-out that makes it.
    std::size_t keyed = no_stage; ///< The stage on its children's way that batches by key.
    bool gathers = false;         ///< Whether the parent takes its own place again.

    FamilyEntries entries; ///< Slot index + 1.

    // Producer's.
    bool broken = false; ///< The producer threw: children are missing.
    std::uint64_t produced = 0;

    Countdown<> unfinished{1}; ///< Children not ended, and one for the producer. Gathers only.
    PinWord<> pins;            ///< On the parent's payload.
    std::size_t charged = 0;   ///< Bytes that the governor counts for the parent's payload.
    SpillPlace place;          ///< Of the parent's payload, where `pins` says so.
};

} // namespace spillway::detail
