// What refuses a thread, under every interleaving: whoever was refused and went to sleep is woken when there is room.
#include "interleaving/simulation.hpp"
#include "pipeline/open_window.hpp"
#include "pool/event_count.hpp"
#include "pool/turnstile.hpp"

#include <catch2/catch.hpp>

#include <memory>

namespace spillway::interleaving {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

/// A stage of limit one, with a queue that is only a count.
struct Limited {
    Turnstile<SimulatedAtomics> turnstile;
    EventCount<SimulatedAtomics> idle;
    SimulatedAtomics::atomic<int> backlog{0};
    Plain<int> state{0}; ///< The stage's own: one thread at a time.

    bool try_work() {
        if (backlog.load(relaxed) <= 0 || !turnstile.enter(1)) return false;
        bool worked = false;
        if (backlog.load(relaxed) > 0) {
            backlog.fetch_sub(1, relaxed);
            state.write(state.read() + 1);
            worked = true;
        }
        turnstile.leave();
        if (backlog.load(relaxed) > 0) idle.notify(1);
        return worked;
    }
    void post() {
        backlog.fetch_add(1, relaxed);
        idle.notify(1);
    }
    /// Works until `count` pieces are done by anyone; a lost wake-up shows as all threads asleep.
    void work(SimulatedAtomics::atomic<int>& done, int count) {
        while (done.load(relaxed) < count) {
            if (try_work()) {
                if (done.fetch_add(1, relaxed) + 1 == count) idle.notify_all();
                continue;
            }
            const auto ticket = idle.prepare_wait();
            if (done.load(relaxed) >= count) {
                idle.cancel_wait();
            } else if (try_work()) {
                idle.cancel_wait();
                if (done.fetch_add(1, relaxed) + 1 == count) idle.notify_all();
            } else {
                idle.wait(ticket);
            }
        }
    }
};

void two_workers_and_one_place(Simulation& simulation) {
    struct State : Limited {
        SimulatedAtomics::atomic<int> done{0};
    };
    auto stage = std::make_shared<State>();
    simulation.thread([=] { stage->post(); });
    simulation.thread([=] { stage->post(); });
    simulation.thread([=] { stage->work(stage->done, 2); });
    simulation.thread([=] { stage->work(stage->done, 2); });
    simulation.finally([=] { expect(stage->state.read() == 2, "a visit was lost"); });
}

/// Whoever was refused because another was inside sleeps: the one that leaves must see that something is left.
void refused_beside_the_leaver(Simulation& simulation) {
    auto stage = std::make_shared<Limited>();
    simulation.thread([=] { // inside, with nothing queued behind it yet
        if (!stage->turnstile.enter(1)) return;
        stage->state.write(1);
        stage->turnstile.leave();
        if (stage->backlog.load(relaxed) > 0) stage->idle.notify(1);
    });
    simulation.thread([=] { // sees the piece, is refused, sleeps until it may
        stage->backlog.fetch_add(1, relaxed);
        while (!stage->try_work()) {
            const auto ticket = stage->idle.prepare_wait();
            if (stage->try_work()) {
                stage->idle.cancel_wait();
                return;
            }
            stage->idle.wait(ticket);
        }
    });
}

/// A window of one item; the drain passes what was opened.
struct Opening {
    OpenWindow<SimulatedAtomics> window;
    EventCount<SimulatedAtomics> room, work;

    void open_all(std::uint64_t count) {
        for (std::uint64_t i = 0; i < count;) {
            const auto ticket = room.prepare_wait();
            if (window.may_open(1, [] { return false; })) {
                room.cancel_wait();
                window.open(1);
                work.notify(1);
                ++i;
            } else {
                room.wait(ticket);
            }
        }
    }
    void pass_all(std::uint64_t count) {
        for (std::uint64_t passed = 0; passed < count;) {
            const auto ticket = work.prepare_wait();
            if (window.begun() <= passed) {
                work.wait(ticket);
                continue;
            }
            work.cancel_wait();
            if (window.pass(++passed, 1)) room.notify_all();
        }
    }
};

/// As above, but two make a batch, which goes through as a whole: the window gives way to it.
struct Batching : Opening {
    void pass_batch() {
        constexpr std::uint64_t batch = 2;
        for (;;) {
            const auto ticket = work.prepare_wait();
            const std::uint64_t begun = window.begun();
            if (begun >= batch) {
                work.cancel_wait();
                return;
            }
            if (begun > 0 && window.need(batch)) {
                work.cancel_wait();
                room.notify_all();
                continue;
            }
            work.wait(ticket);
        }
    }
};

void host_and_batch(Simulation& simulation) {
    auto batching = std::make_shared<Batching>();
    simulation.thread([=] { batching->open_all(2); });
    simulation.thread([=] { batching->pass_batch(); });
}

void host_and_drain(Simulation& simulation) {
    auto opening = std::make_shared<Opening>();
    simulation.thread([=] { opening->open_all(3); });
    simulation.thread([=] { opening->pass_all(3); });
}

} // namespace

TEST_CASE("a worker that found the stage full is woken when there is room, and sees what the last visitor left") {
    const Outcome outcome = explore({.random_runs = 20'000, .seed = 3}, two_workers_and_one_place);
    CHECK(outcome.failure == "");
}

TEST_CASE("whoever leaves a full stage sees the one it kept out, or is seen by it, for which each order is needed") {
    const Outcome outcome = explore({.preemptions = 3}, refused_beside_the_leaver);
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
    CHECK(verify_each_order_is_needed({.preemptions = 3}, refused_beside_the_leaver, {"enter", "leave"}) == "");
}

TEST_CASE("a host that was refused is woken when the window has passed, whatever the interleaving") {
    const Outcome outcome = explore({.preemptions = 3}, host_and_drain);
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
    CHECK(verify_each_order_is_needed({.preemptions = 3}, host_and_drain, {"may_open", "pass"}) == "");
}

TEST_CASE("a host that was refused is woken when the head needs more, room or not") {
    const Outcome outcome = explore({.preemptions = 3}, host_and_batch);
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("two hosts and a drain in random runs: all items pass") {
    const Outcome outcome = explore({.random_runs = 20'000, .seed = 5}, [](Simulation& simulation) {
        auto opening = std::make_shared<Opening>();
        simulation.thread([=] { opening->open_all(2); });
        simulation.thread([=] { opening->open_all(2); });
        simulation.thread([=] { opening->pass_all(4); });
    });
    CHECK(outcome.failure == "");
}

} // namespace spillway::interleaving
