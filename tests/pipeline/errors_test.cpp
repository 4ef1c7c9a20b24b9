#include "spillway/pipeline.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

using namespace spillway;

namespace {

/// Counts how many of it there are.
struct Counted {
    explicit Counted(int number = 0) : value(number) { begin(); }
    Counted(const Counted& other) : value(other.value) { begin(); }
    Counted& operator=(const Counted&) = default;
    ~Counted() { --alive; }
    static void begin() {
        ++alive;
        ++made;
    }
    int value;
    static inline std::atomic<int> alive{0}, made{0};
};

} // namespace

template <>
struct spillway::codec<Counted> {
    static void encode(Writer& out, const Counted& c) { out(c.value); }
    static Counted decode(Reader& in) { return Counted(in.get<int>()); }
};

namespace {

/// The Error that f throws.
template <class F>
Error error_of(F f) {
    try {
        f();
    } catch (const Error& error) {
        return error;
    }
    FAIL("no Error was thrown");
    return {ErrorCode::runtime, "", "", ""};
}

} // namespace

TEST_CASE("an exception in a stage ends the run with its text and the candidate's key") {
    const Error error = error_of([] {
        auto run = pipeline<int>("calling")
                       .source(std::views::iota(0, 100))
                       .map("bad",
                            [](int x) {
                                if (x == 37) throw std::runtime_error("no haplotype");
                                return x;
                            })
                       .in_order("ignore", [](int) {});
        static_cast<void>(run.run({.threads = 1}));
    });
    CHECK(error.code() == ErrorCode::runtime);
    CHECK(error.where() == "candidate 37");
    CHECK(std::string(error.what()) == "running calling: candidate 37: no haplotype");
}

TEST_CASE("an Error of a stage passes through as it is") {
    const Error error = error_of([] {
        auto run = pipeline<int>("calling")
                       .source(std::views::iota(0, 10))
                       .map("read",
                            [](int x) -> int {
                                if (x == 3) throw Error(ErrorCode::input, "reading in.bam", "chr1:5", "truncated");
                                return x;
                            })
                       .in_order("ignore", [](int) {});
        static_cast<void>(run.run({.threads = 2}));
    });
    CHECK(error.code() == ErrorCode::input);
    CHECK(std::string(error.what()) == "reading in.bam: chr1:5: truncated");
}

TEST_CASE("of several errors the one with the smallest key is reported") {
    std::atomic<int> waiting{0};
    const Error error = error_of([&] {
        auto run = pipeline<int>("two")
                       .source(std::vector<int>{0, 1})
                       .map("both",
                            [&](int x) -> int {
                                ++waiting;
                                while (waiting < 2) std::this_thread::yield(); // both are inside
                                if (x == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
                                throw std::runtime_error(std::to_string(x));
                            })
                       .in_order("ignore", [](int) {});
        Pool pool({.min_threads = 2, .max_threads = 2}); // both there from the start, and for good
        static_cast<void>(run.run(pool));
    });
    CHECK(error.where() == "candidate 0");
}

TEST_CASE("errors in a batch, a fan-out, a generator, a gather, a source, a sink and a state's factory end the run") {
    const auto kind =
        GENERATE(as<std::string>{}, "batch", "fan-out", "generator", "gather", "source", "sink", "factory", "end");
    const auto threads = GENERATE(1U, 3U);
    const auto bad = [&](const char* here) {
        if (kind == here) throw std::runtime_error("bad " + kind);
    };
    const Error error = error_of([&] {
        auto run = pipeline<int>("failing")
                       .source([](auto fail) -> generator<int> {
                           for (int i = 0; i < 200; ++i) {
                               if (i == 100) fail("source");
                               co_yield i;
                           }
                       }(bad))
                       .fan_out("children",
                                [&](const int& n) {
                                    bad("fan-out");
                                    return [](int m, auto fail) -> generator<int> {
                                        for (int i = 0; i < 3; ++i) {
                                            if (m == 50 && i == 1) fail("generator");
                                            co_yield m + i;
                                        }
                                    }(n, bad);
                                })
                       .batch("together", [&](batch<int>&) { bad("batch"); })
                       .map("with state", [](int x, int& state) { return x + state; })
                       .local([&] {
                           bad("factory");
                           return 1;
                       })
                       .gather<int>("gather",
                                    [&](int& parent, batch<int>&) {
                                        if (parent == 30) bad("gather");
                                        return parent;
                                    })
                       .fan_out("again", [](const int& n) { return std::vector<int>(1, n); })
                       .in_order(
                           "sink",
                           [&](int x) {
                               if (x == 60) bad("sink");
                           },
                           [&](const Key& key) {
                               if (key.ordinals[0] == 70) bad("end");
                           });
        static_cast<void>(run.run({.threads = threads}));
    });
    CHECK(error.detail() == "bad " + kind);
}

TEST_CASE("with on_error answering drop, a failed candidate is left out, reported, and the rest is right") {
    std::vector<int> results;
    std::atomic<int> told{0};
    auto run = pipeline<int>("dropping")
                   .source(std::views::iota(0, 1000))
                   .map("bad",
                        [](int x) {
                            if (x % 10 == 3) throw std::runtime_error("bad candidate");
                            return x;
                        })
                   .in_order("collect", [&](int x) { results.push_back(x); });
    Options options{.threads = 3};
    options.on_error = [&](const Error& error, const Key& key) {
        if (key.ordinals[0] % 10 == 3 && error.detail() == "bad candidate") ++told;
        return Reaction::drop;
    };
    const Report report = run.run(options);
    CHECK(told == 100);
    CHECK(report.failed == 100);
    CHECK(report.dropped == 100);
    REQUIRE(results.size() == 900);
    CHECK(std::none_of(results.begin(), results.end(), [](int x) { return x % 10 == 3; }));
    CHECK(std::is_sorted(results.begin(), results.end()));
}

TEST_CASE("a failed child counts as ended for its gather, and a broken generator fails its parent") {
    std::vector<int> results;
    auto run =
        pipeline<int>("families")
            .source(std::views::iota(0, 100))
            .fan_out("children",
                     [](const int& n) -> generator<int> {
                         for (int i = 0; i < 5; ++i) {
                             if (n == 7 && i == 2) throw std::runtime_error("broken");
                             co_yield i;
                         }
                     })
            .map("bad",
                 [](int x) {
                     if (x == 1) throw std::runtime_error("one");
                     return x;
                 })
            .gather<int>("sum", [](int& parent,
                                   batch<int>& children) { return 100 * parent + static_cast<int>(children.size()); })
            .in_order("collect", [&](int x) { results.push_back(x); });
    Options options{.threads = 3};
    options.on_error = [](const Error&, const Key&) { return Reaction::drop; };
    const Report report = run.run(options);
    REQUIRE(results.size() == 99);
    CHECK(results[6] == 604);
    CHECK(results[7] == 804);
    CHECK(report.failed == 101); // one child of 100 parents, and the parent whose generator broke
}

TEST_CASE("a stop request ends the run as cancelled, tells stages of it, and destroys what it had made") {
    std::atomic<int> told{0};
    std::stop_source stop;
    const Error error = error_of([&] {
        auto run = pipeline<int>("stopped")
                       .source(std::views::iota(0, 1000000000))
                       .map("work",
                            [&](int x, Context& context) {
                                if (x == 5000) {
                                    stop.request_stop();
                                    while (!context.stopping()) std::this_thread::yield();
                                    ++told;
                                }
                                return Counted(x);
                            })
                       .in_order("ignore", [](const Counted&) {});
        static_cast<void>(run.run({.threads = 3, .stop = stop.get_token()}));
    });
    CHECK(error.code() == ErrorCode::cancelled);
    CHECK(told == 1);
    CHECK(Counted::made > 5000);
    CHECK(Counted::alive == 0);
}

TEST_CASE("a pipeline that cannot run says why before it starts") {
    CHECK(error_of([] { static_cast<void>(pipeline<int>("no source").in_order("ignore", [](int) {}).run()); }).code() ==
          ErrorCode::usage);
    CHECK(error_of([] {
              auto run = pipeline<int>("gather")
                             .source(std::vector<int>{1})
                             .gather<int>("all", [](int&, batch<int>&) { return 1; })
                             .in_order("ignore", [](int) {});
              static_cast<void>(run.run());
          }).code() == ErrorCode::usage);
    CHECK(error_of([] {
              auto run = pipeline<int>("spill").source(std::vector<int>{1}).in_order("ignore", [](int) {});
              static_cast<void>(run.run({.spill = SpillOptions{.directory = "/nowhere/at/all"}}));
          }).code() == ErrorCode::usage);
}

TEST_CASE("a pool used in a child process after fork is an error there and goes on here") {
    Pool pool({.max_threads = 2});
    const auto run_once = [&] {
        int sum = 0;
        auto run = pipeline<int>("fork").source(std::views::iota(0, 100)).in_order("sum", [&](int x) { sum += x; });
        static_cast<void>(run.run(pool));
        return sum;
    };
    REQUIRE(run_once() == 4950);
    const pid_t child = ::fork();
    if (child == 0) {
        try {
            run_once();
        } catch (const Error& error) {
            ::_exit(error.code() == ErrorCode::fork ? 17 : 18);
        }
        ::_exit(19);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 17);
    CHECK(run_once() == 4950);
}

TEST_CASE("an error of the sink ends the run whatever on_error says: nothing is left out in silence") {
    std::vector<int> written;
    auto run = pipeline<int>("writing").source(std::views::iota(0, 100)).in_order("write", [&](int x) {
        if (x == 30) throw std::runtime_error("disk full");
        written.push_back(x);
    });
    Options options;
    options.on_error = [](const Error&, const Key&) { return Reaction::drop; };
    const Error error = error_of([&] { static_cast<void>(run.run(options)); });
    CHECK(std::string(error.what()).find("disk full") != std::string::npos);
    CHECK(written.size() == 30);
}
