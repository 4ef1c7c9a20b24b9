// The seam between the typed faces of a pipeline and its compiled core: stages that work on erased payloads.
#pragma once

#include "spillway/candidate.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spillway::detail {

enum class Outcome : std::uint8_t { kept, dropped, failed };

/// One candidate as a stage sees it.
struct Item {
    Payload* payload = nullptr;
    Outcome outcome = Outcome::kept;
    void* slot = nullptr; ///< The core's.
};

/// What a stage may ask of the run it is part of.
class Run {
public:
    [[nodiscard]] virtual Key key(const Item& item) const = 0;
    [[nodiscard]] virtual std::pmr::memory_resource& memory(const Item& item) = 0;
    /// What the item was fanned out from; null: it is a source's.
    [[nodiscard]] virtual Parent* parent(const Item& item) const noexcept = 0;
    [[nodiscard]] virtual bool stopping() const noexcept = 0;
    /// The item's stage threw the exception being handled.
    virtual void fail(Item& item) = 0;
    /// The calling stage is about to wait for something else than the CPU; and it has waited.
    virtual void begin_blocking() = 0;
    virtual void end_blocking() noexcept = 0;

protected:
    ~Run() = default;
};

/// A worker's own state of a stage, made and destroyed on that worker's thread; or one that is lent to it.
class Local {
public:
    virtual ~Local() = default;
};

template <class State>
struct LocalOf final : Local {
    template <class Factory>
    LocalOf(std::in_place_t, Factory& factory) : state(factory()) {}
    State state;
};

/// What stages borrow their state from. Thread safety: any thread.
class Lender {
public:
    Lender() = default;
    Lender(const Lender&) = delete;
    Lender& operator=(const Lender&) = delete;

    /// Null: all are lent.
    [[nodiscard]] virtual Local* try_borrow() noexcept = 0;
    virtual void give_back(Local* thing) noexcept = 0;

protected:
    ~Lender() = default;
};

/// Children of one parent, pulled by the core.
class Expansion {
public:
    virtual ~Expansion() = default;
    /// Makes children in the empty payloads given; how many. Fewer than asked for: there are no more.
    virtual std::size_t take(std::span<Payload* const> out) = 0;
};

class Source {
public:
    virtual ~Source() = default;
    /// As Expansion::take.
    virtual std::size_t take(std::span<Payload* const> out) = 0;
    /// How many items there are in all; 0 is unknown.
    [[nodiscard]] virtual std::size_t size() const { return 0; }
};

enum class Kind : std::uint8_t { map, batch, fan_out, gather, sink };

class Stage {
public:
    Stage(Kind stage_kind, std::string stage_name) : kind(stage_kind), name(std::move(stage_name)) {}
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;
    virtual ~Stage() = default;

    /// map, batch: replaces each payload by its result, or sets the outcome to dropped. sink: reads the payloads.
    /// A map tells run.fail() of each candidate whose function threw; the others throw, and all their items have
    /// failed.
    virtual void run(std::span<Item> items, Local* local, Run& run);

    /// fan_out: moves the item's payload into the family and starts to make its children.
    virtual std::unique_ptr<Expansion> expand(Item& item, Parent& family, Local* local, Run& run);

    /// gather: makes the item's payload from the family's parent and its children that have a result, in order.
    virtual void gather(Item& item, Parent& family, std::span<Item> children, Local* local, Run& run);

    /// batch: the form that runs on a device, where the stage has one.
    [[nodiscard]] virtual class DeviceForm* device_form() noexcept { return nullptr; }

    /// sink: the candidate with this key and all below it have been given.
    virtual void end(const Key& key);

    /// sink: of the results that it is given.
    [[nodiscard]] virtual const PayloadType* result_type() const noexcept { return nullptr; }

    /// Null where the stage has no state of its own.
    [[nodiscard]] virtual std::unique_ptr<Local> make_local() const { return nullptr; }

    /// batch: the cost of one candidate in cells.
    [[nodiscard]] virtual std::size_t cells(const Payload&) const { return 1; }

    Kind kind;
    std::string name;
    std::size_t limit = 0;       ///< How many workers may be inside at once; 0 is any number.
    std::size_t batch_cells = 0; ///< batch: as many cells make a full one.
    bool by_key = false;         ///< batch: forms that are equivalent, not exact.
    bool keeps_parent = false;   ///< fan_out: children or a gather look into the parent.
    bool has_local = false;
    std::size_t local_bytes = 0; ///< What a worker's state holds, for the budget.
    Lender* lender = nullptr;    ///< Where its state is borrowed, while a worker is inside.
    bool gathers = false;        ///< fan_out: a gather closes it.
    /// What is left of a payload that is dropped goes into another, which may be the same; without allocating, and
    /// never throws. None: nothing is left.
    std::function<void(const Payload& made, Payload& left)> recipe = {};
    /// Makes an item's payload again as the stage left it, from the one that holds its recipe, or none. Called by any
    /// worker, several at once; throws what the user's function throws. None: its results can only be kept.
    std::function<void(Item& item, Run& run)> rebuild = {};
};

/// A pipeline as the core runs it: a source, stages in order, the last of them a sink.
struct Plan {
    std::string name;
    std::unique_ptr<Source> source; ///< None: a host pushes.
    std::vector<std::unique_ptr<Stage>> stages;
};

} // namespace spillway::detail
