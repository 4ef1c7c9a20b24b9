// The files of a store: how they are opened, and that nothing of them is left.
#include "scratch.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cerrno>
#include <csignal>
#include <string>

#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace spillway;
using namespace spillway::test;

TEST_CASE("a disk without nameless files has its files unlinked at once") {
    ScratchDirectory scratch;
    const auto files = std::make_shared<FaultyFiles>();
    files->no_nameless = true;
    SpillStore store(scratch.options(), 2, files);
    const SpillPlace place = write_surely(store, 1, bytes_of(1, 100000));
    CHECK(scratch.empty());
    struct stat status {};
    REQUIRE(::fstat(files->opened.at(1), &status) == 0);
    CHECK((status.st_mode & 0777U) == 0600);
    CHECK(status.st_nlink == 0);
    Bytes out;
    store.read(place, out);
    CHECK(out == bytes_of(1, 100000));
}

TEST_CASE("a directory that cannot be spilled to is refused with its name and a reason") {
    ScratchDirectory scratch;
    const auto failure = [](const SpillOptions& options, const std::shared_ptr<FileSystem>& files = system_files()) {
        try {
            SpillStore store(options, 1, files);
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::usage);
            return std::string(error.what());
        }
        return std::string();
    };
    SpillOptions options = scratch.options();
    options.directory = scratch.path() + "/missing";
    CHECK(failure(options) ==
          "opening the spill directory: " + options.directory + ": it does not exist: make it or name another");
    options.directory = "";
    CHECK(failure(options) == "opening the spill directory: no directory was named");
    options.directory = "/dev/null";
    CHECK(failure(options) == "opening the spill directory: /dev/null: it is not a directory");

    const auto in_memory = std::make_shared<FaultyFiles>();
    in_memory->filesystem_type = TMPFS_MAGIC;
    options = scratch.options();
    options.allow_tmpfs = false;
    CHECK(failure(options, in_memory).find("it lies in memory (tmpfs)") != std::string::npos);
    options.allow_tmpfs = true;
    CHECK(failure(options, in_memory).empty());

    const auto forbidden = std::make_shared<FaultyFiles>();
    forbidden->no_nameless = true;
    forbidden->fail_call = 3; // The directory opens, is looked at and swept; the file in it does not open.
    forbidden->fault.error = EACCES;
    CHECK(failure(options, forbidden).find("it may not be written") != std::string::npos);
}

TEST_CASE("a few descriptors do for any number of seats and segments") {
    ScratchDirectory scratch;
    const pid_t child = ::fork();
    if (child == 0) {
        rlimit limit{};
        limit.rlim_cur = limit.rlim_max = 24;
        bool right = ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
        SpillStore store(scratch.options(), 40);
        std::vector<SpillPlace> places;
        for (unsigned seat = 0; seat != 40; ++seat) {
            const SpillResult result = store.write(seat, {}, bytes_of(seat, 70000));
            right = right && result;
            places.push_back(result.place);
        }
        Bytes out;
        for (unsigned seat = 0; right && seat != 40; ++seat) {
            store.read(places[seat], out);
            right = out == bytes_of(seat, 70000);
        }
        right = right && store.statistics().segments == 40;
        ::_exit(right ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

TEST_CASE("kill -9 leaves nothing in the directory") {
    ScratchDirectory scratch;
    for (const bool nameless : {true, false}) {
        std::array<int, 2> pipe{};
        REQUIRE(::pipe(pipe.data()) == 0);
        const pid_t child = ::fork();
        if (child == 0) {
            const auto files = std::make_shared<FaultyFiles>();
            files->no_nameless = !nameless;
            SpillStore store(scratch.options(), 4, files);
            for (std::uint64_t i = 0;; ++i) {
                if (!store.write(static_cast<unsigned>(i % 4), {i, 0, 0, 0}, bytes_of(i, 200000))) ::_exit(1);
                if (i == 100 && ::write(pipe[1], "x", 1) != 1) ::_exit(1);
                if (i >= 100) ::pause();
            }
        }
        ::close(pipe[1]);
        char ready = 0;
        CHECK(::read(pipe[0], &ready, 1) == 1);
        ::close(pipe[0]);
        CHECK(scratch.empty());
        ::kill(child, SIGKILL);
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status));
        CHECK(scratch.empty());
    }
}
