// Stages that have their function but not yet their neighbours: what a Builder holds until it knows what comes in.
//
//     Pending<MapKind, F> pending("call", f);
//     auto with_state = std::move(pending).with_local(factory, 0);       // the same stage, with a worker's state
//     std::move(with_state).template finish<In>(plan);                   // made, and last in the plan
#pragma once

#include "spillway/codec.hpp"
#include "spillway/detail/device_form.hpp"
#include "spillway/detail/typed.hpp"
#include "spillway/resources.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace spillway::detail {

struct FanOutKind;

/// `Kind` knows what comes out of a stage and how it is made; it holds what only stages of its kind have.
template <class Kind, class F, class State = NoLocal, class Factory = NoLocal>
struct Pending {
    std::string name;
    F f;
    Kind kind{};
    Factory factory{};
    std::size_t local_bytes = 0;
    std::size_t limit = 0;
    Lender* lender = nullptr;
    std::function<void(const Payload&, Payload&)> recipe = {};
    std::function<void(Item&, Run&)> rebuild = {};

    template <class In>
    using output = typename Kind::template output<F, State, In>::type;

    template <class NewFactory>
    auto with_local(NewFactory new_factory, std::size_t bytes) && {
        return Pending<Kind, F, std::invoke_result_t<NewFactory&>, NewFactory>{
            std::move(name), std::move(f), std::move(kind),   std::move(new_factory), bytes,
            limit,           nullptr,      std::move(recipe), std::move(rebuild)};
    }
    template <class T>
    auto with_resource(resources<T>& pool) && {
        static_assert(!std::is_same_v<Kind, FanOutKind>,
                      "a fan-out's children are made long after its function has returned: use .local()");
        return Pending<Kind, F, T, Lent>{std::move(name), std::move(f),      std::move(kind),   {}, 0, limit,
                                         &pool,           std::move(recipe), std::move(rebuild)};
    }
    template <class In>
    void finish(Plan& plan) && {
        auto stage = std::move(kind).template make<In, State>(std::move(name), std::move(f), std::move(factory));
        stage->local_bytes = local_bytes;
        stage->limit = limit;
        stage->lender = lender;
        stage->recipe = std::move(recipe);
        stage->rebuild = std::move(rebuild);
        plan.stages.push_back(std::move(stage));
    }
};

struct MapKind {
    template <class F, class State, class In>
    struct output {
        using raw = stage_result<State, F, In>;
        using type =
            typename std::conditional_t<std::is_void_v<raw>, unwrapped<In>, unwrapped<std::remove_cvref_t<raw>>>::type;
    };
    template <class In, class State, class F, class Factory>
    [[nodiscard]] auto make(std::string name, F f, Factory factory) && {
        using Out = typename output<F, State, In>::type;
        static_assert(Coded<Out>, "a stage's result must be able to spill: see codec.hpp");
        return std::make_unique<MapStage<In, Out, State, F, Factory>>(std::move(name), std::move(f),
                                                                      std::move(factory));
    }
};

struct FanOutKind {
    template <class F, class State, class In>
    struct output {
        using argument = std::conditional_t<takes_shared<In, State, F>, shared<In>, In>;
        using type = typename child_of<std::remove_cvref_t<stage_result<State, F, argument>>>::type;
    };
    template <class In, class State, class F, class Factory>
    [[nodiscard]] auto make(std::string name, F f, Factory factory) && {
        using Out = typename output<F, State, In>::type;
        static_assert(Coded<In>, "what is fanned out must be able to spill: see codec.hpp");
        static_assert(Coded<Out>, "a fan-out's children must be able to spill: see codec.hpp");
        return std::make_unique<FanOutStage<In, Out, State, F, Factory>>(std::move(name), std::move(f),
                                                                         std::move(factory));
    }
};

template <class T>
struct BatchKind {
    std::function<std::size_t(const T&)> cells;
    std::size_t full = 0;
    bool by_key = false;
    std::unique_ptr<DeviceForm> form = nullptr; ///< None: CPUs only.

    template <class F, class State, class In>
    struct output {
        using type = T;
    };
    template <class In, class State, class F, class Factory>
    [[nodiscard]] auto make(std::string name, F f, Factory factory) && {
        auto stage = std::make_unique<BatchStage<T, F, State, Factory>>(std::move(name), std::move(f),
                                                                        std::move(factory), std::move(cells), full);
        stage->form = std::move(form);
        stage->by_key = by_key;
        return stage;
    }
};

template <class ParentType>
struct GatherKind {
    template <class F, class State, class In>
    struct output {
        using type = std::remove_cvref_t<std::invoke_result_t<F&, ParentType&, batch<In>&>>;
    };
    template <class In, class State, class F, class Factory>
    [[nodiscard]] auto make(std::string name, F f, Factory) && {
        static_assert(std::is_same_v<State, NoLocal>, "a gather has no worker's state");
        using Out = typename output<F, State, In>::type;
        static_assert(Coded<Out>, "a gather's result must be able to spill: see codec.hpp");
        return std::make_unique<GatherStage<ParentType, In, Out, F>>(std::move(name), std::move(f));
    }
};

/// Before the first stage: what the source gives.
struct PendingNothing {
    template <class In>
    using output = In;
    template <class In>
    void finish(Plan&) && {
        static_assert(Coded<In>, "a source's items must be able to spill: see codec.hpp");
    }
};

} // namespace spillway::detail
