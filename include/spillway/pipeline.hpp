// Wires typed stages into a pipeline and runs it: candidates flow from a source through the stages to an ordered sink.
//
//     auto calling = spillway::pipeline<Region>("calling")
//                        .source(regions)                                      // any range or generator
//                        .fan_out("make", make_candidates).local(open_reader)  // Region -> Candidate, ...
//                        .batch("align", align, {.cells = cells})              // batch<Candidate>&, in place
//                        .map("call", genotype)                                // Candidate -> Call
//                        .in_order("write", [&](const Call& call) { vcf.write(call); });
//     spillway::Report report = calling.run({.memory = 2_GiB});
//
// Guarantee: the sink sees the results in the order of the source and, below it, of each fan-out, one at a time,
// whatever the number of threads and the memory. Stages run on any worker, several at once; a stage's function must
// allow that, or be given .limit(1). Errors: an exception of a stage ends the run, and run() throws it as Error with
// the candidate's key.
#pragma once

#include "spillway/candidate.hpp"
#include "spillway/detail/device_form.hpp"
#include "spillway/detail/pending.hpp"
#include "spillway/detail/run.hpp"
#include "spillway/detail/stage.hpp"
#include "spillway/detail/typed.hpp"
#include "spillway/generator.hpp"
#include "spillway/options.hpp"
#include "spillway/pool.hpp"
#include "spillway/resources.hpp"
#include "spillway/telemetry.hpp"

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>

namespace spillway {

/// What the two forms of a routed stage have in common.
enum class Forms : std::uint8_t {
    /// The same bytes: batches are cut and routed by load.
    exact,
    /// The same but for rounding, as of a float model: batches are cut and routed by key, so that the same devices give
    /// the same bytes again, whatever the load. A batch is up to 30 neighbours of one parent, or of the source, and
    /// waits for all of them. Where there is a device the first takes all; when it fails, after retries, the run ends.
    equivalent,
};

/// What a batch costs: a full batch is one whose candidates' cells add up to `full`.
template <class T>
struct BatchOptions {
    std::function<std::size_t(const T&)> cells = {}; ///< Cost of one candidate; none: 1.
    std::size_t full = 64;                           ///< Cells. A batch that nobody can fill leaves earlier.
    Forms forms = Forms::exact; ///< Of a routed stage. At most one is equivalent between two fan-outs.
};

/// A run that is going on. Move-only. Thread safety: push, try_push, close, cancel, progress and help from any thread;
/// wait once, when no other call is going on.
template <class T>
class Handle {
public:
    explicit Handle(std::unique_ptr<detail::RunHandle> run) : run_(std::move(run)) {}

    /// False: there is no room, and `item` is untouched. For pipelines without a source. Throws Error(usage) after
    /// close().
    [[nodiscard]] bool try_push(T&& item) { return run_->push(emplace, &item, false); }
    /// Waits for room. False: the run has been stopped.
    bool push(T item) { return run_->push(emplace, &item, true); }
    /// No more will be pushed.
    void close() { run_->close(); }
    /// Ends the run early; wait() then throws Error(cancelled).
    void cancel() { run_->cancel(); }
    [[nodiscard]] Progress progress() const { return run_->progress(); }
    /// Works on this run from the calling thread, as one more worker, until it has ended: for hosts that have threads
    /// of their own (see also tbb.hpp). Does not throw the run's Error.
    void help() { run_->help(); }
    /// Waits for the end. Throws the run's Error. Inside a stage of the same pool it works on this pipeline meanwhile.
    Report wait() { return run_->wait(); }

private:
    static void emplace(detail::Payload& payload, void* value) {
        payload.emplace<T>(std::move(*static_cast<T*>(value)));
    }
    std::unique_ptr<detail::RunHandle> run_;
};

/// A pipeline that has its sink. Holds what its functions captured by reference, and the source, so these must outlive
/// it.
template <class T>
class Pipeline {
public:
    explicit Pipeline(detail::Plan plan) : plan_(std::make_unique<detail::Plan>(std::move(plan))) {}

    /// Runs on a pool of its own until the source is exhausted. Throws the run's Error.
    Report run(const Options& options = {}) {
        need_source();
        return detail::RunHandle(*plan_, options).wait();
    }
    Report run(Pool& pool, const Options& options = {}) {
        need_source();
        return detail::RunHandle(*plan_, pool, options).wait();
    }
    /// Starts it; without a source the handle takes the items. One run at a time.
    [[nodiscard]] Handle<T> start(Pool& pool, const Options& options = {}) {
        return Handle<T>(std::make_unique<detail::RunHandle>(*plan_, pool, options));
    }

private:
    void need_source() const {
        if (plan_->source == nullptr)
            throw Error(ErrorCode::usage, "running " + plan_->name, "", "it has no source: use start() and push()");
    }
    std::unique_ptr<detail::Plan> plan_;
};

/// A pipeline being wired: `Pending` is its last stage, still open for .local(), .limit() and .rebuild(), and takes
/// `In`.
template <class Root, class In, class Pending>
class Builder {
public:
    Builder(detail::Plan plan, Pending pending) : plan_(std::move(plan)), pending_(std::move(pending)) {}

    /// What the pipeline starts from: a range or generator of Root. An lvalue range is looked at, not copied.
    template <class Range>
    [[nodiscard]] auto source(Range&& items) && {
        plan_.source = detail::make_source<Root>(std::forward<Range>(items));
        return std::move(*this);
    }

    /// One candidate in, one out: `f(In) -> Out`, `-> std::optional<Out>` (none: left out), or `f(In&) -> void` (in
    /// place). Any f may also take the worker's state (.local) as In's neighbour, and a Context& last.
    template <class F>
    [[nodiscard]] auto map(std::string name, F f) && {
        return std::move(*this).then(std::move(name), std::move(f), detail::MapKind{});
    }

    /// One candidate in, any number out: `f(In&) -> generator<Out>` or a range of Out; `f(shared<In>)` if the children
    /// look into it. The pool pulls the generator, and leaves it suspended while there is no room.
    template <class F>
    [[nodiscard]] auto fan_out(std::string name, F f) && {
        return std::move(*this).then(std::move(name), std::move(f), detail::FanOutKind{});
    }

    /// Many candidates at once, in place: `f(batch<In>&)`.
    template <class F, class Last = Pending, class Out = typename Last::template output<In>>
    [[nodiscard]] auto batch(std::string name, F f, BatchOptions<std::type_identity_t<Out>> options = {}) && {
        return std::move(*this).then(
            std::move(name), std::move(f),
            detail::BatchKind<Out>{std::move(options.cells), options.full, options.forms == Forms::equivalent});
    }

    /// A batched stage with two forms that give the same result (see Forms): `on_cpu` as for batch(), `on_device` an
    /// object with bytes, pack, launch and unpack (see device.hpp and detail/device_form.hpp) or a function of
    /// batch<In>&. Options::devices take batches where the router finds that it pays; without devices it is batch().
    template <class F, class Form, class Last = Pending, class Out = typename Last::template output<In>>
    [[nodiscard]] auto route(std::string name, F on_cpu, Form on_device,
                             BatchOptions<std::type_identity_t<Out>> options = {}) && {
        return std::move(*this).then(std::move(name), std::move(on_cpu),
                                     detail::BatchKind<Out>{std::move(options.cells), options.full,
                                                            options.forms == Forms::equivalent,
                                                            detail::make_device_form<Out>(std::move(on_device))});
    }

    /// All results of a parent's children, when the last has ended, also for none: `f(Parent&, batch<In>&) -> Out`.
    template <class Parent, class F>
    [[nodiscard]] auto gather(std::string name, F f) && {
        return std::move(*this).then(std::move(name), std::move(f), detail::GatherKind<Parent>{});
    }

    /// State that each worker makes for the stage before, on its own thread, when it first needs it: `factory() ->
    /// State`. It is destroyed on that thread before the run returns. `bytes`: what one holds (caches, file buffers),
    /// which counts in the memory budget as long as it lives.
    template <class Factory>
    [[nodiscard]] auto local(Factory factory, std::size_t bytes = 0) && {
        auto pending = std::move(pending_).with_local(std::move(factory), bytes);
        return Builder<Root, In, decltype(pending)>(std::move(plan_), std::move(pending));
    }

    /// State that the stage before borrows for each call, from `pool`, in place of a state of each worker's own; so at
    /// most as many workers are inside at once. `pool` must outlive the runs.
    template <class T>
    [[nodiscard]] auto resource(resources<T>& pool) && {
        auto pending = std::move(pending_).with_resource(pool);
        return Builder<Root, In, decltype(pending)>(std::move(plan_), std::move(pending));
    }

    /// At most `workers` of them inside the stage before at once.
    [[nodiscard]] Builder limit(std::size_t workers) && {
        pending_.limit = workers;
        return std::move(*this);
    }

    /// How to make again what the stage before (after its .local() or .resource()) left of a candidate:
    /// `g(Context&) -> Out`, from the candidate's key and the parents that the fan-outs above it keep. Where memory is
    /// short a candidate is then dropped instead of written to disk, if that is measured to be cheaper, or if the disk
    /// is full. g must give an equal value every time; any worker calls it, several at once. If it throws, the
    /// candidate has failed, as in a stage.
    ///
    ///     .fan_out("windows", [](shared<Reads> reads) { return windows_of(*reads); })
    ///     .rebuild([](Context& context) { return window_of(*context.parent<Reads>(), context.key().ordinals[1]); })
    template <class G>
    [[nodiscard]] Builder rebuild(G g) && {
        using Out = typename Pending::template output<In>;
        static_assert(std::is_invocable_r_v<Out, G&, Context&>,
                      "a rebuild function takes a Context& and returns what its stage makes");
        pending_.rebuild = [g = std::move(g)](detail::Item& item, detail::Run& run) mutable {
            Context context(run, item);
            item.payload->template emplace<Out>(std::invoke(g, context));
        };
        return std::move(*this);
    }

    /// The same where the key does not say enough: `recipe(const Out&) noexcept -> Recipe` is what stays of a candidate
    /// that is dropped, a trivially copyable value of at most 32 bytes, and `g(const Recipe&, Context&) -> Out`.
    ///
    ///     .fan_out("windows", windows_of).local(open_reader)
    ///     .rebuild([](const Window& window) noexcept { return window.interval; },
    ///              [](const Interval& interval, Context&) { return window_at(interval); })
    template <class RecipeOf, class G>
    [[nodiscard]] Builder rebuild(RecipeOf recipe, G g) && {
        using Out = typename Pending::template output<In>;
        static_assert(std::is_nothrow_invocable_v<const RecipeOf&, const Out&>, "a recipe is taken without throwing");
        using Recipe = std::remove_cvref_t<std::invoke_result_t<const RecipeOf&, const Out&>>;
        static_assert(std::is_trivially_copyable_v<Recipe> && detail::fits_inline<Recipe>,
                      "a recipe takes no memory beside its candidate's slot");
        static_assert(std::is_invocable_r_v<Out, G&, const Recipe&, Context&>,
                      "a rebuild function takes its recipe and a Context&, and returns what its stage makes");
        pending_.recipe = [recipe = std::move(recipe)](const detail::Payload& made, detail::Payload& left) {
            const Recipe what = std::invoke(recipe, made.template as<Out>());
            left.template emplace<Recipe>(what);
        };
        pending_.rebuild = [g = std::move(g)](detail::Item& item, detail::Run& run) mutable {
            Context context(run, item);
            const Recipe what = item.payload->template as<Recipe>();
            item.payload->template emplace<Out>(std::invoke(g, what, context));
        };
        return std::move(*this);
    }

    /// The end: `f(const In&)` for each result in order, never two at once. `on_end(const Key&)` is told of the end of
    /// each candidate that was fanned out, after its last result, also where it had none.
    template <class F>
    [[nodiscard]] Pipeline<Root> in_order(std::string name, F f, std::function<void(const Key&)> on_end = {}) && {
        using Out = typename Pending::template output<In>;
        std::move(pending_).template finish<In>(plan_);
        plan_.stages.push_back(
            std::make_unique<detail::SinkStage<Out, F>>(std::move(name), std::move(f), std::move(on_end)));
        return Pipeline<Root>(std::move(plan_));
    }

private:
    template <class F, class Kind>
    auto then(std::string name, F f, Kind kind) && {
        using Out = typename Pending::template output<In>;
        using Next = detail::Pending<Kind, F>;
        std::move(pending_).template finish<In>(plan_);
        return Builder<Root, Out, Next>(std::move(plan_), Next{std::move(name), std::move(f), std::move(kind)});
    }

    detail::Plan plan_;
    Pending pending_;
};

/// Starts the wiring of a pipeline whose source gives `Root`.
template <class Root>
[[nodiscard]] auto pipeline(std::string name) {
    detail::Plan plan;
    plan.name = std::move(name);
    return Builder<Root, Root, detail::PendingNothing>(std::move(plan), {});
}

} // namespace spillway
