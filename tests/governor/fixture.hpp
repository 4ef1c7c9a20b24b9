// A made-up /proc and /sys in a directory of its own.
#pragma once

#include "temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

namespace spillway::test {

class Machine {
public:
    [[nodiscard]] std::string root() const { return directory_.path().string(); }

    Machine& file(const std::string& path, const std::string& text) {
        const auto full = directory_.path() / path.substr(1);
        std::filesystem::create_directories(full.parent_path());
        std::ofstream(full) << text;
        return *this;
    }

    Machine& ram(std::uint64_t mebibytes) {
        return file("/proc/meminfo", "MemTotal:       " + std::to_string(mebibytes * 1024) +
                                         " kB\nMemFree:         1 kB\nMemTotalFake: 3 kB\n");
    }
    Machine& resident(std::uint64_t bytes) {
        const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
        return file("/proc/self/statm", "999999 " + std::to_string(bytes / page) + " 10 1 0 5 0\n");
    }
    /// cgroup v2 mounted at its usual place; this process is in `group`.
    Machine& version_2(const std::string& group) {
        return file("/proc/self/mountinfo", "22 1 0:21 / /proc rw shared:2 - proc proc rw\n"
                                            "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n")
            .file("/proc/self/cgroup", "0::" + group + "\n")
            .file("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    }
    /// cgroup v1 with the memory and cpu controllers, and v2 mounted beside them without controllers.
    Machine& hybrid(const std::string& group) {
        return file("/proc/self/mountinfo",
                    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
                    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n")
            .file("/proc/self/cgroup", "9:name=systemd:/\n4:memory:" + group + "\n2:cpu,cpuacct:" + group + "\n0::/\n");
    }

private:
    TemporaryDirectory directory_;
};

} // namespace spillway::test
