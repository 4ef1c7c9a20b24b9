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

#include "base/spill_place.hpp"
#include "directory/pins.hpp"
#include "directory/state_word.hpp"
#include "spillway/candidate.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace spillway {
class Slab;
}

namespace spillway::detail {

struct Family;
struct FamilyChunk;

/// Type-stable: a slot never moves and is never freed while the directory lives, so a stale hint may always look at its
/// word. All but the atomics belong to the owner that the word names.
struct alignas(64) Slot {
    StateCell<> word;
    std::atomic<std::uint64_t> root{
        0}; ///< Ordinal of its source item. Relaxed: scans sample it, and believe it only after a claim.
    Payload payload;
    Family* family = nullptr;            ///< That it is a child of.
    Family* children = nullptr;          ///< That it is the parent of, while expanded or gathering.
    std::uint64_t ordinal = 0;           ///< Among its family.
    std::atomic<std::size_t> charged{0}; ///< Bytes that the governor counts for its payload. Relaxed: as root.
    SpillPlace place;                    ///< On disk, where the word says so.
    Slab* slab = nullptr;                ///< What its payload was allocated from, where a stage asked for one.
    FamilyChunk* chunk = nullptr;        ///< Where its family holds it; good while the drain has not passed it.
    std::size_t heap = 0;                ///< Of `charged`: what is not in a slab.
    std::uint32_t index = 0;             ///< Its own place in the directory.
    bool in_slab = false;                ///< Whether the payload on disk is to go to a slab again.
    bool arrived = false;                ///< Whether it has counted in `chunk`.
};

/// Part of a family's entries. Where a stage batches by key, also the members of one batch.
struct FamilyChunk {
    /// So many that a source of small candidates allocates seldom, so few that a region's handful of sites wastes
    /// little.
    static constexpr std::size_t entries = 30;

    std::array<std::atomic<std::uint32_t>, entries> slots{}; ///< Slot index + 1; 0 is not made yet.
    std::atomic<FamilyChunk*> next{nullptr};
    /// Entries that have neither come to the stage that batches by key nor ended before it.
    std::atomic<std::uint32_t> missing{entries};

    /// True: these were the last. Acquire and release: whoever takes the last sees what every other has left.
    [[nodiscard]] bool arrive(std::size_t count = 1) noexcept {
        const auto some = static_cast<std::uint32_t>(count);
        return missing.fetch_sub(some, std::memory_order_acq_rel) == some;
    }
};

/// The children of one parent, or the items of the source. Made by one producer at a time, walked by one drainer at a
/// time.
struct Family : Parent {
    using Chunk = FamilyChunk;
    static constexpr std::size_t chunk_entries = Chunk::entries;
    static constexpr std::size_t no_stage = ~std::size_t{0};

    Family() : first(std::make_unique<Chunk>().release()), last(first) {}
    Family(const Family&) = delete;
    Family& operator=(const Family&) = delete;
    ~Family() {
        while (first != nullptr) pop_chunk();
    }

    /// Producer. Release on the entry and on the link: pair with the drainer's acquire of both.
    void append(Slot& slot) {
        if (last_used == chunk_entries) {
            Chunk* chunk = std::make_unique<Chunk>().release(); // the list owns it: pop_chunk()
            slot.chunk = chunk;
            chunk->slots[0].store(slot.index + 1, std::memory_order_release);
            last->next.store(chunk, std::memory_order_release);
            last = chunk;
            last_used = 1;
        } else {
            slot.chunk = last;
            last->slots[last_used++].store(slot.index + 1, std::memory_order_release);
        }
    }

    /// Drainer, or the gather. The chunk after the oldest becomes the oldest.
    void pop_chunk() noexcept {
        const std::unique_ptr<Chunk> walked(first);
        first = walked->next.load(std::memory_order_acquire);
    }

    Slot* parent = nullptr;       ///< None for the source's.
    Key key;                      ///< Of the parent.
    std::uint64_t root = 0;       ///< Ordinal of the source item above; of no meaning for the source's own family.
    std::size_t stage = 0;        ///< The fan-out that makes it.
    std::size_t keyed = no_stage; ///< The stage on its children's way that batches by key.
    bool gathers = false;         ///< Whether the parent takes its own place again.

    // Producer's.
    bool broken = false; ///< The producer threw: children are missing.
    Chunk* first;        ///< The oldest chunk not yet walked; the drainer's, or the gather's.
    Chunk* last;
    std::size_t last_used = 0;
    std::uint64_t produced = 0;

    std::atomic<bool> closed{false};          ///< Release after the last entry; the drainer's acquire.
    std::atomic<std::uint64_t> unfinished{1}; ///< Children not ended, and one for the producer. Gathers only.
    PinWord<> pins;                           ///< On the parent's payload.
    std::size_t charged = 0;                  ///< Bytes that the governor counts for the parent's payload.
    SpillPlace place;                         ///< Of the parent's payload, where `pins` says so.
};

} // namespace spillway::detail
