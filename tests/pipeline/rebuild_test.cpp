#include "spillway/pipeline.hpp"

#include "spill/faulty_files.hpp"
#include "temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

using namespace spillway;
using spillway::test::FaultyFiles;
using spillway::test::TemporaryDirectory;

namespace {

constexpr int items = 300;
constexpr std::size_t payload = 20000;

struct Tensor {
    int number = 0;
    std::vector<std::uint8_t> values;
};

Tensor tensor(int number) {
    return {number, std::vector<std::uint8_t>(payload, static_cast<std::uint8_t>(number))};
}

bool right(const Tensor& t) {
    return t.values == tensor(t.number).values;
}

std::vector<int> counted(int count) {
    std::vector<int> all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    return all;
}

/// Rebuilds candidate n of the source, and keeps count of it.
struct Again {
    std::atomic<int> calls{0};
    std::function<void(int)> before = {};

    Tensor operator()(Context& context) {
        ++calls;
        const int number = static_cast<int>(context.key().ordinals[0]);
        if (before) before(number);
        return tensor(number);
    }
};

struct Run {
    Report report;
    std::vector<int> results;
};

/// Far more candidates than fit wait before a stage that one worker at a time enters. Without a disk they can only be
/// dropped. `with_rebuild` gives the stage that makes them its rebuild function.
template <class WithRebuild>
Run run_backlog(WithRebuild with_rebuild, const std::optional<SpillOptions>& spill,
                const std::function<Reaction(const Error&, const Key&)>& on_error = {},
                const GovernorOptions& memory = {.memory = 1_MiB, .watch_process = false}) {
    Run run;
    std::atomic<int> made{0};
    auto making = pipeline<int>("backlog").source(std::views::iota(0, items)).map("make", [&](int number) {
        ++made;
        return tensor(number);
    });
    auto waiting = with_rebuild(std::move(making))
                       .map("wait",
                            [&](Tensor& t) {
                                // The first waits for a backlog.
                                const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(2);
                                while (made < 200 && std::chrono::steady_clock::now() < patience)
                                    std::this_thread::yield();
                                if (!right(t)) t.number = -1;
                            })
                       .limit(1)
                       .map("number", [](const Tensor& t) { return t.number; })
                       .in_order("collect", [&](int number) { run.results.push_back(number); });
    Pool pool({.min_threads = 2, .max_threads = 3, .memory = memory});
    Options options;
    options.spill = spill.value_or(SpillOptions{.directory = ""});
    options.on_error = on_error;
    run.report = waiting.run(pool, options);
    return run;
}

Run run_backlog(Again& again, const std::optional<SpillOptions>& spill,
                const std::function<Reaction(const Error&, const Key&)>& on_error = {},
                const GovernorOptions& memory = {.memory = 1_MiB, .watch_process = false}) {
    return run_backlog([&](auto making) { return std::move(making).rebuild(std::ref(again)); }, spill, on_error,
                       memory);
}

} // namespace

TEST_CASE("without a disk, candidates that can be made again are dropped and made again") {
    Again again;
    const Run run = run_backlog(again, {});
    CHECK(run.results == counted(items));
    CHECK(run.report.spilled == 0);
    CHECK(run.report.rebuilt > 50);
    CHECK(static_cast<int>(run.report.rebuilt) == again.calls);
}

TEST_CASE("what stays of a dropped candidate is what it is made again from, also for the trial") {
    struct Recipe {
        std::int64_t thrice = 0;
    };
    const bool disk = GENERATE(false, true);
    const TemporaryDirectory directory;
    std::atomic<int> taken{0}, made_again{0}, wrong{0};
    const Run run = run_backlog(
        [&](auto making) {
            return std::move(making).rebuild(
                [&](const Tensor& t) noexcept {
                    ++taken;
                    return Recipe{std::int64_t{3} * t.number};
                },
                [&](const Recipe& recipe, Context& context) {
                    ++made_again;
                    if (recipe.thrice != std::int64_t{3} * static_cast<int>(context.key().ordinals[0])) ++wrong;
                    return tensor(static_cast<int>(recipe.thrice / 3));
                });
        },
        disk ? std::optional(SpillOptions{.directory = directory.path().string(), .allow_tmpfs = true}) : std::nullopt);
    CHECK(run.results == counted(items));
    CHECK(wrong == 0);
    CHECK(taken > 0);
    CHECK(taken == made_again);
    if (!disk) CHECK(static_cast<int>(run.report.rebuilt) == made_again);
}

TEST_CASE("with a disk and a rebuild, no result depends on which of them is used") {
    std::uint64_t spilled = 0; // how far workers run ahead is up to the machine: again, until something was
    for (int attempt = 0; attempt < 100 && spilled == 0; ++attempt) {
        const TemporaryDirectory directory;
        Again again;
        again.before = [](int) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
        const Run run = run_backlog(again, SpillOptions{.directory = directory.path().string(), .allow_tmpfs = true});
        CHECK(run.results == counted(items));
        spilled += run.report.spilled;
        CHECK(run.report.restored == run.report.spilled);
        CHECK(std::filesystem::is_empty(directory.path()));
    }
    CHECK(spilled > 0);
}

TEST_CASE("a disk that is full from the start leaves dropping, and results stay the same") {
    const TemporaryDirectory directory;
    const auto files = std::make_shared<FaultyFiles>();
    files->fail_writes = ENOSPC;
    Again again;
    const Run run =
        run_backlog(again, SpillOptions{.directory = directory.path().string(), .allow_tmpfs = true, .files = files});
    CHECK(run.results == counted(items));
    CHECK(run.report.rebuilt > 0);
}

TEST_CASE("without a disk, what is dear to make again is dropped only above the mark at which the source is held") {
    const bool full_disk = GENERATE(false, true);
    CAPTURE(full_disk);
    const TemporaryDirectory directory;
    std::optional<SpillOptions> spill;
    if (full_disk) // which does not even gather a record
        spill = SpillOptions{.directory = directory.path().string(), .disk_limit = 1, .allow_tmpfs = true};
    const auto rebuilt = [&](double hold_above) {
        Again again;
        again.before = [](int) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
        const Run run = run_backlog(again, spill, {},
                                    {.memory = 12_MiB, // all are 9 MB
                                     .low = 0.1,
                                     .spill_below = 0.1,
                                     .spill_above = 0.2,
                                     .hold_above = hold_above,
                                     .watch_process = false});
        CHECK(run.results == counted(items));
        CHECK(run.report.memory_peak > 0);
        return run.report.rebuilt;
    };
    CHECK(rebuilt(1.0) == 0);
    CHECK(rebuilt(0.3) > 0);
}

TEST_CASE("a rebuild that throws ends the run with the candidate's key") {
    Again again;
    std::atomic<int> failed{-1};
    again.before = [&](int number) {
        int none = -1;
        failed.compare_exchange_strong(none, number);
        throw std::runtime_error("no more reads");
    };
    try {
        run_backlog(again, {});
        FAIL("no Error was thrown");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::runtime);
        CHECK(error.detail() == "no more reads");
        CHECK(error.where().find("candidate ") == 0);
    }
    CHECK(failed >= 0);
}

TEST_CASE("where on_error drops, a candidate whose rebuild throws is left out and counted as failed") {
    Again again;
    std::mutex mutex;
    std::set<int> lost;
    again.before = [](int number) {
        if (number % 3 == 0) throw std::runtime_error("no more reads");
    };
    const Run run = run_backlog(again, {}, [&](const Error&, const Key& key) {
        const std::lock_guard lock(mutex);
        CHECK(lost.insert(static_cast<int>(key.ordinals[0])).second); // once each
        return Reaction::drop;
    });
    std::vector<int> expected = counted(items);
    std::erase_if(expected, [&](int number) { return lost.contains(number); });
    CHECK(run.results == expected);
    CHECK(!lost.empty());
    CHECK(std::all_of(lost.begin(), lost.end(), [](int number) { return number % 3 == 0; }));
    CHECK(run.report.failed == lost.size());
}

TEST_CASE("a trial that throws changes nothing: the candidate is written instead") {
    const TemporaryDirectory directory;
    Again again;
    again.before = [](int) { throw std::runtime_error("never"); };
    const Run run = run_backlog(again, SpillOptions{.directory = directory.path().string(), .allow_tmpfs = true});
    CHECK(run.results == counted(items));
    CHECK(run.report.spilled > 50);
    CHECK(run.report.rebuilt == 0);
    CHECK(again.calls == 1);
}

TEST_CASE("children are made again from their parent, in its family, whatever waits for them") {
    struct Child {
        int number = 0;
        std::vector<std::uint8_t> values;
        shared<Tensor> parent;
    };
    const auto child = [](shared<Tensor> parent, int number) {
        return Child{number, std::vector<std::uint8_t>(8000, static_cast<std::uint8_t>(parent->number + number)),
                     parent};
    };
    const bool gathers = GENERATE(false, true);
    const bool keyed = GENERATE(false, true);
    const bool fails = GENERATE(false, true);
    CAPTURE(gathers, keyed, fails);
    std::atomic<bool> wrong{false};
    std::atomic<int> lost{0}, made{0};
    auto begun = [&] {
        return pipeline<int>("families")
            .source(std::views::iota(0, 60))
            .map("make",
                 [](int number) {
                     return Tensor{number, std::vector<std::uint8_t>(1000)};
                 })
            .fan_out("children",
                     [&](shared<Tensor> parent) -> generator<Child> {
                         for (int i = 0; i < 12; ++i) {
                             ++made;
                             Child next = child(parent, i);
                             co_yield std::move(next);
                         }
                     })
            .rebuild([&](Context& context) {
                const auto number = static_cast<int>(context.key().ordinals[1]);
                if (fails && number % 4 == 1) throw std::runtime_error("a child is lost");
                return child(context.parent<Tensor>(), number);
            })
            .batch("together",
                   [&](batch<Child>& children) {
                       const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(2);
                       while (made < 400 && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
                       for (Child& c : children) {
                           if (c.values[0] != static_cast<std::uint8_t>(c.parent->number + c.number)) wrong = true;
                       }
                   },
                   {.cells = {}, .full = 16, .forms = keyed ? Forms::equivalent : Forms::exact})
            .limit(1);
    };
    // What the batch leaves can be made again as well, while it waits for its turn or for its gather.
    const auto last = [&](Context& context) {
        return child(context.parent<Tensor>(), static_cast<int>(context.key().ordinals[1]));
    };
    Pool pool({.min_threads = 2, .max_threads = 3, .memory = {.memory = 2_MiB, .watch_process = false}});
    Options options;
    options.spill = SpillOptions{.directory = ""};
    options.on_error = [&](const Error&, const Key&) {
        ++lost;
        return Reaction::drop;
    };
    Report report;
    int sum = 0;
    if (gathers) {
        auto run = begun()
                       .rebuild(last)
                       .gather<Tensor>("all",
                                       [&](Tensor& parent, batch<Child>& children) {
                                           int total = 0;
                                           for (const Child& c : children)
                                               total += c.parent->number == parent.number ? 1 : -1000;
                                           return total;
                                       })
                       .in_order("collect", [&](int x) { sum += x; });
        report = run.run(pool, options);
    } else {
        int before = -1;
        auto run = begun().rebuild(last).in_order("collect", [&](const Child& c) {
            const int at = c.parent->number * 12 + c.number;
            if (at <= before) wrong = true;
            before = at;
            ++sum;
        });
        report = run.run(pool, options);
    }
    CHECK_FALSE(wrong);
    CHECK(sum == 60 * 12 - lost);
    CHECK(report.failed == static_cast<std::uint64_t>(lost));
    CHECK(report.rebuilt > 0);
    CHECK((fails || lost == 0));
}

TEST_CASE("a payload in its own memory is made again in its own memory") {
    struct Reads {
        std::pmr::vector<std::uint8_t> bases;
    };
    const auto reads = [](std::uint64_t number, Context& context) {
        return Reads{std::pmr::vector<std::uint8_t>(20000, static_cast<std::uint8_t>(number), &context.memory())};
    };
    std::atomic<int> elsewhere{0}, wrong{0};
    std::uint64_t rebuilt = 0;
    // How far workers run ahead, and so whether anything is dropped, is the machine's: again, until something was.
    for (int attempt = 0; attempt < 100 && rebuilt == 0; ++attempt) {
        std::size_t results = 0;
        auto run =
            pipeline<int>("own memory")
                .source(std::views::iota(0, 600))
                .map("make", [&](int x, Context& context) { return reads(static_cast<std::uint64_t>(x), context); })
                .rebuild([&](Context& context) { return reads(context.key().ordinals[0], context); })
                .map("slow",
                     [&](Reads& r, Context& context) {
                         if (r.bases.get_allocator().resource() != &context.memory()) ++elsewhere;
                         if (r.bases.front() != static_cast<std::uint8_t>(context.key().ordinals[0])) ++wrong;
                         if (r.bases.front() % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
                     })
                .limit(1)
                .in_order("collect", [&](const Reads&) { ++results; });
        Pool pool({.max_threads = 3, .memory = {.memory = 8_MiB, .watch_process = false}});
        Options options;
        options.spill = SpillOptions{.directory = ""};
        const Report report = run.run(pool, options);
        CHECK(results == 600);
        rebuilt += report.rebuilt;
    }
    CHECK(rebuilt > 0);
    CHECK(wrong == 0);
    CHECK(elsewhere == 0);
}

TEST_CASE("a rebuild that asks for a parent that nobody keeps fails with a reason") {
    const auto asks = [](auto making) {
        return std::move(making).rebuild([](Context& context) { return *context.parent<Tensor>(); });
    };
    CHECK_THROWS_WITH(run_backlog(asks, {}), Catch::Contains("no fan-out above keeps one of this type"));
}
