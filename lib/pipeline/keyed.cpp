// Stages that batch by key: a batch is one chunk of a family, the same whatever the load.
//
//     arrive or settle  ->  the chunk's count reaches zero  ->  complete: one hint, for the first member left
//     take_by_key, or a feeder  ->  claim that one, collect the others
//
// The members wait in Parked, under the number of the stage, so that they spill as parked results do and nobody else
// takes them. Every entry of a chunk counts once: when it comes to the stage, when it ends before, or, for entries that
// never come to be, when the family is closed.
#include "directory/keyed_batch.hpp"
#include "pipeline/core.hpp"

#include <utility>

namespace spillway::detail {

/// Which stage batches the children of each fan-out by key, and which the source's items.
void Core::find_keyed_stages() {
    keyed_.assign(plan_.stages.size(), Family::no_stage);
    std::vector<std::size_t*> levels{&root_.keyed};
    for (std::size_t i = 0; i < plan_.stages.size(); ++i) {
        const Stage& stage = *plan_.stages[i];
        if (stage.kind == Kind::fan_out) levels.push_back(&keyed_[i]);
        if (stage.kind == Kind::gather) levels.pop_back();
        if (!stage.by_key) continue;
        if (*levels.back() != Family::no_stage) {
            throw Error(ErrorCode::usage, "running " + plan_.name, stage.name,
                        "a second stage with equivalent forms for the same candidates: put both into one stage");
        }
        *levels.back() = i;
    }
}

/// The candidates have come to a stage that batches by key.
void Core::arrive(SeatState& seat, std::span<Slot* const> slots, std::size_t stage) {
    for (Slot* slot : slots) {
        charge(seat, *slot);
        const std::size_t bytes = slot->charged.load(std::memory_order_relaxed);
        const Place place = make_way(seat, *slot, stage);
        if (bytes > 0 && place == Place::memory) parked_bytes_.fetch_add(bytes, std::memory_order_relaxed);
        Family& family = *slot->family;
        FamilyEntries::Chunk& chunk = *slot->chunk;
        slot->arrived = true;
        unpin(seat, &family);
        slot->word.park(place, static_cast<std::uint8_t>(stage));
        if (chunk.missing.arrive()) complete(family, chunk, nullptr);
    }
    request_drain(); // it may have passed by while they were on their way, and must learn what it waits for
}

/// Whether the candidate, which ends, is the last that its batch waited for.
bool Core::ends_before(Slot& slot) noexcept {
    return slot.family->keyed != Family::no_stage && !slot.arrived && slot.chunk->missing.arrive();
}

/// All members of the batch that will ever come have come. `ending` is one that is about to end: the chunk stands as
/// long as it has not.
void Core::complete(Family& family, FamilyEntries::Chunk& chunk, const Slot* ending) {
    const auto stage = static_cast<std::uint8_t>(family.keyed);
    const auto first = take_first(chunk, ending, StateWord::max_owner - 1, slot_at(), [this] { return stopping(); });
    if (!first) return;
    const auto [slot, was] = *first;
    if (was.place == Place::memory)
        parked_bytes_.fetch_sub(slot->charged.load(std::memory_order_relaxed), std::memory_order_relaxed);
    points_[stage].queue.push({slot->index, slot->word.publish(stage, was.place)});
    workers_.notify(1);
    if (points_[stage].fed) points_[stage].device_work.notify_all();
}

/// No more members will be made. By the producer, once.
void Core::close(Family& family) {
    const std::size_t rest = family.entries.missing();
    if (family.keyed != Family::no_stage && rest > 0 && family.entries.newest().missing.arrive(rest))
        complete(family, family.entries.newest(), nullptr);
    family.entries.close();
}

/// seat.carried is the first of a complete batch, claimed: the others after it.
void Core::collect(SeatState& seat) {
    Slot& first = *seat.carried.front();
    Family& family = *first.family;
    const auto over = [this] { return stopping(); };
    take_others(*first.chunk, first, seat.index, slot_at(), over, [&](Slot& slot, const StateWord& was) {
        if (was.place == Place::memory) {
            parked_bytes_.fetch_sub(slot.charged.load(std::memory_order_relaxed), std::memory_order_relaxed);
            slot.word.carry(seat.index);
        }
        if (!pin_soon(seat, &family)) return false; // in memory: the first one has pinned it
        if (restore(seat, slot, was)) {
            seat.carried.push_back(&slot);
        } else if (stopping()) {
            return false;
        } else {
            settle(seat, slot, State::failed);
        }
        return true;
    });
}

bool Core::take_by_key(SeatState& seat, std::size_t stage) {
    if (points_[stage].fed || !may_enter(seat, stage)) return false;
    Hint hint;
    seat.carried.clear();
    while (seat.carried.empty() && !stopping() && points_[stage].queue.take(*seat.tokens[stage], {&hint, 1}) == 1)
        static_cast<void>(claim(seat, hint));
    if (seat.carried.empty()) {
        step_out(seat, stage);
        return false;
    }
    collect(seat);
    carry(seat, stage, true);
    return true;
}

} // namespace spillway::detail
