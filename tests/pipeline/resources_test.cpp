// What stages borrow, what they wait for, and threads that are lent to a run.
#include "spillway/pipeline.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

using namespace spillway;

namespace {

struct Model {
    std::unique_ptr<std::atomic<int>> users = std::make_unique<std::atomic<int>>(0);
    int number = 0;
};

/// Waits, so that a test does not hang, for at most two minutes.
template <class Condition>
bool eventually(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::yield();
    }
    return true;
}

} // namespace

TEST_CASE("borrowed things are used by one worker at a time, and never more than there are") {
    int made = 0;
    resources<Model> models(2, [&] {
        Model model;
        model.number = made++;
        return model;
    });
    std::atomic<int> inside{0}, most{0}, shared_use{0};
    std::vector<int> results;
    const auto use = [&](int& x, Model& model) {
        if (model.users->fetch_add(1) != 0) ++shared_use;
        const int now = ++inside;
        int seen = most;
        while (seen < now && !most.compare_exchange_weak(seen, now)) {
        }
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        x += 1;
        --inside;
        model.users->fetch_sub(1);
    };
    auto run = pipeline<int>("borrowing")
                   .source(std::views::iota(0, 500))
                   .map("infer", use)
                   .resource(models)
                   .map("other", [](int x) { return x; })
                   .batch("again",
                          [&](batch<int>& xs, Model& model) {
                              for (int& x : xs) use(x, model);
                          },
                          {.cells = {}, .full = 8})
                   .resource(models) // both stages share the two
                   .in_order("collect", [&](int x) { results.push_back(x); });
    static_cast<void>(run.run({.threads = 6}));
    REQUIRE(results.size() == 500);
    for (int i = 0; i < 500; ++i) REQUIRE(results[static_cast<std::size_t>(i)] == i + 2);
    CHECK(shared_use == 0);
    CHECK(most <= 2);
    CHECK(made == 2);
}

TEST_CASE("two pipelines on pools of their own share one borrowed thing and both end") {
    resources<int> only(1, [] { return 0; });
    const auto run_one = [&] {
        std::size_t count = 0;
        auto run = pipeline<int>("sharing")
                       .source(std::views::iota(0, 300))
                       .map("use",
                            [](int x, int& uses) {
                                ++uses;
                                return x;
                            })
                       .resource(only)
                       .in_order("count", [&](int) { ++count; });
        static_cast<void>(run.run({.threads = 2}));
        return count;
    };
    std::size_t other = 0;
    std::thread second([&] { other = run_one(); });
    const std::size_t first = run_one();
    second.join();
    CHECK(first == 300);
    CHECK(other == 300);
    detail::Local* thing = only.try_borrow();
    REQUIRE(thing != nullptr); // given back by both
    CHECK(static_cast<detail::LocalOf<int>*>(thing)->state == 600);
    only.give_back(thing);
}

TEST_CASE("a borrowed thing comes back when the stage throws") {
    resources<int> only(1, [] { return 0; });
    std::size_t count = 0;
    auto run = pipeline<int>("throwing")
                   .source(std::views::iota(0, 100))
                   .map("use",
                        [](int x, int&) {
                            if (x % 3 == 0) throw std::runtime_error("no");
                            return x;
                        })
                   .resource(only)
                   .in_order("count", [&](int) { ++count; });
    static_cast<void>(run.run({.threads = 3, .on_error = [](const Error&, const Key&) { return Reaction::drop; }}));
    CHECK(count == 66);
    CHECK(only.try_borrow() != nullptr);
}

TEST_CASE("while a stage blocks another thread takes its place, and leaves again") {
    // The first candidate waits until the last one has come through: on one thread that needs a second.
    std::atomic<int> through{0};
    std::vector<int> results;
    auto run = pipeline<int>("blocking")
                   .source(std::views::iota(0, 200))
                   .map("wait",
                        [&](int x, Context& context) {
                            if (x == 0) {
                                const auto waiting = context.blocking();
                                if (!eventually([&] { return through >= 150; })) return -1;
                            }
                            ++through;
                            return x;
                        })
                   .in_order("collect", [&](int x) { results.push_back(x); });
    Pool pool({.max_threads = 1});
    static_cast<void>(run.run(pool));
    REQUIRE(results.size() == 200);
    CHECK(results[0] == 0);
    // The next run has one thread, once the spare one has gone home.
    CHECK(eventually([&] { return pool.threads() == 1; }));
    through = 1000;
    results.clear();
    std::atomic<int> inside{0}, most{0};
    auto plain = pipeline<int>("after")
                     .source(std::views::iota(0, 3000))
                     .map("look",
                          [&](int x) {
                              const int now = ++inside;
                              if (now > most) most = now;
                              std::this_thread::sleep_for(std::chrono::microseconds(10));
                              --inside;
                              return x;
                          })
                     .in_order("collect", [&](int x) { results.push_back(x); });
    static_cast<void>(plain.run(pool));
    CHECK(results.size() == 3000);
    CHECK(most == 1);
    CHECK(pool.threads() == 1);
}

TEST_CASE("a host's own threads help with a run until it ends") {
    std::atomic<bool> helped{false};
    std::vector<int> results;
    std::atomic<std::thread::id> helper{};
    auto run = pipeline<int>("helped")
                   .source(std::views::iota(0, 2000))
                   .map("work",
                        [&](int x) {
                            if (std::this_thread::get_id() == helper.load()) helped = true;
                            // On until the helper has come, so that the test means something on one core too.
                            if (x == 1000) static_cast<void>(eventually([&] { return helped.load(); }));
                            return x;
                        })
                   .in_order("collect", [&](int x) { results.push_back(x); });
    Pool pool({.max_threads = 1});
    auto handle = run.start(pool);
    std::thread host([&] {
        helper = std::this_thread::get_id();
        handle.help();
    });
    host.join();
    const Report report = handle.wait();
    CHECK(report.emitted == 2000);
    REQUIRE(results.size() == 2000);
    CHECK(helped);
}
