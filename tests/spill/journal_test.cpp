// The journal: what is resumed, and what is refused.
#include "faulty_files.hpp"
#include "hts/expect_error.hpp"
#include "memory_file.hpp"
#include "spill/journal_file.hpp"
#include "spill/run_journal.hpp"
#include "spillway/pipeline.hpp"
#include "temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <iostream>
#include <map>
#include <random>
#include <set>

#include <sys/wait.h>

using namespace spillway;
using namespace spillway::test;

namespace {

using Lines = std::vector<std::string>;

struct Region {
    int number = 0;
    std::vector<int> values;
};

/// Regions with 0 to 4 children, some of which are filtered out, seen by the sink with their keys and their ends.
/// Throws at the region `broken`.
struct Regions {
    int count = 40;
    int broken = -1;
    std::atomic<int> computed{0};
    Lines lines = {};

    void run(Journal* journal, std::size_t threads = 2) {
        lines.clear();
        computed = 0;
        auto regions = pipeline<int>("regions")
                           .source(std::views::iota(0, count))
                           .fan_out("children",
                                    [&](int& x) {
                                        ++computed;
                                        std::vector<Region> children;
                                        for (int i = 0; i < x % 5; ++i) children.push_back({x, std::vector<int>(3, i)});
                                        return children;
                                    })
                           .map("filter",
                                [&](Region region) -> std::optional<Region> {
                                    if (region.number == broken) throw std::runtime_error("broken on purpose");
                                    if (region.values[0] == 2) return std::nullopt;
                                    return region;
                                })
                           .in_order(
                               "collect",
                               [&](const Region& region, Context& context) {
                                   lines.push_back(to_string(context.key()) + " " + std::to_string(region.number) +
                                                   "/" + std::to_string(region.values.at(2)));
                               },
                               [&](const Key& key) { lines.push_back("end " + to_string(key)); });
        static_cast<void>(regions.run({.threads = threads, .spill = SpillOptions{}, .journal = journal}));
    }
};

Lines undisturbed() {
    Regions regions;
    regions.run(nullptr, 1);
    REQUIRE(regions.lines.size() == 40 + 80 - 16);
    return regions.lines;
}

JournalOptions kept_in(const TemporaryDirectory& directory) {
    return {.directory = directory.file("journal"), .fingerprint = {{"in.bam", "12 bytes"}, {"-r", ""}}};
}

/// Runs until region `at` breaks it; what the journal then holds.
void run_broken(const TemporaryDirectory& directory, int at) {
    Journal journal(kept_in(directory));
    Regions regions{.broken = at};
    // One worker: what comes before the region is then done before it.
    REQUIRE_THROWS_AS(regions.run(&journal, 1), Error);
}

} // namespace

TEST_CASE("a run that failed is resumed: what was finished is not computed again, and the sink is given the same") {
    const TemporaryDirectory directory;
    const Lines expected = undisturbed();
    run_broken(directory, 23);
    Regions regions;
    {
        Journal journal(kept_in(directory));
        const auto found = static_cast<int>(journal.statistics().items_found);
        CHECK(found > 10);
        CHECK(found < 40);
        regions.run(&journal);
        CHECK(regions.computed == 40 - found);
        CHECK(regions.lines == expected);
    }
    {
        // Killed after its end, before the output was safe: all is there.
        Journal journal(kept_in(directory));
        CHECK(journal.statistics().items_found == 40);
        regions.run(&journal);
        CHECK(regions.computed == 0);
        CHECK(regions.lines == expected);
        journal.remove();
    }
    CHECK(std::filesystem::is_empty(directory.file("journal")));
}

TEST_CASE("resuming again and again, from wherever it broke, ends with the same") {
    const Lines expected = undisturbed();
    const TemporaryDirectory directory;
    std::uint64_t found = 0;
    for (const int at : {4, 9, 9, 14, 13, 39, 1}) {
        Journal journal(kept_in(directory));
        CHECK(journal.statistics().items_found >= found);
        found = journal.statistics().items_found;
        Regions regions{.broken = at};
        try {
            regions.run(&journal);
        } catch (const Error&) { // Unless an earlier run got past it.
        }
    }
    Journal journal(kept_in(directory));
    Regions regions;
    regions.run(&journal);
    CHECK(regions.lines == expected);
}

TEST_CASE("of an item that was under way only those children are computed again that had no result yet") {
    constexpr int regions = 3, children = 100;
    for (const bool gathers : {false, true}) {
        CAPTURE(gathers);
        const TemporaryDirectory directory;
        int computed = 0;
        Lines lines;
        const auto run = [&](Journal* journal, int broken) {
            computed = 0;
            lines.clear();
            auto made = pipeline<int>("children")
                            .source(std::views::iota(0, regions))
                            .fan_out("make",
                                     [](const int& region) -> generator<int> {
                                         for (int i = 0; i < children; ++i) co_yield children* region + i;
                                     })
                            .map("work", [&](int x) -> std::optional<int> {
                                if (x == broken) throw std::runtime_error("killed");
                                ++computed;
                                return x % 7 == 0 ? std::nullopt : std::optional(3 * x);
                            });
            const auto write = [&](int x) { lines.push_back(std::to_string(x)); };
            const auto end = [&](const Key& key) { lines.push_back("end " + to_string(key)); };
            const Options options{.threads = 1, .spill = SpillOptions{}, .journal = journal};
            if (gathers) {
                auto sums = std::move(made).gather<int>(
                    "sum", [](int&, batch<int>& all) { return std::accumulate(all.begin(), all.end(), 0); });
                static_cast<void>(std::move(sums).in_order("write", write, end).run(options));
            } else {
                static_cast<void>(std::move(made).in_order("write", write, end).run(options));
            }
        };
        run(nullptr, -1);
        const Lines expected = lines;
        REQUIRE(computed == regions * children);
        const auto attempt = [&](int broken) {
            Journal journal(kept_in(directory));
            if (broken < 0) {
                run(&journal, broken);
            } else {
                REQUIRE_THROWS_AS(run(&journal, broken), Error);
            }
            return journal.statistics().items_found;
        };
        attempt(2 * children - 5);
        // What was carried with the one that broke may be lost, or not: a group of 64 at most.
        const int least = gathers ? children : 1, most = gathers ? children : 64;
        attempt(3 * children - 5);
        CHECK(computed >= least + children - 64);
        CHECK(computed <= most + children);
        CHECK(attempt(-1) >= regions - 2);
        CHECK(computed >= least);
        CHECK(computed <= most);
        CHECK(lines == expected);
        CHECK(attempt(-1) == regions);
        CHECK(computed == 0);
        CHECK(lines == expected);
    }
}

TEST_CASE("what was finished behind a straggler is kept") {
    const TemporaryDirectory directory;
    run_broken(directory, 1); // Whatever is done meanwhile waits for the head of the order, and is in the journal.
    const TemporaryDirectory straggling;
    {
        Journal journal(kept_in(straggling));
        std::atomic<int> done{0};
        auto run = pipeline<int>("straggling")
                       .source(std::views::iota(0, 20))
                       .map("work",
                            [&](int x) {
                                if (x == 0) {
                                    const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(2);
                                    while (done < 19 && std::chrono::steady_clock::now() < patience)
                                        std::this_thread::yield();
                                    throw std::runtime_error("the straggler fails in the end");
                                }
                                ++done;
                                return x;
                            })
                       .in_order("collect", [](int) {});
        CHECK_THROWS_AS(run.run({.threads = 2, .spill = SpillOptions{}, .journal = &journal}), Error);
    }
    Journal journal(kept_in(straggling));
    CHECK(journal.statistics().items_found >= 18); // The last may not have been parked yet when the run ended.
}

TEST_CASE("another fingerprint is refused, and what differs is named") {
    const TemporaryDirectory directory;
    run_broken(directory, 23);
    JournalOptions other = kept_in(directory);
    other.fingerprint = {{"in.bam", "13 bytes"}, {"-r", ""}, {"-s", "NA1"}};
    const Error error = error_of([&] { Journal journal(other); });
    CHECK(error.code() == ErrorCode::usage);
    CHECK(says(error, "in.bam was \"12 bytes\" and is \"13 bytes\"; -s was \"\" and is \"NA1\""));
    CHECK_FALSE(says(error, "-r was"));
    other.fingerprint = {{"two\nlines", ""}};
    CHECK(error_of([&] { Journal journal(other); }).code() == ErrorCode::usage);
    Journal same(kept_in(directory)); // It was not harmed.
    CHECK(same.statistics().items_found > 10);
}

TEST_CASE("a directory has one run at a time, and a killed one lets go") {
    const TemporaryDirectory directory;
    {
        Journal journal(kept_in(directory));
        const Error error = error_of([&] { Journal second(kept_in(directory)); });
        CHECK(error.code() == ErrorCode::usage);
        CHECK(says(error, "another run is using it"));
    }
    std::array<int, 2> pipe{};
    REQUIRE(::pipe(pipe.data()) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        Journal journal(kept_in(directory));
        if (::write(pipe[1], "x", 1) != 1) ::_exit(1);
        ::pause();
    }
    char ready = 0;
    CHECK(::read(pipe[0], &ready, 1) == 1);
    CHECK(says(error_of([&] { Journal second(kept_in(directory)); }), "another run is using it"));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (const int end : pipe) ::close(end);
    CHECK_NOTHROW(Journal(kept_in(directory)));
}

TEST_CASE("planted links, pipes, others' files and open directories are refused, and other names left alone") {
    namespace fs = std::filesystem;
    const TemporaryDirectory directory;
    run_broken(directory, 23);
    const fs::path kept = directory.file("journal");
    struct stat status {};
    REQUIRE(::stat(kept.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == 0700);
    REQUIRE(::stat((kept / "journal-00000001").c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == 0600);
    const auto refusal = [&] {
        const Error error = error_of([&] { Journal journal(kept_in(directory)); });
        CHECK(error.code() == ErrorCode::usage);
        return std::string(error.what());
    };
    const auto planted = kept / "journal-00000002";
    directory.write("precious", "precious");
    fs::create_symlink(directory.file("precious"), planted);
    CHECK(refusal().find("journal-00000002: it is a link") != std::string::npos);
    fs::remove(planted);
    fs::create_hard_link(directory.file("precious"), planted);
    CHECK(refusal().find("it has a second name elsewhere") != std::string::npos);
    fs::remove(planted);
    REQUIRE(::mkfifo(planted.c_str(), 0600) == 0);
    CHECK(refusal().find("it is no plain file") != std::string::npos);
    fs::remove(planted);
    std::ofstream(planted) << "open to all";
    fs::permissions(planted, fs::perms(0644));
    CHECK(refusal().find("others may use it") != std::string::npos);
    if (::geteuid() == 0) {
        fs::permissions(planted, fs::perms(0600));
        REQUIRE(::chown(planted.c_str(), 1, 1) == 0);
        CHECK(refusal().find("it belongs to another user") != std::string::npos);
        REQUIRE(::chown(kept.c_str(), 1, 1) == 0);
        CHECK(refusal().find("it belongs to another user") != std::string::npos);
        REQUIRE(::chown(kept.c_str(), 0, 0) == 0);
    } else {
        std::cout << "SKIPPED in part: giving a file away needs root\n";
    }
    fs::remove(planted);
    fs::permissions(kept, fs::perms(0770));
    CHECK(refusal().find("others may write in it") != std::string::npos);
    fs::permissions(kept, fs::perms(0700));
    const std::vector<std::string> strange{"journal-1", "journal-0000000x", "journal-000000001", "notes",
                                           "journal-00000001~"};
    for (const std::string& name : strange) std::ofstream(kept / name) << "mine";
    {
        Journal journal(kept_in(directory));
        CHECK(journal.statistics().items_found > 10);
        journal.remove();
    }
    for (const std::string& name : strange) CHECK(read_file(kept / name) == "mine");
    CHECK(std::distance(fs::directory_iterator(kept), fs::directory_iterator()) == 5);
    CHECK(read_file(directory.file("precious")) == "precious");

    fs::create_directory_symlink(kept, directory.file("alias"));
    for (const char* name : {"alias", "alias/", "precious"}) {
        JournalOptions options = kept_in(directory);
        options.directory = directory.file(name);
        CHECK(error_of([&] { Journal journal(options); }).code() == ErrorCode::usage);
    }
    JournalOptions none = kept_in(directory);
    none.directory = "";
    CHECK(error_of([&] { Journal journal(none); }).code() == ErrorCode::usage);
}

TEST_CASE("journals that finished nothing do not pile up") {
    const TemporaryDirectory directory;
    for (int i = 0; i < 5; ++i) {
        Journal journal(kept_in(directory));
        Regions regions{.count = 2, .broken = 1};
        CHECK_THROWS_AS(regions.run(&journal, 1), Error);
    }
    const std::filesystem::directory_iterator all(directory.file("journal"));
    CHECK(std::distance(begin(all), end(all)) <= 3);
}

TEST_CASE("a journal without a source, and results that look into their parents, are refused") {
    const TemporaryDirectory directory;
    {
        Journal journal(kept_in(directory));
        auto pushed = pipeline<int>("pushed").map("same", [](int x) { return x; }).in_order("collect", [](int) {});
        Pool pool({.max_threads = 1});
        const Error error = error_of([&] { static_cast<void>(pushed.start(pool, {.journal = &journal})); });
        CHECK(error.code() == ErrorCode::usage);
        CHECK(says(error, "a journal needs a source"));
    }
    struct Child {
        int number = 0;
        std::string text;
        shared<Region> parent;
    };
    Journal journal(kept_in(directory));
    auto run = pipeline<int>("looking")
                   .source(std::views::iota(0, 3))
                   .map("make",
                        [](int x) {
                            return Region{x, {}};
                        })
                   .fan_out("children",
                            [](shared<Region> parent) {
                                return std::vector<Child>{{1, "a", parent}};
                            })
                   .in_order("collect", [](const Child&) {});
    const Error error = error_of([&] { run.run({.spill = SpillOptions{}, .journal = &journal}); });
    CHECK(error.code() == ErrorCode::usage);
    CHECK(says(error, "results must not hold a shared parent"));
}
