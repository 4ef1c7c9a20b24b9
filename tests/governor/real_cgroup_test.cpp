// A control group of this machine with a limit of its own, where one can be made: the budget follows it, and a run with
// ten times as much to hold stays below it. Beyond it the kernel would kill the process.
#include "base/file.hpp"
#include "spillway/pipeline.hpp"
#include "temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace spillway;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t limit = 96_MiB;

bool write_text(const fs::path& file, const std::string& text) {
    std::ofstream out(file);
    out << text;
    return static_cast<bool>(out.flush());
}

/// Inside this process's own group, so that its other limits hold on.
class LimitedGroup {
public:
    LimitedGroup() {
        std::ifstream in("/proc/self/cgroup");
        for (std::string line; std::getline(in, line);) {
            if (line.find(":memory:") != std::string::npos)
                try_in("/sys/fs/cgroup/memory", line, "memory.limit_in_bytes");
            if (line.starts_with("0::")) try_in("/sys/fs/cgroup", line, "memory.max");
        }
    }
    ~LimitedGroup() {
        std::error_code ignored;
        for (int i = 0; !path_.empty() && i < 1000 && !fs::remove(path_, ignored);
             ++i) // Its last process is still going.
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    LimitedGroup(const LimitedGroup&) = delete;
    LimitedGroup& operator=(const LimitedGroup&) = delete;

    [[nodiscard]] bool made() const { return !path_.empty(); }
    [[nodiscard]] const std::string& reason() const { return reason_; }
    /// This process goes in.
    [[nodiscard]] bool enter() const { return write_text(path_ / "cgroup.procs", std::to_string(::getpid())); }

private:
    void try_in(const std::string& mount, const std::string& line, const std::string& file) {
        if (made()) return;
        const fs::path path = mount + line.substr(line.find(":/") + 1) + "/spillway-test-" + std::to_string(::getpid());
        std::error_code error;
        if (!fs::create_directory(path, error)) {
            reason_ = path.string() + ": " + error.message();
        } else if (!write_text(path / file, std::to_string(limit))) {
            reason_ = (path / file).string() + ": cannot be set";
            fs::remove(path, error);
        } else {
            path_ = path;
        }
    }

    fs::path path_;
    std::string reason_ = "no memory controller in /proc/self/cgroup";
};

/// Nothing is left dirty in the cache: where a disk stands still for seconds, the kernel finds no clean page in the group
/// to take, and kills.
class WrittenThrough : public FileSystem {
public:
    std::int64_t write(int file, std::span<const iovec> pieces, std::uint64_t offset) override {
        const std::int64_t written = FileSystem::write(file, pieces, offset);
        if (written <= 0) return written;
        const auto length = static_cast<std::uint64_t>(written);
        constexpr unsigned now = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
        static_cast<void>(sync_range(file, offset, length, now));
        static_cast<void>(drop_cached(file, offset, length));
        return written;
    }
};

/// In a process of its own, inside the group: the exit status.
int stay_below() {
    constexpr int items = 1200;
    constexpr std::size_t bytes = 800'000; // Together ten times the limit.
    const spillway::test::TemporaryDirectory scratch;
    int next = 0;
    auto run = pipeline<int>("limited")
                   .source(std::views::iota(0, items))
                   .map("make", [](int x) { return std::vector<std::uint8_t>(bytes, static_cast<std::uint8_t>(x)); })
                   .map("slow",
                        [](std::vector<std::uint8_t>& block) {
                            if (block[0] % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(500));
                        })
                   .limit(1)
                   .in_order("compare", [&](const std::vector<std::uint8_t>& block) {
                       if (block.size() == bytes && block[bytes - 1] == static_cast<std::uint8_t>(next)) ++next;
                   });
    Pool pool({.min_threads = 2, .max_threads = 2});
    const std::uint64_t budget = pool.governor().budget();
    if (budget > limit * 8 / 10 || budget < limit / 2) return 10; // What else is in the group may be taken off.
    try {
        const Report report = run.run(pool, {.spill = SpillOptions{.directory = scratch.path(),
                                                                   .allow_tmpfs = true,
                                                                   .files = std::make_shared<WrittenThrough>()}});
        if (next != items) return 11;
        return report.memory_peak < limit ? 0 : 12;
    } catch (const Error&) {
        return 13;
    }
}

} // namespace

TEST_CASE("in a real control group the budget is 0.8 of its limit, and a run with ten times as much stays below") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    std::cout << "SKIPPED: a sanitizer's shadow and what it keeps of freed memory count in the group, too\n";
    return;
#endif
    const LimitedGroup group;
    if (!group.made()) {
        std::cout << "SKIPPED: no control group can be made: " << group.reason() << '\n';
        return;
    }
    const pid_t child = ::fork();
    if (child == 0) ::_exit(group.enter() ? stay_below() : 9);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 9) {
        std::cout << "SKIPPED: a process may not be moved into a control group\n";
        return;
    }
    REQUIRE(WIFEXITED(status)); // Else the kernel killed it.
    CHECK(WEXITSTATUS(status) == 0);
}
