// A pipeline that spills, and keeps a journal, under every fault of its files: the outcome is the same results or a
// typed error, and neither a file nor a descriptor is left.
#include "faulty_files.hpp"
#include "hts/expect_error.hpp"
#include "spillway/pipeline.hpp"
#include "temporary_directory.hpp"
#include "watchdog.hpp"

#include <catch2/catch.hpp>

#include <iostream>
#include <optional>

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

using namespace spillway;
using namespace spillway::test;

namespace {

constexpr int items = 24;
constexpr std::size_t payload = 120'000; // More than is gathered: each is a write of its own.

struct Block {
    int number = 0;
    std::vector<std::uint8_t> bytes;
};

std::vector<int> expected() {
    std::vector<int> results;
    for (int i = 0; i < items; ++i) results.push_back(i);
    return results;
}

/// How far one worker runs ahead of the stage that the other waits in.
enum class Ahead : std::uint8_t { until_written, until_refused };

/// What the sink was given; a payload that came back changed is -1. The stage of one worker waits, though not for ever,
/// until the other has run ahead so far that it writes to `files`; where a fault is to come or the disk is to be full,
/// until it has or is, or all blocks are made, most of which `files` then hold.
std::vector<int> run(Pool& pool, const std::string& directory, const std::shared_ptr<FaultyFiles>& files,
                     Journal* journal = nullptr, std::uint64_t* spilled = nullptr, Ahead ahead = Ahead::until_written) {
    std::vector<int> results;
    std::atomic<int> made{0};
    const bool disturbed = files != nullptr && files->fail_call >= 0;
    const auto ahead_is_wanted = [&] {
        if (disturbed) return made < items && files->fail_call >= 0;
        if (ahead == Ahead::until_refused) return made < items && files->refused == 0;
        return files != nullptr && files->writes == 0;
    };
    auto spilling = pipeline<int>("spilling")
                        .source(std::views::iota(0, items))
                        .map("make",
                             [&](int x) {
                                 ++made;
                                 return Block{x, std::vector<std::uint8_t>(payload, static_cast<std::uint8_t>(x))};
                             })
                        .map("slow",
                             [&](const Block&) {
                                 const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(1);
                                 while (ahead_is_wanted() && std::chrono::steady_clock::now() < patience)
                                     std::this_thread::sleep_for(std::chrono::microseconds(100));
                             })
                        .limit(1)
                        .in_order("collect", [&](const Block& block) {
                            const bool right = std::all_of(block.bytes.begin(), block.bytes.end(), [&](std::uint8_t x) {
                                return x == static_cast<std::uint8_t>(block.number);
                            });
                            results.push_back(right && block.bytes.size() == payload ? block.number : -1);
                        });
    const auto check_memory = [&] {
        if (pool.governor().tracked() != 0) FAIL("bytes that the governor still counts: " << pool.governor().tracked());
    };
    try {
        const Report report =
            spilling.run(pool, {.spill = SpillOptions{.directory = directory, .allow_tmpfs = true, .files = files},
                                .journal = journal});
        if (spilled != nullptr) *spilled = report.spilled;
    } catch (...) {
        check_memory();
        throw;
    }
    check_memory();
    return results;
}

/// One for all runs of a test: workers that are there already are what runs ahead.
PoolOptions two_workers() {
    return {.min_threads = 2, .max_threads = 2, .memory = {.memory = 1800_KiB, .watch_process = false}};
}

std::size_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

struct Named {
    const char* name;
    Fault fault;
};

std::vector<Named> faults() {
    std::vector<Named> all;
    for (const auto& [name, error] :
         {std::pair("ENOSPC", ENOSPC), std::pair("EIO", EIO), std::pair("EDQUOT", EDQUOT), std::pair("EMFILE", EMFILE),
          std::pair("EACCES", EACCES), std::pair("EROFS", EROFS), std::pair("half", 0)}) {
        all.push_back({name, {.error = error}});
        all.push_back({name, {.error = error, .for_good = true}});
    }
    all.push_back({"EINTR", {.error = EINTR}});
    all.push_back({"EINTR", {.error = EINTR, .for_good = true}});
    all.push_back({"late", {.delays = true}});
    return all;
}

/// Whether a fault may end a run with this error.
bool may_end(const Fault& fault, const Error& error) {
    if (fault.delays || fault.error == 0) return false;
    // Once, it stops nothing but a sync, which is not tried again.
    if (fault.error == EINTR && !says(error, "Interrupted system call")) return false;
    // A directory that cannot be opened or written from the start is the user's to change.
    return error.code() == ErrorCode::disk || error.code() == ErrorCode::usage;
}

/// attempt(fault, k) for each fault and every k until one meets no fault, as its result says; none if it did not do what
/// was to be disturbed, so that it counts for nothing.
template <typename Attempt>
void for_every_call(Attempt attempt) {
    Watchdog watchdog;
    for (const Named& named : faults()) {
        int idle = 0;
        for (long k = 0;;) {
            INFO(named.name << (named.fault.for_good ? " for good" : "") << " at call " << k);
            const std::optional<bool> met = attempt(named.fault, k);
            watchdog.progress();
            if (!met) {
                if (++idle == 100) FAIL("nothing to disturb");
                continue;
            }
            if (!*met) break;
            ++k;
        }
    }
}

} // namespace

TEST_CASE("whichever call fails, a run that spills ends with the same results or a typed error, and leaves nothing") {
    Pool pool(two_workers());
    const std::size_t descriptors = open_descriptors();
    std::size_t errors = 0, runs = 0;
    for_every_call([&](const Fault& fault, long k) {
        const TemporaryDirectory directory;
        const auto files = std::make_shared<FaultyFiles>();
        files->fault = fault;
        files->fail_call = k;
        ++runs;
        std::uint64_t spilled = 0;
        try {
            if (run(pool, directory.path(), files, nullptr, &spilled) != expected()) FAIL("other results");
        } catch (const Error& error) {
            ++errors;
            if (!may_end(fault, error) || (fault.error == EINTR && !fault.for_good)) FAIL(error.what());
        }
        if (!std::filesystem::is_empty(directory.path())) FAIL("a file is left");
        const bool met = files->fail_call < 0;
        return met || spilled > 0 ? std::optional(met) : std::nullopt;
    });
    CHECK(open_descriptors() == descriptors);
    CHECK(errors > 20); // Failing to read back is one.
    CHECK(runs > 15 * faults().size());
}

TEST_CASE("whichever call fails, a run with a journal ends the same or can be resumed to the same results") {
#if defined(__SANITIZE_THREAD__)
    std::cout << "SKIPPED: thousands of runs take the thread sanitizer too long\n";
    return;
#endif
    Pool pool(two_workers());
    const std::size_t descriptors = open_descriptors();
    std::size_t resumed = 0;
    for_every_call([&](const Fault& fault, long k) {
        const TemporaryDirectory directory;
        const std::string kept = directory.file("journal");
        const auto files = std::make_shared<FaultyFiles>();
        files->fault = fault;
        files->fail_call = k;
        bool done = false;
        std::uint64_t commits = 0;
        try {
            Journal journal({.directory = kept, .commit_period = std::chrono::milliseconds(3), .files = files});
            if (run(pool, "", nullptr, &journal) != expected()) FAIL("other results");
            done = true;
            commits = journal.statistics().commits;
            journal.remove();
        } catch (const Error& error) {
            if (!may_end(fault, error)) FAIL(error.what());
        }
        if (!done || std::filesystem::exists(kept)) {
            Journal journal({.directory = kept, .files = std::make_shared<FaultyFiles>()});
            resumed += journal.statistics().items_found;
            if (run(pool, "", nullptr, &journal) != expected()) FAIL("other results after resuming");
            journal.remove();
        }
        if (!std::filesystem::is_empty(kept)) FAIL("a file is left");
        const bool met = files->fail_call < 0;
        return met || commits > 0 ? std::optional(met) : std::nullopt;
    });
    CHECK(open_descriptors() == descriptors);
    CHECK(resumed > 100);
}

TEST_CASE("a disk of 256 KiB, full in no time, changes no result") {
    const TemporaryDirectory directory;
    if (::mount("none", directory.path().c_str(), "tmpfs", 0, "size=256k") != 0) {
        std::cout << "SKIPPED: mounting is not permitted\n";
        return;
    }
    struct Unmount {
        const TemporaryDirectory& directory;
        ~Unmount() { ::umount2(directory.path().c_str(), MNT_DETACH); }
    };
    const Unmount unmount{directory};
    Pool pool(two_workers());
    // How far the run goes ahead is up to the machine: again, should it not have come to the disk's end.
    for (int attempt = 0;; ++attempt) {
        REQUIRE(attempt < 50);
        const auto files = std::make_shared<FaultyFiles>();
        files->free_bytes = std::uint64_t{1} << 30U; // Else no more is asked of it than it can hold.
        CHECK(run(pool, directory.path(), files, nullptr, nullptr, Ahead::until_refused) == expected());
        if (files->refused > 0) break;
    }
    std::vector<std::string> lines;
    {
        Journal journal({.directory = directory.file("journal"),
                         .commit_period = std::chrono::milliseconds(1),
                         .log = [&](std::string_view line) { lines.emplace_back(line); }});
        CHECK(run(pool, "", nullptr, &journal) == expected());
        CHECK(journal.statistics().broken);
        CHECK(journal.statistics().last_error == ENOSPC);
    }
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].find("can no longer be written (No space left on device)") != std::string::npos);
    Journal journal({.directory = directory.file("journal")});
    CHECK(journal.statistics().items_found > 0);
    const Error error = error_of([&] { run(pool, "", nullptr, &journal); });
    CHECK(error.code() == ErrorCode::disk);
    CHECK(says(error, "No space left on device"));
    REQUIRE(::mount("none", directory.path().c_str(), "tmpfs", MS_REMOUNT, "size=16m") == 0);
    CHECK(run(pool, "", nullptr, &journal) == expected());
}

TEST_CASE("forty descriptors are enough to spill and to keep a journal") {
    const TemporaryDirectory directory;
    const pid_t child = ::fork();
    if (child == 0) {
        rlimit limit{40, 40};
        bool right = ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
        try {
            Pool pool(two_workers());
            Journal journal({.directory = directory.file("journal")});
            right = right && run(pool, directory.path(), std::make_shared<FaultyFiles>(), &journal) == expected();
            journal.remove();
        } catch (const Error&) {
            right = false;
        }
        ::_exit(right ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}
