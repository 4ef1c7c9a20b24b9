// The order of the output: parking, the drain that walks it, families and gathers.
#include "pipeline/core.hpp"

#include <algorithm>

namespace spillway::detail {

namespace {

/// The walk asks for slots that other cores have written this many ahead, since its own steps wait for each other.
constexpr std::size_t prefetched = 8;

} // namespace

Key Core::key(const Item& item) const {
    Key key;
    const auto* slot = static_cast<const Slot*>(item.slot);
    if (slot == nullptr || slot->family == nullptr) return key;
    key = slot->family->key;
    key.ordinals[key.depth++] = slot->ordinal;
    return key;
}

Parent* Core::parent(const Item& item) const noexcept {
    return static_cast<const Slot*>(item.slot)->family;
}

void Core::free_slot(SeatState& seat, Slot& slot) {
    slot.payload.reset();
    release_slab(seat, slot);
    discharge(seat, slot);
    slot.family = nullptr;
    slot.children = nullptr;
    slot.word.release();
    seat.free.give(slot);
}

/// seat.carried have passed their last stage: into their place in the order, or to the gather that waits for them.
void Core::park(SeatState& seat) {
    const bool to_gather = !seat.carried.empty() && seat.carried.front()->family->gathers;
    for (Slot* slot : seat.carried) {
        if (!to_gather) note_result(seat, *slot);
        charge(seat, *slot);
        const std::size_t bytes = slot->charged.load(std::memory_order_relaxed);
        const Place place = make_way(seat, *slot, StateCell<>::last_stage);
        if (bytes > 0 && place == Place::memory) parked_bytes_.fetch_add(bytes, std::memory_order_relaxed);
        if (to_gather) seat.ended.push_back(slot->family);
        unpin(seat, slot->family);
        slot->word.park(place);
    }
    if (!to_gather) drain(seat, false);
}

/// Ends a candidate without a result; its place in the order is passed over.
void Core::settle(SeatState& seat, Slot& slot, State state) {
    ++(state == State::failed ? seat.failed : seat.dropped);
    slot.payload.reset();
    release_slab(seat, slot);
    discharge(seat, slot);
    Family& family = *slot.family;
    const bool gathers = family.gathers;
    if (!gathers && state == State::dropped) note_nothing(seat, slot);
    if (ends_before(slot)) complete(family, *slot.chunk, &slot);
    unpin(seat, &family);
    slot.word.settle(state);
    if (gathers) {
        seat.ended.push_back(&family);
    } else {
        drain_wanted_.exchange(true, std::memory_order_release);
    }
}

void Core::request_drain() noexcept {
    drain_wanted_.exchange(true, std::memory_order_release);
    workers_.notify(1);
}

/// Walks the order as far as it is done. With want_head, claims the head if it is ready, for the caller to carry.
Slot* Core::drain(SeatState& seat, bool want_head) {
    Slot* head = nullptr;
    // Release: pairs with the exchange in the body, so that a walk that takes this request sees what was parked before
    // it.
    drain_wanted_.exchange(true, std::memory_order_release);
    drain_.run(
        [&] {
            drain_wanted_.exchange(false, std::memory_order_acquire);
            walk(seat, want_head, head);
        },
        [&] { return head == nullptr && drain_wanted_.load(std::memory_order_relaxed); });
    return head;
}

void Core::walk(SeatState& seat, bool want_head, Slot*& head) {
    // Those who look at these are woken by news only: what a walk finds as the last one left it was told then.
    const Family* starving = nullptr;
    std::uint64_t urgent = no_root;
    bool pressed = false;
    const std::uint64_t passed_before = opened_.passed();
    std::uint64_t passed = passed_before;
    bool blocked = false;
    while (!blocked && !order_.empty() && !stopping()) {
        Cursor& at = order_.back();
        Family& family = *at.family;
        const bool closed = family.entries.closed(); // before the entry: entries precede the close
        const std::uint32_t entry = family.entries.at(at.at);
        if (entry == 0) {
            if (!closed) {
                starving = &family;
                break;
            }
            emit(seat);
            order_.pop_back();
            if (family.parent == nullptr) {
                static_cast<void>(opened_.pass(passed, window_));
                end_run(false);
                return;
            }
            plan_.stages[sink_]->end(family.key);
            Slot& parent = *family.parent;
            free_family(family);
            free_slot(seat, parent);
            Cursor& above = order_.back();
            above.family->entries.pass(above.at);
            if (above.family->parent == nullptr) ++passed;
            continue;
        }
        if (const std::uint32_t later = family.entries.glance(at.at, prefetched); later != 0)
            directory_[later - 1].prefetch();
        Slot& slot = directory_[entry - 1];
        const StateWord word = slot.word.peek();
        switch (word.state) {
        case State::parked:
            if (word.stage != StateCell<>::last_stage) {
                // Its batch must be made whole, room or not.
                blocked = true;
                urgent = slot.root.load(std::memory_order_relaxed);
                if (family.parent == nullptr) {
                    constexpr std::uint64_t batch = FamilyEntries::chunk_entries;
                    if (opened_.need((slot.ordinal / batch + 1) * batch)) {
                        workers_.notify_all();
                        room_.notify_all();
                    }
                }
                break;
            }
            if (!slot.word.try_take(word, seat.index)) {
                blocked = true; // a spill was faster; whoever writes it asks for a drain when done
                break;
            }
            if (word.place == Place::memory) {
                const std::size_t bytes = slot.charged.load(std::memory_order_relaxed);
                if (bytes > 0) parked_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
            }
            if (!pin_soon(seat, slot.family)) return;
            if (!restore(seat, slot, word)) {
                if (stopping()) return;
                settle(seat, slot, State::failed); // and comes by again as that
                break;
            }
            seat.emitted.push_back(&slot);
            family.entries.pass(at.at);
            if (family.parent == nullptr) ++passed;
            if (seat.emitted.size() == most_carried) emit(seat);
            break;
        case State::dropped:
        case State::failed:
            emit(seat);
            if (is_journaled(slot)) replay(seat, key({nullptr, Outcome::kept, &slot}));
            family.entries.pass(at.at); // before the slot is free for another: see complete()
            free_slot(seat, slot);
            if (family.parent == nullptr) ++passed;
            break;
        case State::expanded:
            order_.push_back({slot.children, 0});
            break;
        case State::ready:
            blocked = true;
            if (plan_.stages[word.stage]->by_key && points_[word.stage].fed) break; // its device will have it
            if (want_head && !can_take_in(seat, word.stage)) {
                // It needs the fan-out that this seat is in the middle of: that must end first, room or not.
                pressed = true;
            } else if (want_head && may_enter(seat, word.stage)) {
                if (slot.word.try_claim(word.version, seat.index) && take_up(seat, slot, word)) {
                    head = &slot;
                    break;
                }
                step_out(seat, word.stage);
            }
            break;
        case State::gathering:
            // Its children must all be made before it can go on, room or not.
            blocked = true;
            urgent = slot.root.load(std::memory_order_relaxed);
            pressed = nested_gathers_ && governor_.verdict() == Verdict::hold;
            break;
        default:
            blocked = true;
            break;
        }
    }
    emit(seat);
    tell_what_the_head_wants(starving, urgent, pressed);
    if (passed != passed_before && opened_.pass(passed, window_)) {
        room_.notify_all();
        workers_.notify(1);
    }
}

/// Only inside the drain.
void Core::tell_what_the_head_wants(const Family* starving, std::uint64_t urgent, bool pressed) noexcept {
    const bool hungry = starving_.exchange(starving, std::memory_order_relaxed) != starving && starving != nullptr;
    urgent_root_.store(urgent, std::memory_order_relaxed);
    const bool stuck = !pressed_.exchange(pressed, std::memory_order_relaxed) && pressed;
    if (!hungry && !stuck) return;
    // Above the hold mark those who alone can go on may be asleep.
    if (stuck || governor_.verdict() == Verdict::hold) workers_.notify_all();
    if (hungry && governor_.verdict() == Verdict::hold) room_.notify_all();
}

/// Gives seat.emitted to the sink and frees them. Only inside the drain.
void Core::emit(SeatState& seat) {
    if (seat.emitted.empty()) return;
    std::array<Item, most_carried> items;
    const std::size_t count = seat.emitted.size();
    for (std::size_t i = 0; i < count; ++i) items[i] = {&seat.emitted[i]->payload, Outcome::kept, seat.emitted[i]};
    seat.stages[sink_].candidates += count;
    ++seat.stages[sink_].calls;
    try {
        plan_.stages[sink_]->run(std::span(items).first(count), local(seat, sink_), *this);
        seat.emitted_count += count;
    } catch (...) {
        // Whatever on_error says: what the sink has not written cannot be left out in silence.
        record(error_of(items[0]), key(items[0]));
    }
    for (Slot* slot : seat.emitted) {
        unpin(seat, slot->family);
        free_slot(seat, *slot);
    }
    seat.emitted.clear();
}

void Core::free_family(Family& family) {
    if (family.charged > 0) governor_.release(family.charged);
    if (store_ != nullptr && family.pins.is_on_disk()) {
        store_->release(family.place);
        parents_on_disk_.fetch_sub(1, std::memory_order_relaxed);
    }
    const std::unique_ptr<Family> gone(&family);
}

/// For each child that ended, one less to wait for. The last one of a closed family fires the gather.
void Core::count_ended(SeatState& seat) {
    while (!seat.ended.empty()) {
        Family& family = *seat.ended.back();
        seat.ended.pop_back();
        if (family.unfinished.arrive()) fire(seat, family);
    }
}

void Core::fire(SeatState& seat, Family& family) {
    Slot& parent = *family.parent;
    parent.word.carry(seat.index); // Gathering has one owner: whoever ended the last child
    if (!pin_soon(seat, &family)) return;
    std::vector<Slot*> children;
    family.entries.take_all([&](std::uint32_t entry) { children.push_back(&directory_[entry - 1]); });
    std::vector<Item> items;
    for (Slot* slot : children) {
        for (;;) {
            const StateWord word = slot->word.peek();
            if (word.state == State::dropped || word.state == State::failed) break;
            if (word.state != State::parked || !slot->word.try_take(word, seat.index)) {
                if (stopping()) return;   // whoever was writing it out may have failed
                StandardAtomics::pause(); // being written out; that ends
                continue;
            }
            if (word.place == Place::memory) {
                const std::size_t bytes = slot->charged.load(std::memory_order_relaxed);
                if (bytes > 0) parked_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
            }
            if (restore(seat, *slot, word)) {
                items.push_back({&slot->payload, Outcome::kept, slot});
            } else if (stopping()) {
                return;
            } else {
                ++seat.failed; // it has ended, and has been counted so
            }
            break;
        }
    }
    const std::size_t gather = points_[family.stage].gather;
    Item item{&parent.payload, Outcome::kept, &parent};
    ++seat.stages[gather].calls;
    seat.stages[gather].candidates += items.size();
    try {
        if (family.broken)
            item.outcome = Outcome::failed;
        else
            plan_.stages[gather]->gather(item, family, items, local(seat, gather), *this);
    } catch (...) {
        fail(item);
    }
    for (Slot* slot : children) free_slot(seat, *slot);
    free_family(family);
    parent.children = nullptr;
    if (item.outcome != Outcome::kept) {
        settle(seat, parent, item.outcome == Outcome::dropped ? State::dropped : State::failed);
        return;
    }
    seat.carried.assign(1, &parent);
    carry(seat, gather + 1, false);
}

} // namespace spillway::detail
