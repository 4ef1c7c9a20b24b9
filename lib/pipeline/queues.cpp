// What lies in the queues before the stages: how candidates come into them, and what a worker or a feeder takes out.
#include "pipeline/core.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <thread>

namespace spillway::detail {

bool Core::take(SeatState& seat, std::size_t stage, bool partial) {
    StagePoint& point = points_[stage];
    Stage& what = *plan_.stages[stage];
    if (!can_take_in(seat, stage)) return false;
    if (what.by_key) return take_by_key(seat, stage);
    if (point.given_back.backlog() > 0 && take_given_back(seat, stage)) return true;
    std::size_t wanted = carry_size(stage);
    if (what.kind == Kind::fan_out) wanted = 1;
    if (what.kind == Kind::batch) {
        if (!partial && point.cells.load(std::memory_order_relaxed) < static_cast<std::int64_t>(what.batch_cells))
            return false;
        wanted = most_batched;
    }
    std::size_t full = what.batch_cells;
    if (what.kind == Kind::batch && routers_[stage] != nullptr) {
        // While devices take batches, what their staging holds is theirs.
        const Waiting waiting{.cells = point.queued_cells(),
                              .staging = point.staging_cells.load(std::memory_order_relaxed),
                              .idle_workers = workers_.idle()};
        full = std::min(full, routers_[stage]->cells_worker_may_take(waiting, partial));
        if (full == 0) return false;
    }
    if (!may_enter(seat, stage)) return false;
    seat.carried.clear();
    std::size_t cells = 0;
    std::array<Hint, most_carried> hints;
    // What is not in memory comes one by one, and no more of it than there is plenty of memory for: groups are for
    // candidates that cost less than a clock call, not for payloads by the dozen.
    const bool elsewhere = rebuilds_ || on_disk_.load(std::memory_order_relaxed) > 0 ||
                           parents_on_disk_.load(std::memory_order_relaxed) > 0;
    seat.came_back = false;
    seat.parents_back = 0;
    // A candidate whose parent cannot be read back is in its queue again; the run has failed then.
    while (seat.carried.size() < wanted && !stopping()) {
        const std::size_t at_once = std::min(wanted - seat.carried.size(), elsewhere ? 1 : most_carried);
        const std::size_t count = point.queue.take(*seat.tokens[stage], std::span(hints).first(at_once));
        if (count == 0) break;
        for (const Hint& hint : std::span(hints).first(count)) {
            if (claim(seat, hint)) cells += what.kind == Kind::batch ? what.cells(seat.carried.back()->payload) : 0;
        }
        if (what.kind == Kind::batch && cells >= full) break;
        if (!may_grow(seat, what.kind)) break;
    }
    if (seat.carried.empty()) {
        step_out(seat, stage);
        return false;
    }
    carry(seat, stage, true);
    return true;
}

/// Whether the group, if some of it came back to memory, may grow. One parent that did is for all its children: without
/// it each would read it anew. A batch is worth more memory than a group is.
bool Core::may_grow(const SeatState& seat, Kind kind) noexcept {
    if (!seat.came_back && seat.parents_back < 2) return true;
    return kind == Kind::batch ? governor_.verdict() != Verdict::hold : governor_.below_low();
}

/// What a device failed at: done here, however little it is.
bool Core::take_given_back(SeatState& seat, std::size_t stage) {
    if (!may_enter(seat, stage)) return false;
    seat.carried.clear();
    std::size_t cells = 0;
    Hint hint;
    while (cells < plan_.stages[stage]->batch_cells && !stopping() && points_[stage].given_back.take({&hint, 1}) == 1) {
        if (claim(seat, hint)) cells += plan_.stages[stage]->cells(seat.carried.back()->payload);
    }
    if (seat.carried.empty()) {
        step_out(seat, stage);
        return false;
    }
    carry(seat, stage, true);
    return true;
}

/// What a hint leads to, into seat.carried. False: the hint was stale, or the candidate cannot be had now.
bool Core::claim(SeatState& seat, const Hint& hint) {
    Slot& slot = directory_[hint.slot];
    const std::optional<StateWord> was = slot.word.try_claim(hint.version, seat.index);
    if (!was) return false; // a newer hint leads to it, or the head's way did
    if (!take_up(seat, slot, *was)) {
        std::this_thread::yield(); // to whoever moves its parent
        return false;
    }
    seat.came_back = seat.came_back || was->place != Place::memory;
    seat.carried.push_back(&slot);
    return true;
}

/// For a feeder: candidates of about `cells` that fit `bytes` of staging, into seat.carried. What does not fit goes
/// back.
void Core::take_for_device(SeatState& seat, std::size_t stage, std::size_t cells, std::size_t bytes,
                           const DeviceForm& form) {
    seat.carried.clear();
    seat.came_back = false;
    seat.parents_back = 0;
    std::size_t room = bytes > form.header_bytes() ? bytes - form.header_bytes() : 0;
    std::vector<Slot*> too_large;
    Hint hint;
    const bool by_key = plan_.stages[stage]->by_key;
    while (cells > 0 && seat.carried.size() < most_batched && !stopping() && may_grow(seat, Kind::batch) &&
           points_[stage].queue.take(*seat.tokens[stage], {&hint, 1}) == 1) {
        if (!claim(seat, hint)) continue;
        if (by_key) {
            collect(seat);
            return;
        }
        Slot& slot = *seat.carried.back();
        const std::size_t need = form.overlaps ? form.bytes(slot.payload) : 0;
        if (need > room) {
            seat.carried.pop_back();
            too_large.push_back(&slot);
            break;
        }
        room -= need;
        cells -= std::min(cells, plan_.stages[stage]->cells(slot.payload));
    }
    if (!too_large.empty()) publish(seat, too_large, stage);
}

/// seat.carried have come through a stage on another thread than a worker's: to whoever does the next one.
void Core::hand_on(SeatState& seat, std::size_t stage) {
    const Kind kind = plan_.stages[stage]->kind;
    if (kind == Kind::map || kind == Kind::fan_out || points_[stage].forks) {
        publish(seat, seat.carried, stage);
    } else {
        carry(seat, stage, false);
    }
    count_ended(seat);
    hand_over_notes(seat);
}

/// seat.carried are as a device found them: to the workers, past the queue that devices take from.
void Core::hand_to_workers(SeatState& seat, std::size_t stage) {
    make_ready(seat, seat.carried, stage);
    for (const Hint& hint : seat.hints) points_[stage].given_back.push(hint);
    workers_.notify(seat.hints.size());
}

/// Cells that this stage will still have to do: what is queued, and what the source is expected to bring.
std::size_t Core::cells_remaining(std::size_t stage) const noexcept {
    constexpr std::size_t plenty = std::numeric_limits<std::size_t>::max() / 4;
    const std::size_t queued = points_[stage].queued_cells();
    if (source_done_.load(std::memory_order_relaxed)) return queued;
    const std::uint64_t opened = opened_.begun();
    const std::uint64_t expected = plan_.source != nullptr ? plan_.source->size() : 0;
    if (expected == 0 || opened == 0) return plenty; // a source of unknown length is work
    const double each =
        static_cast<double>(points_[stage].cells_seen.load(std::memory_order_relaxed)) / static_cast<double>(opened);
    const double coming = each * static_cast<double>(expected - std::min(opened, expected));
    return queued + static_cast<std::size_t>(std::min(coming, static_cast<double>(plenty)));
}

/// Back into the queue it came from, unworked.
void Core::hand_back(SeatState& seat, Slot& slot, std::size_t stage, Place place) {
    const Hint hint{slot.index, slot.word.publish(static_cast<std::uint8_t>(stage), place)};
    points_[stage].queue.push(*seat.tokens[stage], {&hint, 1});
    workers_.notify(1);
    if (points_[stage].fed) points_[stage].device_work.notify_all();
}

void Core::publish(SeatState& seat, std::span<Slot* const> slots, std::size_t stage) {
    if (plan_.stages[stage]->by_key) {
        arrive(seat, slots, stage);
        return;
    }
    make_ready(seat, slots, stage);
    points_[stage].queue.push(*seat.tokens[stage], seat.hints);
    workers_.notify(seat.hints.size());
    if (points_[stage].fed) points_[stage].device_work.notify_all();
}

/// Into Ready, on disk where memory is short; seat.hints are owed to a queue then.
void Core::make_ready(SeatState& seat, std::span<Slot* const> slots, std::size_t stage) {
    const Stage& what = *plan_.stages[stage];
    seat.hints.clear();
    for (Slot* slot : slots) {
        if (what.kind == Kind::batch) {
            slot->cells = what.cells(slot->payload);
            points_[stage].cells.fetch_add(static_cast<std::int64_t>(slot->cells), std::memory_order_relaxed);
            if (routers_[stage] != nullptr) points_[stage].cells_seen.fetch_add(slot->cells, std::memory_order_relaxed);
        }
        charge(seat, *slot);
        const Place place = make_way(seat, *slot, stage);
        unpin(seat, slot->family); // before the step: after it the candidate may end elsewhere, and its family with it
        seat.hints.push_back({slot->index, slot->word.publish(static_cast<std::uint8_t>(stage), place)});
    }
}

} // namespace spillway::detail
