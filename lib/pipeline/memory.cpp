// What candidates cost in memory, and how they go to disk and come back.
#include "pipeline/core.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace spillway::detail {
namespace {

using Clock = std::chrono::steady_clock;

/// A payload below this is not worth a record of its own.
constexpr std::size_t worth_writing = 512;

/// Of a sample, at most so many are written at once.
constexpr std::size_t most_victims = 4;

} // namespace

void Core::tell(SeatState& seat, std::int64_t bytes) {
    seat.uncharged += bytes;
    if (seat.uncharged > told_bytes_) {
        governor_.charge(static_cast<std::uint64_t>(std::exchange(seat.uncharged, 0)));
    } else if (seat.uncharged < -told_bytes_) {
        governor_.release(static_cast<std::uint64_t>(-std::exchange(seat.uncharged, 0)));
    }
}

void Core::charge_payload(SeatState& seat, Slot& slot) {
    const PayloadType& type = *slot.payload.type();
    const std::size_t slab = slot.slab != nullptr ? slot.slab->bytes() : 0;
    const std::size_t holds =
        !type.plain && slot.payload.object() != nullptr ? type.footprint(slot.payload.object()) : 0;
    const std::size_t heap = holds - std::min(holds, slab); // what a payload holds lies in its slab first
    const std::size_t bytes = heap + slab;
    if (bytes != slot.charged.load(std::memory_order_relaxed)) slot.charged.store(bytes, std::memory_order_relaxed);
    if (heap == slot.heap) return;
    tell(seat, static_cast<std::int64_t>(heap) - static_cast<std::int64_t>(slot.heap)); // regions tell of slabs
    slot.heap = heap;
}

void Core::discharge_payload(SeatState& seat, Slot& slot) {
    slot.charged.store(0, std::memory_order_relaxed);
    tell(seat, -static_cast<std::int64_t>(std::exchange(slot.heap, 0)));
}

std::pmr::memory_resource& Core::memory(const Item& item) {
    auto& slot = *static_cast<Slot*>(item.slot);
    if (slot.slab == nullptr) {
        SeatState& seat = *seats_[slot.word.peek().owner];
        if (seat.slabs.empty()) seat.slabs.push_back(std::make_unique<Slab>(regions_, seat.index));
        slot.slab = seat.slabs.back().release();
        seat.slabs.pop_back();
    }
    return *slot.slab;
}

void Core::recycle_slab(SeatState& seat, Slot& slot) {
    std::unique_ptr<Slab> slab(std::exchange(slot.slab, nullptr));
    slab->release();
    if (seat.slabs.size() < most_carried) seat.slabs.push_back(std::move(slab));
}

/// Near the head, a candidate is needed so soon that writing it would only cost. Where one source item is many
/// candidates, the head's and the next one's keep all workers busy.
bool Core::far_behind_head(std::uint64_t root) const noexcept {
    const bool many = plan_.stages.front()->kind == Kind::fan_out;
    return root > opened_.passed() + (many ? 1 : 2 * workers_.threads());
}

/// Where the payload of a candidate that comes to wait for `stage` goes: out of memory if that is short and the
/// candidate is needed late. The caller owns the slot, has charged it, and says by its next step where the payload is.
Place Core::make_way(SeatState& seat, Slot& slot, std::size_t stage) {
    const bool stays = slot.charged.load(std::memory_order_relaxed) == 0 || governor_.verdict() == Verdict::run ||
                       !far_behind_head(slot.root.load(std::memory_order_relaxed));
    return stays ? Place::memory : put_away(seat, slot, stage);
}

/// The stage that made the payload with which a candidate waits for `stage`, if it can make it again; else no_stage.
std::size_t Core::maker(const Slot& slot, std::size_t stage) const noexcept {
    if (stage == StateCell<>::last_stage) stage = slot.family->gathers ? points_[slot.family->stage].gather : sink_;
    return stage > 0 && plan_.stages[stage - 1]->rebuild ? stage - 1 : Family::no_stage;
}

/// Out of memory, whichever way is cheaper. Place::memory: there is none.
Place Core::put_away(SeatState& seat, Slot& slot, std::size_t stage) {
    const std::size_t bytes = slot.charged.load(std::memory_order_relaxed);
    if (bytes < worth_writing) return Place::memory;
    const std::size_t made_by = maker(slot, stage);
    SpillChoice* const choice = made_by != Family::no_stage ? points_[made_by].choice.get() : nullptr;
    if (choice != nullptr && store_ != nullptr && choice->wants_trial()) try_rebuild(seat, slot, made_by);
    const bool drop = choice != nullptr && choice->drops(bytes);
    if (!drop) {
        const auto start = Clock::now();
        if (write_out(seat, slot)) {
            if (choice != nullptr) {
                choice->written(bytes, Clock::now() - start);
                choice->put_away(bytes);
            }
            return Place::disk;
        }
    }
    // There is no disk, or it is full or fails. Sources are held back instead: what is dearly made again is dropped only
    // where that was not enough (of a caller's candidates, dropped as soon as memory is short, a third as much work more).
    if (!drop && (choice == nullptr || governor_.verdict() != Verdict::hold)) return Place::memory;
    choice->put_away(bytes);
    leave_recipe(made_by, slot.payload, slot.payload);
    release_slab(seat, slot);
    discharge(seat, slot);
    return Place::recipe;
}

/// Of a payload that `stage` made, what it makes it again from. Nothing else of it is left, if both are the same.
void Core::leave_recipe(std::size_t stage, const Payload& made, Payload& left) const noexcept {
    const Stage& what = *plan_.stages[stage];
    if (what.recipe) {
        what.recipe(made, left);
    } else {
        left.reset();
    }
}

/// To disk, if there is one and it takes it.
bool Core::write_out(SeatState& seat, Slot& slot) {
    if (store_ == nullptr) return false;
    seat.buffer.clear();
    Writer writer(seat.buffer);
    slot.payload.type()->encode(writer, slot.payload.object());
    const SpillResult written =
        store_->write(seat.index, key(Item{nullptr, Outcome::kept, &slot}).ordinals, seat.buffer);
    if (!written) return false;
    slot.place = written.place;
    slot.in_slab = slot.slab != nullptr;
    slot.payload.reset();
    release_slab(seat, slot);
    discharge(seat, slot);
    governor_.note_spilled(seat.buffer.size());
    on_disk_.fetch_add(1, std::memory_order_relaxed);
    return true;
}

/// Makes a payload that is still there again, to see what it costs: the least of a few, so that neither cold caches nor
/// another process count.
void Core::try_rebuild(SeatState& seat, Slot& slot, std::size_t stage) {
    constexpr int trials = 3;
    if (!pin(seat, slot.family)) return; // then all are written, until one is made again for want of disk
    auto least = std::chrono::nanoseconds::max();
    try {
        for (int i = 0; i < trials; ++i) {
            Payload payload;
            Item item{&payload, Outcome::kept, &slot};
            leave_recipe(stage, slot.payload, payload);
            const auto start = Clock::now();
            plan_.stages[stage]->rebuild(item, *this);
            least = std::min<std::chrono::nanoseconds>(least, Clock::now() - start);
        }
        points_[stage].choice->rebuilt(slot.charged.load(std::memory_order_relaxed), least);
    } catch (...) { // NOLINT(bugprone-empty-catch): the candidate is whole, and is written
    }
    unpin(seat, slot.family);
}

/// Into memory from where `was` says. The caller owns the slot, and its parents are pinned. False: the run has failed,
/// or else the candidate has, and the caller settles it.
bool Core::restore(SeatState& seat, Slot& slot, const StateWord& was) {
    if (was.place == Place::memory) return true;
    const std::size_t made_by = maker(slot, was.stage);
    const auto start = Clock::now();
    Item item{&slot.payload, Outcome::kept, &slot};
    if (was.place == Place::recipe) {
        try {
            plan_.stages[made_by]->rebuild(item, *this);
        } catch (...) {
            fail(item);
            return false;
        }
        rebuilt_.fetch_add(1, std::memory_order_relaxed);
    } else {
        try {
            store_->read(slot.place, seat.buffer);
            std::pmr::memory_resource* const own = slot.in_slab ? &memory(item) : nullptr;
            Reader reader(seat.buffer, static_cast<Parent*>(slot.family), own);
            slot.payload.type()->decode(reader, slot.payload);
            reader.expect_end();
            store_->release(slot.place);
        } catch (...) { // also what a codec throws
            record(error_of(item), key(item));
            return false;
        }
        restored_.fetch_add(1, std::memory_order_relaxed);
        on_disk_.fetch_sub(1, std::memory_order_relaxed);
    }
    slot.word.loaded(seat.index);
    const auto spent = Clock::now() - start;
    charge(seat, slot);
    if (made_by == Family::no_stage) return true;
    SpillChoice& choice = *points_[made_by].choice;
    const std::size_t bytes = slot.charged.load(std::memory_order_relaxed);
    if (was.place == Place::recipe) {
        choice.rebuilt(bytes, spent);
    } else {
        choice.read(bytes, spent);
    }
    return true;
}

/// Makes a claimed candidate fit for its stage: its parents pinned, its payload in memory. False: it is not ours any
/// more. Its parent is being moved, and it is back in its queue, or it has failed, or the run has.
bool Core::take_up(SeatState& seat, Slot& slot, const StateWord& was) {
    if (!pin(seat, slot.family)) {
        hand_back(seat, slot, was.stage, was.place);
        return false;
    }
    const Stage& what = *plan_.stages[was.stage];
    if (what.kind == Kind::batch && !what.by_key)
        points_[was.stage].cells.fetch_sub(static_cast<std::int64_t>(slot.cells), std::memory_order_relaxed);
    // Whoever has nothing to do may read ahead, and may have looked when memory was short.
    if (on_disk_.load(std::memory_order_relaxed) > 0 && governor_.below_low()) workers_.notify(1);
    if (restore(seat, slot, was)) return true;
    if (stopping()) return false;
    if (what.by_key) complete(*slot.family, *slot.chunk, &slot); // its batch goes on without it
    settle(seat, slot, State::failed);
    return false;
}

/// Some candidates that wait where `place` says, taken at random. How many.
std::size_t Core::sample(SeatState& seat, Place place, std::span<Sampled, scanned> found) {
    const std::uint32_t size = directory_.size();
    std::size_t count = 0;
    for (std::size_t i = 0; i < found.size() && size > 0; ++i) {
        seat.random = seat.random * 6364136223846793005U + 1442695040888963407U; // Knuth's MMIX generator
        Slot& slot = directory_[static_cast<std::uint32_t>((seat.random >> 33U) % size)];
        const StateWord word = slot.word.peek();
        if ((word.state != State::ready && word.state != State::parked) || word.place != place) continue;
        found[count++] = {slot.root.load(std::memory_order_relaxed), &slot, word};
    }
    return count;
}

/// Of a candidate that was taken out of Ready or Parked: back to there, its payload where `place` says.
void Core::put_back(SeatState& seat, Slot& slot, const StateWord& was, Place place) {
    if (was.state == State::parked) {
        slot.word.park(place, was.stage);
        request_drain(); // the drain may have come by and found it moving
    } else {
        hand_back(seat, slot, was.stage, place);
    }
}

/// Writes out some candidates that will be needed last.
void Core::relieve(SeatState& seat) {
    if (store_ == nullptr && !rebuilds_) return;
    std::array<Sampled, scanned> victims{};
    const std::size_t found = sample(seat, Place::memory, victims);
    std::sort(victims.begin(), victims.begin() + static_cast<std::ptrdiff_t>(found),
              [](const Sampled& a, const Sampled& b) { return a.root > b.root; });
    std::size_t written = 0;
    for (std::size_t i = 0; i < found && written < most_victims; ++i) {
        const auto& [root, at, word] = victims[i];
        Slot& slot = *at;
        if (!far_behind_head(root)) break;
        if (slot.charged.load(std::memory_order_relaxed) < worth_writing) continue;
        if (!slot.word.try_spill(word, seat.index)) continue;
        const std::size_t bytes = slot.charged.load(std::memory_order_relaxed);
        const Place place = put_away(seat, slot, word.stage);
        const bool done = place != Place::memory;
        if (done) ++written;
        if (done && word.state == State::parked) parked_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
        put_back(seat, slot, word, place);
        if (!done) break; // the disk does not take it: the next one would fare no better
    }
}

/// Reads back ahead of need, while there is plenty of memory: of a few candidates on disk the one that is needed first,
/// and its parents. For workers that find nothing else to do. False: it found nothing either.
bool Core::prefetch(SeatState& seat) {
    if (on_disk_.load(std::memory_order_relaxed) <= 0 || !governor_.below_low()) return false;
    std::array<Sampled, scanned> waiting{};
    const auto end = waiting.begin() + static_cast<std::ptrdiff_t>(sample(seat, Place::disk, waiting));
    const auto first =
        std::min_element(waiting.begin(), end, [](const Sampled& a, const Sampled& b) { return a.root < b.root; });
    if (first == end || !first->slot->word.try_load(first->word, seat.index)) return false;
    Slot& slot = *first->slot;
    if (!pin(seat, slot.family)) { // decoding looks for the parents that the payload points to
        put_back(seat, slot, first->word, Place::disk);
        std::this_thread::yield(); // to whoever moves its parent
        return true;
    }
    const bool restored = restore(seat, slot, first->word);
    unpin(seat, slot.family);
    if (!restored) return true; // the run has failed
    if (first->word.state == State::parked)
        parked_bytes_.fetch_add(slot.charged.load(std::memory_order_relaxed), std::memory_order_relaxed);
    put_back(seat, slot, first->word, Place::memory);
    return true;
}

/// Pins the parents that the family's children look into, the outermost first: what comes back from disk looks for the
/// parents above it. False: one is being moved by another thread; none is pinned then.
bool Core::pin_parents(SeatState& seat, Family* family) {
    std::array<Family*, max_key_depth> chain{};
    std::size_t depth = 0;
    for (Family* at = family; at != &root_; at = at->parent->family) {
        if (at->kept) chain[depth++] = at;
    }
    for (std::size_t i = depth; i-- > 0;) {
        if (pin_parent(seat, *chain[i])) continue;
        for (std::size_t undo = i + 1; undo < depth; ++undo) chain[undo]->pins.unpin();
        return false;
    }
    return true;
}

/// The one parent, those above it being pinned.
bool Core::pin_parent(SeatState& seat, Family& family) {
    const Pin pinned = family.pins.try_pin();
    if (pinned != Pin::cold) return pinned == Pin::held;
    try {
        store_->read(family.place, seat.buffer);
        Reader reader(seat.buffer, family.above, nullptr);
        family.payload.type()->decode(reader, family.payload);
        reader.expect_end();
        store_->release(family.place);
    } catch (...) { // also what a codec throws
        record(error_of({nullptr, Outcome::kept, family.parent}), family.key);
        family.pins.not_loaded();
        return false;
    }
    family.charged = family.payload.type()->footprint(family.payload.object());
    tell(seat, static_cast<std::int64_t>(family.charged));
    restored_.fetch_add(1, std::memory_order_relaxed);
    parents_on_disk_.fetch_sub(1, std::memory_order_relaxed);
    ++seat.parents_back;
    family.pins.loaded();
    return true;
}

/// Pins, waiting out a move of the parent by another thread: for the drain and the gather, which cannot come back
/// later. False: the run has failed.
bool Core::pin_soon(SeatState& seat, Family* family) {
    while (!pin(seat, family)) {
        if (stopping()) return false;
        std::this_thread::yield();
    }
    return true;
}

void Core::unpin_parents(SeatState& seat, Family* family) {
    for (Family* at = family; at != &root_; at = at->parent->family) {
        if (!at->kept) continue;
        const bool last = at->pins.unpin();
        if (!last || store_ == nullptr || governor_.verdict() == Verdict::run || !far_behind_head(at->root)) continue;
        if (!at->pins.try_spill()) continue;
        seat.buffer.clear();
        Writer writer(seat.buffer);
        at->payload.type()->encode(writer, at->payload.object());
        const SpillResult written = store_->write(seat.index, at->key.ordinals, seat.buffer);
        if (written) {
            at->place = written.place;
            at->payload.reset();
            tell(seat, -static_cast<std::int64_t>(std::exchange(at->charged, 0)));
            governor_.note_spilled(seat.buffer.size());
            parents_on_disk_.fetch_add(1, std::memory_order_relaxed);
        }
        at->pins.spilled(static_cast<bool>(written));
    }
}

} // namespace spillway::detail
