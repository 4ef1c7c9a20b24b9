#include "fixture.hpp"

#include "governor/cgroup.hpp"
#include "governor/cpu_quota.hpp"
#include "governor/meminfo.hpp"
#include "governor/pressure.hpp"
#include "spillway/governor.hpp"

using namespace spillway;
using spillway::test::Machine;

namespace {

std::uint64_t budget(const Machine& machine, std::uint64_t memory = 0) {
    GovernorOptions options;
    options.memory = memory;
    options.system_root = machine.root();
    return Governor(options).budget();
}

constexpr std::uint64_t mebibyte = 1048576;

} // namespace

TEST_CASE("without limits the budget is 0.8 of RAM, or the user's if that is less") {
    Machine machine;
    machine.ram(1000).version_2("/");
    CHECK(budget(machine) == 800 * mebibyte);
    CHECK(budget(machine, 500 * mebibyte) == 500 * mebibyte);
    CHECK(budget(machine, 2000 * mebibyte) == 800 * mebibyte);
}

TEST_CASE("the tightest memory.max on the path to the root counts, not only our own") {
    Machine machine;
    machine.ram(10000).version_2("/user.slice/job");
    machine.file("/sys/fs/cgroup/user.slice/job/memory.max", "3145728000\n"); // 3000 MiB
    CHECK(budget(machine) == 2400 * mebibyte);
    machine.file("/sys/fs/cgroup/user.slice/memory.max", "1048576000\n"); // 1000 MiB
    CHECK(budget(machine) == 800 * mebibyte);
    machine.file("/sys/fs/cgroup/user.slice/job/memory.max", "max\n");
    CHECK(budget(machine) == 800 * mebibyte);
}

TEST_CASE("memory.high counts for 0.9 of itself") {
    Machine machine;
    machine.ram(10000).version_2("/job");
    machine.file("/sys/fs/cgroup/job/memory.max", "1048576000\n").file("/sys/fs/cgroup/job/memory.high", "524288000\n");
    CHECK(budget(machine) == 450 * mebibyte);
    machine.file("/sys/fs/cgroup/job/memory.high", "1048576000\n");
    CHECK(budget(machine) == 800 * mebibyte);
    machine.file("/sys/fs/cgroup/job/memory.max", "max\n");
    CHECK(budget(machine) == 900 * mebibyte);
}

TEST_CASE("version 1 limits count, its unlimited is none, and an outer one binds too") {
    Machine machine;
    machine.ram(10000).hybrid("/lxc/job");
    const std::string memory = "/sys/fs/cgroup/memory";
    machine.file(memory + "/memory.limit_in_bytes", "9223372036854771712\n");
    machine.file(memory + "/lxc/job/memory.limit_in_bytes", "9223372036854771712\n");
    CHECK(budget(machine) == 8000 * mebibyte);
    machine.file(memory + "/lxc/job/memory.limit_in_bytes", "2097152000\n");
    CHECK(budget(machine) == 1600 * mebibyte);
    machine.file(memory + "/lxc/memory.limit_in_bytes", "1048576000\n");
    CHECK(budget(machine) == 800 * mebibyte);
}

TEST_CASE("a container that sees its group from outside finds its own files") {
    Machine machine;
    machine.ram(10000);
    machine.file("/proc/self/mountinfo", "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
                                         "36 31 0:33 /docker/abc /sys/fs/cgroup/unified ro - cgroup2 cgroup2 rw\n");
    machine.file("/proc/self/cgroup", "4:memory:/docker/abc\n0::/docker/abc/inner\n");
    machine.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2097152000\n");
    CHECK(budget(machine) == 1600 * mebibyte);
    machine.file("/sys/fs/cgroup/unified/inner/memory.max", "1048576000\n");
    CHECK(budget(machine) == 800 * mebibyte);
    // A name that only begins like the mount's group is another group: it is not to be found here, so the mount point
    // is ours.
    machine.file("/proc/self/cgroup", "4:memory:/docker/abcd\n0::/../other\n");
    CHECK(budget(machine) == 1600 * mebibyte);
}

TEST_CASE("mount points and groups with blanks are found") {
    Machine machine;
    machine.ram(10000);
    machine.file("/proc/self/mountinfo", "31 23 0:28 / /mnt/my\\040groups rw shared:9 - cgroup2 cgroup2 rw\n");
    machine.file("/proc/self/cgroup", "0::/a b:c\n");
    machine.file("/mnt/my groups/a b:c/memory.max", "1048576000");
    CHECK(budget(machine) == 800 * mebibyte);
}

TEST_CASE("files that are missing, empty or garbage mean no limit") {
    Machine machine;
    CHECK(budget(machine, 12345) == 12345);
    CHECK(budget(machine) > 1000000 * mebibyte); // Nothing is known at all.
    CHECK(allowed_threads(machine.root()) >= 1);
    machine.ram(1000);
    for (const char* garbage :
         {"", "\n", "garbage", "12three", "-5", "99999999999999999999999999", ":::", "\xff\xfe 1"}) {
        INFO(garbage);
        machine.version_2("/job");
        for (const char* name :
             {"memory.max", "memory.high", "memory.current", "memory.stat", "cpu.max", "memory.pressure"}) {
            machine.file(std::string("/sys/fs/cgroup/job/") + name, garbage);
        }
        CHECK(budget(machine) == 800 * mebibyte);
        machine.file("/proc/self/statm", garbage);
        GovernorOptions options;
        options.system_root = machine.root();
        Governor governor(options);
        CHECK(governor.tick(Governor::Clock::now()));
        CHECK(governor.budget() == 800 * mebibyte);
        machine.file("/proc/self/cgroup", garbage).file("/proc/self/mountinfo", garbage);
        CHECK(budget(machine) == 800 * mebibyte);
        CHECK(allowed_threads(machine.root()) >= 1);
    }
    machine.file("/proc/meminfo", "MemTotal: lots\n");
    CHECK_FALSE(total_memory(machine.root()));
}

TEST_CASE("a group's use leaves out what the kernel can drop, and keeps shared memory and pages to be written") {
    Machine machine;
    const MemoryLimit version_2{machine.root() + "/two", true, 1, 1};
    machine.file("/two/memory.current", "10000\n");
    CHECK(cgroup_memory_use(version_2) == 10000);
    machine.file("/two/memory.stat",
                 "anon 3000\nfile 6000\nfile_mapped 77\nshmem 500\nfile_dirty 200\nfile_writeback 100\n");
    CHECK(cgroup_memory_use(version_2) == 10000 - 6000 + 500 + 200 + 100);
    const MemoryLimit version_1{machine.root() + "/one", false, 1, 1};
    CHECK_FALSE(cgroup_memory_use(version_1));
    machine.file("/one/memory.usage_in_bytes", "10000\n");
    machine.file("/one/memory.stat",
                 "cache 1\ndirty 2\ntotal_cache 6000\ntotal_shmem 500\ntotal_dirty 200\ntotal_writeback 100\n");
    CHECK(cgroup_memory_use(version_1) == 4800);
}

TEST_CASE("the quota of CPUs bounds the threads, rounded up, on the tightest level") {
    Machine machine;
    const unsigned all = allowed_threads(machine.root());
    machine.version_2("/a/b");
    CHECK(allowed_threads(machine.root()) == all);
    machine.file("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    CHECK(allowed_threads(machine.root()) == all);
    machine.file("/sys/fs/cgroup/a/b/cpu.max", "101000 100000\n");
    CHECK(allowed_threads(machine.root()) == std::min(all, 2U));
    machine.file("/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
    CHECK(allowed_threads(machine.root()) == 1);
    CHECK(CpuQuota::of_process(machine.root()).cpus == 0.5);

    Machine old;
    old.hybrid("/job").file("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
    old.file("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    CHECK_FALSE(CpuQuota::of_process(old.root()).cpus);
    CHECK_FALSE(CpuQuota::of_process(old.root()).periods());
    old.file("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n");
    CHECK(CpuQuota::of_process(old.root()).cpus == 2.5);
}

TEST_CASE("how often a quota has stopped us is told by the level that is tightest") {
    Machine machine;
    machine.version_2("/a/b");
    machine.file("/sys/fs/cgroup/a/b/cpu.max", "300000 100000\n");
    machine.file("/sys/fs/cgroup/a/b/cpu.stat", "usage_usec 5\nnr_periods 9\nnr_throttled 8\nthrottled_usec 7\n");
    machine.file("/sys/fs/cgroup/a/cpu.max", "200000 100000\n");
    const CpuQuota quota = CpuQuota::of_process(machine.root());
    CHECK_FALSE(quota.periods()); // the tightest level's file is missing
    machine.file("/sys/fs/cgroup/a/cpu.stat", "usage_usec 50\nnr_periods 40\nnr_throttled 12\nthrottled_usec 70\n");
    REQUIRE(quota.periods());
    CHECK(quota.periods()->all == 40);
    CHECK(quota.periods()->throttled == 12);
    machine.file("/sys/fs/cgroup/a/cpu.stat", "usage_usec 50\n");
    CHECK_FALSE(quota.periods());
}

TEST_CASE("pressure is read of our own group, and of the machine only from its root") {
    Machine machine;
    machine.version_2("/job").file("/sys/fs/cgroup/job/memory.max", "max\n");
    machine.file("/proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=77\nfull avg10=0.00 total=5\n");
    CHECK(Cgroups::of_process(machine.root()).pressure_file().empty());
    machine.file("/sys/fs/cgroup/job/memory.pressure",
                 "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234567\nfull total=5\n");
    const std::string own = Cgroups::of_process(machine.root()).pressure_file();
    CHECK(own == machine.root() + "/sys/fs/cgroup/job/memory.pressure");
    CHECK(some_pressure(own.c_str()) == std::chrono::microseconds(1234567));
    machine.file("/proc/self/cgroup", "0::/\n");
    CHECK(Cgroups::of_process(machine.root()).pressure_file() == machine.root() + "/proc/pressure/memory");
    machine.file("/proc/pressure/memory", "some avg10=0.00\n");
    CHECK_FALSE(some_pressure((machine.root() + "/proc/pressure/memory").c_str()));
    CHECK_FALSE(some_pressure("/nonexistent"));
}

TEST_CASE("this machine's own figures are believable") {
    CHECK(total_memory("").value_or(0) > 100 * mebibyte);
    CHECK(resident_memory("/proc/self/statm").value_or(0) > mebibyte);
    const Governor governor;
    CHECK(governor.budget() > 10 * mebibyte);
    CHECK(governor.budget() < total_memory("").value_or(0));
    CHECK(allowed_threads() >= 1);
}
