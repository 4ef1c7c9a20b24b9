// The typed faces of stages: thin templates that make erased stages of functions.
#pragma once

#include "spillway/candidate.hpp"
#include "spillway/detail/stage.hpp"
#include "spillway/generator.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>

namespace spillway {

/// While it lives, the stage waits for something else than the CPU, a disk or a server say, and the pool may run one
/// thread more. Made by Context::blocking(); ends on the same thread.
class blocking_scope {
public:
    explicit blocking_scope(detail::Run& run) : run_(run) { run_.begin_blocking(); }
    blocking_scope(const blocking_scope&) = delete;
    blocking_scope& operator=(const blocking_scope&) = delete;
    ~blocking_scope() { run_.end_blocking(); }

private:
    detail::Run& run_;
};

/// What a stage's function may ask for as its last parameter. Valid during the call.
class Context {
public:
    Context(detail::Run& run, const detail::Item& item) noexcept : run_(&run), item_(&item) {}

    [[nodiscard]] Key key() const { return run_->key(*item_); }
    /// Memory that lives as long as the candidate, given back in one step when it ends. One stage at a time.
    [[nodiscard]] std::pmr::memory_resource& memory() const { return run_->memory(*item_); }
    /// The nearest parent of this type that a fan-out above keeps for its children: for rebuild functions. Throws
    /// Error(usage) if there is none.
    template <class T>
    [[nodiscard]] shared<T> parent() const {
        detail::Parent* const found = detail::nearest_parent<T>(run_->parent(*item_));
        if (found == nullptr)
            throw Error(ErrorCode::usage, "looking for a candidate's parent", to_string(key()),
                        "no fan-out above keeps one of this type: see shared");
        return shared<T>(*found);
    }
    /// Whether the run is ending early: a long stage may give up by throwing.
    [[nodiscard]] bool stopping() const noexcept { return run_->stopping(); }
    /// `const auto waiting = context.blocking();` Costs a lock where it starts a thread.
    [[nodiscard]] blocking_scope blocking() const { return blocking_scope(*run_); }

private:
    detail::Run* run_;
    const detail::Item* item_;
};

/// Candidates that a stage takes together: a range of references. Nothing is moved.
template <class T>
class batch {
public:
    class iterator {
    public:
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        iterator() = default;
        explicit iterator(const detail::Item* at) noexcept : at_(at) {}
        T& operator*() const noexcept { return at_->payload->template as<T>(); }
        T* operator->() const noexcept { return &**this; }
        iterator& operator++() noexcept {
            ++at_;
            return *this;
        }
        iterator operator++(int) noexcept { return iterator(at_++); }
        friend bool operator==(const iterator&, const iterator&) = default;

    private:
        const detail::Item* at_ = nullptr;
    };

    explicit batch(std::span<detail::Item> items) noexcept : items_(items) {}
    [[nodiscard]] iterator begin() const noexcept { return iterator(items_.data()); }
    [[nodiscard]] iterator end() const noexcept { return iterator(items_.data() + items_.size()); }
    [[nodiscard]] std::size_t size() const noexcept { return items_.size(); }
    [[nodiscard]] bool empty() const noexcept { return items_.empty(); }
    [[nodiscard]] T& operator[](std::size_t i) const noexcept { return items_[i].payload->template as<T>(); }

private:
    std::span<detail::Item> items_;
};

namespace detail {

struct NoLocal {};

/// In place of a factory: the state is lent.
struct Lent {};

template <class T>
struct unwrapped {
    using type = T;
    static constexpr bool optional = false;
};
template <class T>
struct unwrapped<std::optional<T>> {
    using type = T;
    static constexpr bool optional = true;
};

/// Calls f with what it takes of (in, state, context), in this order. `In` as rvalue where f takes it so, else as
/// lvalue.
template <class State, class F, class In>
decltype(auto) invoke_stage(F& f, In& in, State* state, Context& context) {
    using Moved = std::remove_reference_t<In>&&;
    if constexpr (!std::is_same_v<State, NoLocal>) {
        if constexpr (std::is_invocable_v<F&, In&, State&, Context&>) {
            return std::invoke(f, in, *state, context);
        } else if constexpr (std::is_invocable_v<F&, Moved, State&, Context&>) {
            return std::invoke(f, std::move(in), *state, context);
        } else if constexpr (std::is_invocable_v<F&, In&, State&>) {
            return std::invoke(f, in, *state);
        } else {
            static_assert(std::is_invocable_v<F&, Moved, State&>,
                          "the stage's function cannot be called with the candidate and the worker's state");
            return std::invoke(f, std::move(in), *state);
        }
    } else if constexpr (std::is_invocable_v<F&, Moved, Context&>) {
        return std::invoke(f, std::move(in), context);
    } else if constexpr (std::is_invocable_v<F&, In&, Context&>) {
        return std::invoke(f, in, context);
    } else if constexpr (std::is_invocable_v<F&, Moved>) {
        return std::invoke(f, std::move(in));
    } else {
        static_assert(std::is_invocable_v<F&, In&>,
                      "the stage's function cannot be called with the candidate that comes to it");
        return std::invoke(f, in);
    }
}

template <class State, class F, class In>
using stage_result = decltype(invoke_stage<State>(std::declval<F&>(), std::declval<In&>(), std::declval<State*>(),
                                                  std::declval<Context&>()));

/// Shared by all stages that may have a worker's state.
template <class State, class Factory>
class StageWithLocal : public Stage {
public:
    StageWithLocal(Kind stage_kind, std::string stage_name, Factory factory)
        : Stage(stage_kind, std::move(stage_name)), factory_(std::move(factory)) {
        has_local = !std::is_same_v<State, NoLocal>;
    }
    [[nodiscard]] std::unique_ptr<Local> make_local() const override {
        if constexpr (std::is_same_v<State, NoLocal> || std::is_same_v<Factory, Lent>) {
            return nullptr;
        } else {
            return std::make_unique<LocalOf<State>>(std::in_place, factory_);
        }
    }

protected:
    static State* state_of(Local* local) noexcept {
        if constexpr (std::is_same_v<State, NoLocal>) {
            return nullptr;
        } else {
            return &static_cast<LocalOf<State>*>(local)->state;
        }
    }

private:
    Factory factory_;
};

template <class In, class Out, class State, class F, class Factory>
class MapStage final : public StageWithLocal<State, Factory> {
public:
    MapStage(std::string stage_name, F f, Factory factory)
        : StageWithLocal<State, Factory>(Kind::map, std::move(stage_name), std::move(factory)), f_(std::move(f)) {}

    void run(std::span<Item> items, Local* local, Run& run) override {
        using Result = stage_result<State, F, In>;
        State* state = this->state_of(local);
        for (Item& item : items) {
            Context context(run, item);
            try {
                In& in = item.payload->template as<In>();
                if constexpr (std::is_void_v<Result>) {
                    invoke_stage(f_, in, state, context);
                } else if constexpr (unwrapped<Result>::optional) {
                    Result result = invoke_stage(f_, in, state, context);
                    if (result) {
                        item.payload->template emplace<Out>(*std::move(result));
                    } else {
                        item.outcome = Outcome::dropped;
                    }
                } else {
                    Out result = invoke_stage(f_, in, state, context);
                    item.payload->template emplace<Out>(std::move(result));
                }
            } catch (...) {
                run.fail(item);
            }
        }
    }

private:
    F f_;
};

/// Children from a generator or from any range.
template <class Out, class Children>
class ExpansionOf final : public Expansion {
public:
    explicit ExpansionOf(Children children) : children_(std::move(children)) {}

    std::size_t take(std::span<Payload* const> out) override {
        std::size_t made = 0;
        if constexpr (requires { children_.next(); }) {
            while (made < out.size()) {
                std::optional<Out> next = children_.next();
                if (!next) break;
                out[made++]->template emplace<Out>(*std::move(next));
            }
        } else {
            if (!begun_) at_ = std::ranges::begin(children_);
            begun_ = true;
            for (; made < out.size() && at_ != std::ranges::end(children_); ++at_)
                out[made++]->template emplace<Out>(std::move(*at_));
        }
        return made;
    }

private:
    template <class C>
    struct iterator_of {
        using type = std::ranges::iterator_t<C>;
    };
    template <class T>
    struct iterator_of<generator<T>> {
        using type = NoLocal;
    };
    Children children_;
    typename iterator_of<Children>::type at_{};
    bool begun_ = false;
};

template <class Children>
struct child_of {
    using type = std::ranges::range_value_t<Children>;
};
template <class T>
struct child_of<generator<T>> {
    using type = T;
};

/// Whether a fan-out's function asks for its parent to be kept for the children.
template <class In, class State, class F>
inline constexpr bool takes_shared =
    std::is_invocable_v<F&, shared<In>&> || std::is_invocable_v<F&, shared<In>&, State&> ||
    std::is_invocable_v<F&, shared<In>&, Context&> || std::is_invocable_v<F&, shared<In>&, State&, Context&>;

template <class In, class Out, class State, class F, class Factory>
class FanOutStage final : public StageWithLocal<State, Factory> {
public:
    FanOutStage(std::string stage_name, F f, Factory factory)
        : StageWithLocal<State, Factory>(Kind::fan_out, std::move(stage_name), std::move(factory)), f_(std::move(f)) {
        this->keeps_parent = takes_shared<In, State, F>;
    }

    std::unique_ptr<Expansion> expand(Item& item, Parent& family, Local* local, Run& run) override {
        In& in = family.payload.emplace<In>(std::move(item.payload->template as<In>()));
        item.payload->reset();
        State* state = this->state_of(local);
        Context context(run, item);
        if constexpr (takes_shared<In, State, F>) {
            shared<In> parent(family);
            return expansion(invoke_stage(f_, parent, state, context));
        } else {
            // As an lvalue: a coroutine may hold on to it, and it lives in the family until the generator has ended.
            return expansion(invoke_stage<State, F, In>(f_, in, state, context));
        }
    }

private:
    template <class Children>
    static std::unique_ptr<Expansion> expansion(Children&& children) {
        return std::make_unique<ExpansionOf<Out, std::remove_cvref_t<Children>>>(std::forward<Children>(children));
    }
    F f_;
};

template <class T, class F, class State, class Factory>
class BatchStage final : public StageWithLocal<State, Factory> {
public:
    BatchStage(std::string stage_name, F f, Factory factory, std::function<std::size_t(const T&)> cells,
               std::size_t full)
        : StageWithLocal<State, Factory>(Kind::batch, std::move(stage_name), std::move(factory)), f_(std::move(f)),
          cells_(std::move(cells)) {
        this->batch_cells = full;
    }
    void run(std::span<Item> items, Local* local, Run&) override {
        batch<T> together(items);
        if constexpr (std::is_same_v<State, NoLocal>) {
            std::invoke(f_, together);
        } else {
            std::invoke(f_, together, *this->state_of(local));
        }
    }
    [[nodiscard]] DeviceForm* device_form() noexcept override { return form.get(); }
    [[nodiscard]] std::size_t cells(const Payload& payload) const override {
        return cells_ ? cells_(payload.as<T>()) : 1;
    }

    std::unique_ptr<DeviceForm> form; ///< None: CPUs only.

private:
    F f_;
    std::function<std::size_t(const T&)> cells_;
};

template <class ParentType, class In, class Out, class F>
class GatherStage final : public Stage {
public:
    GatherStage(std::string stage_name, F f) : Stage(Kind::gather, std::move(stage_name)), f_(std::move(f)) {}
    void gather(Item& item, Parent& family, std::span<Item> children, Local*, Run&) override {
        batch<In> together(children);
        item.payload->template emplace<Out>(std::invoke(f_, family.payload.as<ParentType>(), together));
    }

private:
    F f_;
};

template <class T, class F>
class SinkStage final : public Stage {
public:
    SinkStage(std::string stage_name, F f, std::function<void(const Key&)> on_end)
        : Stage(Kind::sink, std::move(stage_name)), f_(std::move(f)), on_end_(std::move(on_end)) {}
    void run(std::span<Item> items, Local*, Run& run) override {
        for (Item& item : items) {
            if constexpr (std::is_invocable_v<F&, T&, Context&>) {
                Context context(run, item);
                std::invoke(f_, item.payload->template as<T>(), context);
            } else {
                std::invoke(f_, item.payload->template as<T>());
            }
        }
    }
    void end(const Key& key) override {
        if (on_end_) on_end_(key);
    }
    [[nodiscard]] const PayloadType* result_type() const noexcept override { return &payload_type<T>; }

private:
    F f_;
    std::function<void(const Key&)> on_end_;
};

/// `Range` is a reference where the range is looked at, and a value where it was given away.
template <class T, class Range>
class RangeSource final : public Source {
public:
    explicit RangeSource(Range&& items) : items_(std::forward<Range>(items)), at_(std::ranges::begin(items_)) {
        if constexpr (std::ranges::sized_range<Range>) size_ = std::ranges::size(items_);
    }
    std::size_t take(std::span<Payload* const> out) override {
        std::size_t made = 0;
        for (; made < out.size() && at_ != std::ranges::end(items_); ++at_) out[made++]->template emplace<T>(*at_);
        return made;
    }
    [[nodiscard]] std::size_t size() const override { return size_; }

private:
    Range items_;
    std::ranges::iterator_t<Range> at_;
    std::size_t size_ = 0;
};

template <class T>
class GeneratorSource final : public Source {
public:
    explicit GeneratorSource(generator<T> items) : items_(std::move(items)) {}
    std::size_t take(std::span<Payload* const> out) override {
        std::size_t made = 0;
        while (made < out.size()) {
            std::optional<T> next = items_.next();
            if (!next) break;
            out[made++]->template emplace<T>(*std::move(next));
        }
        return made;
    }

private:
    generator<T> items_;
};

template <class T, class Range>
std::unique_ptr<Source> make_source(Range&& items) {
    if constexpr (std::is_same_v<std::remove_cvref_t<Range>, generator<T>>) {
        return std::make_unique<GeneratorSource<T>>(std::forward<Range>(items));
    } else {
        using Held = std::conditional_t<std::is_lvalue_reference_v<Range>, Range, std::remove_cvref_t<Range>>;
        return std::make_unique<RangeSource<T, Held>>(std::forward<Range>(items));
    }
}

} // namespace detail
} // namespace spillway
