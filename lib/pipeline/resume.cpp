// The journal: what earlier runs finished is passed over and given to the sink in its place; what this run finishes is
// noted.
#include "pipeline/core.hpp"

#include <algorithm>

namespace spillway::detail {

void Core::start_journal(const Options& options) {
    if (options.journal == nullptr) return;
    if (plan_.source == nullptr) {
        throw Error(ErrorCode::usage, "running " + plan_.name, "",
                    "a journal needs a source: what a host pushes need not come again in the same order");
    }
    if (root_.keyed != Family::no_stage) {
        throw Error(
            ErrorCode::usage, "running " + plan_.name, plan_.stages[root_.keyed]->name,
            "a journal leaves out finished source items, and this stage batches them by key: fan out before it");
    }
    options.journal->run().start();
    journal_ = &options.journal->run();
}

/// Not where children are gathered, or batched by key: these need all of them.
bool Core::is_journaled(const Slot& slot) const noexcept {
    if (journal_ == nullptr || slot.family->gathers || slot.family->keyed != Family::no_stage) return false;
    return journal_->contains(key({nullptr, Outcome::kept, const_cast<Slot*>(&slot)})); // NOLINT: only looked at
}

/// Of seat.carried, fresh from the source or a fan-out, leaves those that must be computed. The others fill their place
/// in the order without a payload; the drain gives their results to the sink when it comes by.
void Core::pass_over_journaled(SeatState& seat) {
    if (journal_ == nullptr) return;
    const auto computed = std::stable_partition(seat.carried.begin(), seat.carried.end(),
                                                [&](const Slot* slot) { return !is_journaled(*slot); });
    if (computed == seat.carried.end()) return;
    for (auto at = computed; at != seat.carried.end(); ++at) {
        (*at)->payload.reset();
        release_slab(seat, **at);
        (*at)->word.settle(State::dropped);
    }
    seat.carried.erase(computed, seat.carried.end());
    drain(seat, false);
}

/// Gives the sink what the journal has of a candidate. Only inside the drain.
void Core::replay(SeatState& seat, const Key& replayed) {
    Stage& sink = *plan_.stages[sink_];
    Family above; // Key and ordinal are all that the sink can ask of a result.
    Slot slot;
    slot.family = &above;
    slot.word.fill(seat.index);
    Item item{&slot.payload, Outcome::kept, &slot};
    try {
        journal_->replay(
            replayed,
            [&](const Key& key, std::span<const std::byte> encoded) {
                above.key = key;
                slot.ordinal = above.key.ordinals[--above.key.depth];
                above.key.ordinals[above.key.depth] = 0;
                Reader reader(encoded);
                slot.payload.reset();
                sink.result_type()->decode(reader, slot.payload);
                reader.expect_end();
                sink.run(std::span(&item, 1), local(seat, sink_), *this);
                ++seat.emitted_count;
            },
            [&](const Key& key) { sink.end(key); });
    } catch (...) {
        record(error_of(item), key(item)); // as in emit()
    }
    release_slab(seat, slot);
}

/// A candidate has passed its last stage, and is still its owner's.
void Core::note_result(SeatState& seat, Slot& slot) {
    if (journal_ == nullptr) return;
    const PayloadType& type = *slot.payload.type();
    seat.buffer.clear();
    Writer writer(seat.buffer);
    type.encode(writer, slot.payload.object());
    if (!first_noted_.exchange(true, std::memory_order_relaxed)) {
        // Once a run: a result that cannot be read back without its parent would be of no use.
        Payload trial;
        Reader reader(seat.buffer);
        try {
            type.decode(reader, trial);
        } catch (const Error& error) {
            throw Error(ErrorCode::usage, "writing the journal",
                        "candidate " + to_string(key({nullptr, Outcome::kept, &slot})),
                        "a result does not stand by itself (" + error.detail() +
                            "): with a journal, results must not hold a shared parent");
        }
    }
    if (seat.group == nullptr) seat.group = journal_->begin_group();
    seat.group->result(key({nullptr, Outcome::kept, &slot}), seat.buffer);
}

/// A candidate was filtered out.
void Core::note_nothing(SeatState& seat, const Slot& slot) {
    if (journal_ == nullptr) return;
    if (seat.group == nullptr) seat.group = journal_->begin_group();
    seat.group->nothing(key({nullptr, Outcome::kept, const_cast<Slot*>(&slot)})); // NOLINT: only looked at
}

/// A fan-out has made the last of its children.
void Core::note_family(SeatState& seat, const Family& family) {
    if (journal_ == nullptr) return;
    if (seat.group == nullptr) seat.group = journal_->begin_group();
    seat.group->family(family.key, family.produced);
}

void Core::hand_over_notes(SeatState& seat) {
    if (seat.group != nullptr) journal_->hand_over(std::move(seat.group));
}

} // namespace spillway::detail
