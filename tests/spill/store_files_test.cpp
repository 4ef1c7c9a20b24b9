// The files of a store: how they are opened, and that nothing of them is left.
#include "scratch.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cerrno>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <utility>

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
    forbidden->fail_call = 4; // The directory opens, is looked at twice and swept; the file in it does not open.
    forbidden->fault.error = EACCES;
    CHECK(failure(options, forbidden).find("it may not be written") != std::string::npos);
}

TEST_CASE("a directory in which all may write and remove is refused, unless it is sticky or the user's own") {
    class Owned : public FileSystem {
    public:
        uid_t owner = ::geteuid() + 1;
        mode_t mode = 0777;
        int status(int file, struct stat& out) override {
            const int result = FileSystem::status(file, out);
            out.st_uid = owner;
            out.st_mode = (out.st_mode & ~mode_t{07777}) | mode;
            return result;
        }
    };
    const ScratchDirectory scratch;
    const auto files = std::make_shared<Owned>();
    CHECK_THROWS_WITH(SpillStore(scratch.options(), 1, files), Catch::Contains("all may write in it"));
    for (const mode_t mode : {01777U, 0775U, 0755U}) {
        files->mode = mode;
        CHECK_NOTHROW(SpillStore(scratch.options(), 1, files));
    }
    files->mode = 0777;
    files->owner = ::geteuid();
    CHECK_NOTHROW(SpillStore(scratch.options(), 1, files));
}

TEST_CASE("what a kill left of a file's name goes at the next opening, a planted link alone, and nothing else") {
    namespace fs = std::filesystem;
    const ScratchDirectory scratch;
    const std::vector<std::string> others = {".spillway-0123456789abcde", ".spillway-0123456789abcdeg",
                                             ".spillway-0123456789abcdef0", "x.spillway-0123456789abcdef"};
    for (const std::string& name : others) scratch.write(name, "other");
    scratch.write(".spillway-0123456789abcdef", "");
    fs::create_symlink(scratch.file(others[0]), scratch.file(".spillway-fedcba9876543210"));
    const SpillStore store(scratch.options(), 1);
    CHECK_FALSE(fs::exists(fs::symlink_status(scratch.file(".spillway-0123456789abcdef"))));
    CHECK_FALSE(fs::exists(fs::symlink_status(scratch.file(".spillway-fedcba9876543210"))));
    for (const std::string& name : others) CHECK(read_file(scratch.file(name)) == "other");
}

TEST_CASE("a store that is opened between the making of another's file and its unlinking harms neither") {
    /// Calls `between` once, when a file that was made is about to lose its name.
    struct Meanwhile : FaultyFiles {
        std::function<void()> between;
        int unlink(int directory, const char* path) override {
            if (between) std::exchange(between, nullptr)();
            return FaultyFiles::unlink(directory, path);
        }
    };
    ScratchDirectory scratch;
    const auto files = std::make_shared<Meanwhile>();
    files->no_nameless = true;
    std::optional<SpillStore> other;
    SpillPlace place_in_other;
    bool named = false;
    files->between = [&] {
        named = !scratch.empty();
        other.emplace(scratch.options(), 1);
        place_in_other = write_surely(*other, 0, bytes_of(2, 100000));
    };
    SpillStore store(scratch.options(), 1, files);
    REQUIRE(other);
    CHECK(named);
    CHECK(scratch.empty()); // the other took the name for a dead run's
    const SpillPlace place = write_surely(store, 0, bytes_of(1, 100000));
    Bytes out;
    store.read(place, out);
    CHECK(out == bytes_of(1, 100000));
    other->read(place_in_other, out);
    CHECK(out == bytes_of(2, 100000));
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
