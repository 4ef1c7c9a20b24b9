// The way of candidates through the stages: what a worker takes next, and how far it carries it.
#include "pipeline/core.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace spillway::detail {
namespace {

using Clock = std::chrono::steady_clock;

/// A group of candidates is carried together for about this long: clocks, claims, drains and the lines that the cores
/// pass to each other for them (about a microsecond in all) are paid once for each group, and no more work than this
/// sticks to a worker while others are idle.
constexpr std::uint64_t group_nanoseconds = 50'000;

/// A fan-out keeps this many children queued for each worker, so that none runs dry while the fan-out's seat carries
/// one.
constexpr std::size_t children_ahead = 4;

/// Where candidates are so small that groups are as large as they may be, a sleeper is woken only every so many pulls:
/// a wake-up costs more than several such groups, and the source is busy most of the time.
constexpr std::uint32_t small_pulls_a_wake = 128;

/// See carry().
constexpr std::uint32_t groups_a_sample = 16;

std::uint64_t between(Clock::time_point start, Clock::time_point end) noexcept {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count());
}

} // namespace

std::size_t Core::carry_size(std::size_t stage) const noexcept {
    const std::uint64_t cost = points_[stage].nanoseconds.load(std::memory_order_relaxed);
    if (cost == 0) return 1; // not known yet: do not let candidates stick together
    return std::clamp<std::size_t>(group_nanoseconds / cost, 1, most_carried);
}

bool Core::may_enter(SeatState& seat, std::size_t stage) noexcept {
    const Stage& what = *plan_.stages[stage];
    if (what.limit > 0 && !points_[stage].turnstile.enter(what.limit)) return false;
    if (what.lender == nullptr || (seat.lent[stage] = what.lender->try_borrow()) != nullptr) return true;
    if (what.limit > 0) points_[stage].turnstile.leave();
    return false;
}

void Core::step_out(SeatState& seat, std::size_t stage) noexcept {
    const Stage& what = *plan_.stages[stage];
    if (what.limit == 0 && what.lender == nullptr) return;
    if (what.lender != nullptr) what.lender->give_back(std::exchange(seat.lent[stage], nullptr));
    if (what.limit > 0) {
        points_[stage].turnstile.leave();
    } else {
        StandardAtomics::fence_seq_cst(); // as in Turnstile::leave()
    }
    // Whoever found the stage full, or the things lent, went away, to sleep perhaps.
    for (std::size_t i = 0; i < sink_; ++i) {
        const bool freed = i == stage || (what.lender != nullptr && plan_.stages[i]->lender == what.lender);
        if (freed && points_[i].backlog() > 0) workers_.notify(1);
    }
}

bool Core::may_open() noexcept {
    return opened_.may_open(window_, [this] { return governor_.verdict() == Verdict::hold; });
}

Local* Core::local(SeatState& seat, std::size_t stage) {
    if (!plan_.stages[stage]->has_local) return nullptr;
    if (plan_.stages[stage]->lender != nullptr) return seat.lent[stage];
    std::unique_ptr<Local>& mine = seat.locals[stage];
    if (mine == nullptr) {
        mine = plan_.stages[stage]->make_local();
        governor_.charge_fixed(static_cast<std::int64_t>(plan_.stages[stage]->local_bytes));
    }
    return mine.get();
}

bool Core::can_take_in(SeatState& seat, std::size_t stage) const noexcept {
    return plan_.stages[stage]->kind != Kind::fan_out || seat.growing[stage].family == nullptr;
}

bool Core::run_some(Seat& seat) {
    if (over()) return false;
    SeatState& state = seat_for(seat.index);
    try {
        const bool worked = work(state);
        count_ended(state);
        hand_over_notes(state);
        return worked;
    } catch (const Error& error) {
        record(error, {});
    } catch (const std::exception& exception) {
        record(Error(ErrorCode::runtime, "running " + plan_.name, "", exception.what()), {});
    } catch (...) {
        record(Error(ErrorCode::runtime, "running " + plan_.name, "", "an exception of unknown type"), {});
    }
    return true;
}

bool Core::work(SeatState& seat) {
    const Verdict verdict = governor_.verdict();
    if (verdict != Verdict::run) {
        relieve(seat);
        const bool many_parked = parked_bytes_.load(std::memory_order_relaxed) > governor_.budget() / 2;
        if (verdict == Verdict::hold || many_parked) {
            if (Slot* head = drain(seat, true)) {
                seat.carried.assign(1, head);
                const std::size_t stage = head->word.peek().stage;
                if (plan_.stages[stage]->by_key) collect(seat);
                carry(seat, stage, true);
                return true;
            }
        }
    }
    if (drain_wanted_.load(std::memory_order_relaxed)) drain(seat, false);
    if (over()) return false;

    // Children before they run out, then what is nearest to its end, then new children, then new source items, and what
    // nobody else wants: a batch that is not full.
    const auto wanted_children = static_cast<std::int64_t>(2 * workers_.threads());
    for (std::size_t stage = sink_; stage-- > 0;) {
        if (seat.growing[stage].family != nullptr && points_[stage + 1].queue.backlog() < wanted_children &&
            pump(seat, stage))
            return true;
    }
    for (std::size_t stage = sink_; stage-- > 0;) {
        if (points_[stage].backlog() > 0 && take(seat, stage, false)) return true;
    }
    for (std::size_t stage = sink_; stage-- > 0;) {
        // Whatever is queued already: only a stage that is not ours to enter keeps us from it, so running ahead is all
        // we can do.
        if (seat.growing[stage].family != nullptr && pump(seat, stage)) return true;
    }
    if (pull(seat)) return true;
    for (std::size_t stage = sink_; stage-- > 0;) {
        if (plan_.stages[stage]->kind == Kind::batch && points_[stage].backlog() > 0 && take(seat, stage, true))
            return true;
    }
    return prefetch(seat);
}

bool Core::pull(SeatState& seat) {
    if (plan_.source == nullptr || source_done_.load(std::memory_order_relaxed) || !can_take_in(seat, 0) || !may_open())
        return false;
    std::size_t made = 0;
    bool last = false;
    seat.carried.clear();
    {
        const std::unique_lock mine(pulling_, std::try_to_lock);
        if (!mine || source_done_.load(std::memory_order_relaxed)) return false;
        const std::size_t wanted = carry_size(0);
        std::array<Payload*, most_carried> payloads{};
        for (std::size_t i = 0; i < wanted; ++i) {
            Slot& slot = seat.free.take();
            slot.word.fill(seat.index);
            seat.carried.push_back(&slot);
            payloads[i] = &slot.payload;
        }
        try {
            made = plan_.source->take(std::span(payloads).first(wanted));
        } catch (...) {
            for (Slot* slot : seat.carried) free_slot(seat, *slot);
            seat.carried.clear();
            Item none;
            fail(none);
            end_run(true);
            return true;
        }
        last = made < wanted;
        for (std::size_t i = 0; i < made; ++i) {
            Slot& slot = *seat.carried[i];
            adopt(slot, root_, root_.produced);
            slot.word.carry(seat.index);
            slot.chunk = root_.entries.append(slot.index + 1);
        }
        for (std::size_t i = made; i < wanted; ++i) free_slot(seat, *seat.carried[i]);
        seat.carried.resize(made);
        opened_.open(made);
        if (last) {
            source_done_.store(true, std::memory_order_relaxed);
            close(root_);
        }
    }
    seat.candidates += made;
    pass_over_journaled(seat);
    if (last) {
        drain(seat, false); // it may have been waiting for nothing more
    } else if (made < most_carried || ++seat.rounds % small_pulls_a_wake == 0) {
        workers_.notify(1); // the source is free again, and whoever looked meanwhile went away
    }
    if (!seat.carried.empty()) carry(seat, 0, false);
    return true;
}

bool Core::pump(SeatState& seat, std::size_t stage) {
    Growing& growing = seat.growing[stage];
    Family& family = *growing.family;
    const auto ahead = static_cast<std::int64_t>(children_ahead * workers_.threads());
    const bool starving = starving_.load(std::memory_order_relaxed) == &family ||
                          urgent_root_.load(std::memory_order_relaxed) == family.root;
    if (!starving && !pressed_.load(std::memory_order_relaxed)) {
        if (governor_.verdict() == Verdict::hold) return false;
    }
    const auto room = static_cast<std::size_t>(std::max<std::int64_t>(ahead - points_[stage + 1].queue.backlog(), 1));
    const std::size_t wanted = std::min(room, most_carried);
    std::array<Payload*, most_carried> payloads{};
    seat.carried.clear();
    for (std::size_t i = 0; i < wanted; ++i) {
        Slot& slot = seat.free.take();
        slot.word.fill(seat.index);
        seat.carried.push_back(&slot);
        payloads[i] = &slot.payload;
    }
    std::size_t made = 0;
    bool broken = false;
    const auto start = Clock::now();
    try {
        made = growing.expansion->take(std::span(payloads).first(wanted));
    } catch (...) {
        // Children that were made before the exception stand; the parent counts as failed with what is missing.
        while (made < wanted && payloads[made]->object() != nullptr) ++made;
        broken = true;
        Item item{&family.payload, Outcome::kept, family.parent};
        fail(item);
        family.broken = true;
        if (!family.gathers) ++seat.failed; // the gather counts its parent itself
    }
    seat.stages[stage].nanoseconds += between(start, Clock::now());
    for (std::size_t i = 0; i < made; ++i) {
        Slot& slot = *seat.carried[i];
        adopt(slot, family, family.root);
        slot.word.carry(seat.index);
    }
    for (std::size_t i = made; i < wanted; ++i) free_slot(seat, *seat.carried[i]);
    seat.carried.resize(made);
    seat.candidates += made;
    if (family.gathers) family.unfinished.expect(made);
    for (Slot* slot : seat.carried) slot->chunk = family.entries.append(slot->index + 1);
    pass_over_journaled(seat);
    // Each child that is carried holds a pin on all its parents, as one taken from a queue would. Ours keeps them in
    // memory meanwhile.
    for (std::size_t i = 0; i < seat.carried.size(); ++i) {
        if (!pin(seat, &family))
            throw Error(ErrorCode::runtime, "making children", to_string(family.key), "a parent moved while pinned");
    }
    const bool last = broken || made < wanted;
    Growing ended;
    if (last) ended = std::exchange(growing, {});
    if (!seat.carried.empty()) {
        const std::size_t next = stage + 1;
        if (plan_.stages[next]->kind == Kind::map || points_[next].forks) {
            publish(seat, seat.carried, next);
        } else {
            carry(seat, next, false);
        }
    }
    if (last) close_family(seat, std::move(ended));
    return true;
}

void Core::close_family(SeatState& seat, Growing growing) {
    Family& family = *growing.family;
    growing.expansion.reset();
    const bool gathers = family.gathers; // once closed, the drain may free the family
    if (!gathers && !family.broken) note_family(seat, family);
    if (!family.kept) family.payload.reset();
    unpin(seat, &family);
    close(family);
    if (gathers) {
        seat.ended.push_back(&family);
    } else {
        drain(seat, false);
    }
}

void Core::expand(SeatState& seat, std::size_t stage) {
    Slot& slot = *seat.carried.front();
    std::vector<Slot*> rest(seat.carried.begin() + 1, seat.carried.end());
    if (!rest.empty()) publish(seat, rest, stage);
    auto family = std::make_unique<Family>();
    family->parent = &slot;
    family->above = slot.family;
    family->key = key(Item{nullptr, Outcome::kept, &slot});
    family->root = slot.root.load(std::memory_order_relaxed);
    family->stage = stage;
    family->gathers = plan_.stages[stage]->gathers;
    family->keyed = keyed_[stage];
    family->kept = plan_.stages[stage]->keeps_parent;
    Item item{&slot.payload, Outcome::kept, &slot};
    std::unique_ptr<Expansion> expansion;
    ++seat.stages[stage].candidates;
    ++seat.stages[stage].calls;
    try {
        expansion = plan_.stages[stage]->expand(item, *family, local(seat, stage), *this);
    } catch (...) {
        fail(item);
    }
    if (expansion == nullptr) {
        settle(seat, slot, State::failed);
        return;
    }
    discharge(seat, slot);
    if (family->kept) {
        family->charged = family->payload.type()->footprint(family->payload.object());
        tell(seat, static_cast<std::int64_t>(family->charged));
        // The expansion's own pin: in memory from the start, so this cannot fail.
        if (family->pins.try_pin() != Pin::held)
            throw Error(ErrorCode::runtime, "expanding", to_string(family->key), "a new parent is not in memory");
    }
    seat.growing[stage] = {family.get(), std::move(expansion)};
    const bool gathers = family->gathers;
    slot.children = family.release(); // freed by the drain when it has passed the last child, or by the gather
    slot.word.settle(gathers ? State::gathering : State::expanded);
    pump(seat, stage);
}

/// seat.items are seat.carried's.
bool Core::run_stage(SeatState& seat, std::size_t stage) {
    seat.stages[stage].candidates += seat.items.size();
    ++seat.stages[stage].calls;
    try {
        plan_.stages[stage]->run(seat.items, local(seat, stage), *this);
    } catch (...) {
        for (Item& item : seat.items) fail(item);
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < seat.items.size(); ++i) {
        Slot* slot = seat.carried[i];
        switch (seat.items[i].outcome) {
        case Outcome::kept:
            seat.carried[kept] = slot;
            seat.items[kept++] = seat.items[i];
            break;
        case Outcome::dropped:
            settle(seat, *slot, State::dropped);
            break;
        case Outcome::failed:
            settle(seat, *slot, State::failed);
            break;
        }
    }
    seat.carried.resize(kept);
    seat.items.resize(kept);
    return kept > 0;
}

void Core::carry(SeatState& seat, std::size_t stage, bool inside) {
    const std::size_t first = stage;
    const std::size_t count = seat.carried.size();
    // Full groups are of candidates so small that the clock would be a good part of their cost: one in so many stands
    // for all.
    const bool sampled = count == most_carried && plan_.stages[first]->kind != Kind::batch;
    const bool timed = !sampled || ++seat.groups % groups_a_sample == 0;
    const std::uint64_t stands_for = sampled ? groups_a_sample : 1;
    const auto start = timed ? Clock::now() : Clock::time_point{};
    auto entered = start;
    seat.items.clear();
    for (Slot* slot : seat.carried) seat.items.push_back({&slot->payload, Outcome::kept, slot});
    for (;; ++stage, inside = false) {
        const Stage& what = *plan_.stages[stage];
        if (what.kind == Kind::sink) {
            park(seat);
            break;
        }
        if (points_[stage].forks && !inside) {
            publish(seat, seat.carried, stage);
            break;
        }
        if (what.kind == Kind::fan_out) {
            if (!can_take_in(seat, stage)) {
                publish(seat, seat.carried, stage);
            } else {
                expand(seat, stage);
            }
            if (inside) step_out(seat, stage);
            break;
        }
        if (what.kind == Kind::gather) {
            park(seat);
            break;
        }
        std::size_t cells = 0;
        if (routers_[stage] != nullptr) {
            for (const Slot* slot : seat.carried) cells += what.cells(slot->payload);
        }
        const bool some = run_stage(seat, stage);
        const auto left = timed ? Clock::now() : entered;
        seat.stages[stage].nanoseconds += stands_for * between(entered, left);
        if (routers_[stage] != nullptr)
            routers_[stage]->record_cpu(cells, std::chrono::nanoseconds(between(entered, left)));
        entered = left;
        if (inside) step_out(seat, stage);
        if (!some) break;
        // After a batch the road forks: what is more than a group is for others.
        const std::size_t group = carry_size(stage + 1);
        if (what.kind == Kind::batch && seat.carried.size() > group && plan_.stages[stage + 1]->kind == Kind::map &&
            !points_[stage + 1].forks) {
            const std::vector<Slot*> rest(seat.carried.begin() + static_cast<std::ptrdiff_t>(group),
                                          seat.carried.end());
            seat.carried.resize(group);
            seat.items.resize(group);
            publish(seat, rest, stage + 1);
        }
    }
    if (!timed) return;
    // Others read the average, and a lost update costs nothing. One sample moves it by at most a factor of two, so that
    // being descheduled in the middle of a group does not make groups of one.
    std::atomic<std::uint64_t>& average = points_[first].nanoseconds;
    const std::uint64_t old = average.load(std::memory_order_relaxed);
    std::uint64_t sample = between(start, Clock::now()) / std::max<std::size_t>(count, 1) + 1;
    if (old != 0) sample = (7 * old + std::min(sample, 8 * old)) / 8 + (sample > old ? 1 : 0);
    average.store(sample, std::memory_order_relaxed);
}

/// A new member of the family; it is appended next.
void Core::adopt(Slot& slot, Family& family, std::uint64_t root) noexcept {
    slot.family = &family;
    slot.ordinal = family.produced++;
    slot.arrived = false;
    slot.root.store(root, std::memory_order_relaxed);
}

} // namespace spillway::detail
