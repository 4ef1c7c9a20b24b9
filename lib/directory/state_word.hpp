// A candidate's own lock: one 64-bit atomic word, and every step a candidate can take.
//
//     Free -> Filling -> Ready -> Claimed -> Parked -> Done -> Free
//
//     cell.fill(); ...construct the payload...; Hint hint = cell.publish(slot, stage, Place::memory);   // owner
//     if (auto claim = cell.try_claim(hint.version, owner)) { ...the payload is ours... }               // one winner
//
// Guarantee: whoever moves the word out of Ready or Parked owns the payload until the next step, and sees all that its
// last owner wrote. Mechanism: steps out of a state that anyone may leave (Ready, Parked) are compare-and-swaps of the
// whole word; steps out of a state that has one owner (Filling, Claimed, Spilling, Loading, Done) are stores, since no
// other thread may write the word then. Every step into Ready raises the version, so that older hints no longer match;
// the version survives Free.
#pragma once

#include "base/atomics.hpp"

#include <cstdint>
#include <optional>

namespace spillway {

enum class State : std::uint8_t {
    free,      ///< No candidate.
    filling,   ///< Its maker is constructing the payload.
    ready,     ///< Anyone may claim it for its stage; one hint for this version is in that stage's queue.
    claimed,   ///< A worker or a feeder has it.
    parked,    ///< It waits for its turn in the order or, before a stage that batches by key, for its batch.
    spilling,  ///< Being written to disk, out of ready or parked.
    loading,   ///< Being read back, or made again, by its claimer, or read back ahead of need.
    expanded,  ///< A parent whose children stand in the order in its place.
    gathering, ///< A parent that takes its own place again once all its children have ended.
    dropped,   ///< Ended without a result: a stage filtered it out.
    failed,    ///< Ended without a result: a stage threw and the run goes on.
    done,      ///< Taken out of parked; the sink has it, or its batch is being put together.
};

/// Where a candidate's payload is.
enum class Place : std::uint8_t {
    memory,
    disk,
    recipe, ///< Nowhere: whoever needs it makes it again.
};

/// What lies in a queue. Believed only after the claim it leads to.
struct Hint {
    std::uint32_t slot = 0;
    std::uint32_t version = 0;
};

/// The word, unpacked. Bits from the top: version 32, stage 8, state 8, place 4, owner 12.
struct StateWord {
    std::uint32_t version = 0;
    std::uint8_t stage = 0;
    State state = State::free;
    Place place = Place::memory;
    std::uint16_t owner = 0; ///< The seat that owns it, for messages and tests; below max_owner.

    static constexpr std::uint16_t max_owner = 1U << 12U;

    [[nodiscard]] constexpr std::uint64_t packed() const noexcept {
        return std::uint64_t{version} << 32U | std::uint64_t{stage} << 24U | std::uint64_t(state) << 16U |
               std::uint64_t(place) << 12U | (owner & (max_owner - 1U));
    }
    [[nodiscard]] static constexpr StateWord unpacked(std::uint64_t bits) noexcept {
        return {static_cast<std::uint32_t>(bits >> 32U), static_cast<std::uint8_t>(bits >> 24U),
                static_cast<State>((bits >> 16U) & 0xffU), static_cast<Place>((bits >> 12U) & 0xfU),
                static_cast<std::uint16_t>(bits & (max_owner - 1U))};
    }
    friend constexpr bool operator==(const StateWord&, const StateWord&) = default;
};

template <class Atomics = StandardAtomics>
class StateCell {
public:
    /// For scans and the drain: what the word was a moment ago. Acquire: pairs with the release of park(), drop(),
    /// fail() and expand(), so that what led there may be read by the one thread that those states belong to (the
    /// drainer).
    [[nodiscard]] StateWord peek() const noexcept { return StateWord::unpacked(word_.load(std::memory_order_acquire)); }

    // Steps of the owner. Only the thread that took the slot out of the free list, claimed it, or took it out of
    // Parked.

    /// Free -> Filling. Raises the version as well, so that what a scan saw of the slot's last tenant matches nothing
    /// of this one.
    void fill(std::uint16_t owner) noexcept { store({version() + 1, 0, State::filling, Place::memory, owner}); }

    /// Filling -> Claimed, when its maker carries it on itself.
    void carry(std::uint16_t owner) noexcept { store({version(), 0, State::claimed, Place::memory, owner}); }

    /// Filling, Claimed, Spilling, Loading or Done -> Ready. Release: pairs with the acquire of try_claim(). The caller
    /// owes one hint.
    [[nodiscard]] std::uint32_t publish(std::uint8_t stage, Place place) noexcept {
        const std::uint32_t next = version() + 1;
        store({next, stage, State::ready, place, 0});
        return next;
    }

    /// Claimed or Spilling -> Parked. Release: pairs with the acquire of try_take() and peek(). The caller owes one
    /// drain. With a stage it waits for the others of its batch there, not for its turn in the order.
    void park(Place place, std::uint8_t stage = last_stage) noexcept {
        store({version(), stage, State::parked, place, 0});
    }

    /// Claimed -> Expanded, Gathering, Dropped or Failed. Release, as park().
    void settle(State state) noexcept { store({version(), last_stage, state, Place::memory, 0}); }

    /// Loading -> Claimed, with the payload in memory again.
    void loaded(std::uint16_t owner) noexcept { store({version(), stage(), State::claimed, Place::memory, owner}); }

    /// Any owned state -> Free.
    void release() noexcept { store({version(), 0, State::free, Place::memory, 0}); }

    // Steps that anyone may try. Acquire on success: pairs with the release of the step into Ready or Parked.

    /// Ready(version) -> Claimed if in memory, else Loading. Empty if the hint is stale or another was faster.
    [[nodiscard]] std::optional<StateWord> try_claim(std::uint32_t hinted_version, std::uint16_t owner) noexcept {
        std::uint64_t bits = word_.load(std::memory_order_relaxed);
        const StateWord seen = StateWord::unpacked(bits);
        if (seen.version != hinted_version || seen.state != State::ready) return std::nullopt;
        StateWord next = seen;
        next.state = seen.place == Place::memory ? State::claimed : State::loading;
        next.owner = owner;
        if (!exchange(bits, next)) return std::nullopt;
        return seen;
    }

    /// Ready or Parked in memory, exactly as seen -> Spilling.
    [[nodiscard]] bool try_spill(const StateWord& seen, std::uint16_t owner) noexcept {
        if ((seen.state != State::ready && seen.state != State::parked) || seen.place != Place::memory) return false;
        StateWord next = seen;
        next.state = State::spilling;
        next.owner = owner;
        return exchange(seen.packed(), next);
    }

    /// Ready or Parked on disk, exactly as seen -> Loading, ahead of need: then loaded(), and back to where it was.
    [[nodiscard]] bool try_load(const StateWord& seen, std::uint16_t owner) noexcept {
        if ((seen.state != State::ready && seen.state != State::parked) || seen.place != Place::disk) return false;
        StateWord next = seen;
        next.state = State::loading;
        next.owner = owner;
        return exchange(seen.packed(), next);
    }

    /// Parked, exactly as seen -> Done (the drainer, a gather that collects its children, or whoever takes a batch).
    [[nodiscard]] bool try_take(const StateWord& seen, std::uint16_t owner) noexcept {
        if (seen.state != State::parked) return false;
        StateWord next = seen;
        next.state = State::done;
        next.owner = owner;
        return exchange(seen.packed(), next);
    }

    /// The stage of a candidate that has passed all stages.
    static constexpr std::uint8_t last_stage = 0xff;

private:
    [[nodiscard]] std::uint32_t version() const noexcept {
        return StateWord::unpacked(word_.load(std::memory_order_relaxed)).version;
    }
    [[nodiscard]] std::uint8_t stage() const noexcept {
        return StateWord::unpacked(word_.load(std::memory_order_relaxed)).stage;
    }
    void store(const StateWord& next) noexcept { word_.store(next.packed(), std::memory_order_release); }
    bool exchange(std::uint64_t expected, const StateWord& next) noexcept {
        return word_.compare_exchange_strong(expected, next.packed(), std::memory_order_acquire,
                                             std::memory_order_relaxed);
    }

    typename Atomics::template atomic<std::uint64_t> word_{0};
};

} // namespace spillway
