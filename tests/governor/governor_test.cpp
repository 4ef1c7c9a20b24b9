#include "fixture.hpp"

#include "spillway/governor.hpp"

#include <thread>
#include <vector>

using namespace spillway;
using spillway::test::Machine;
using namespace std::chrono_literals;

namespace {

GovernorOptions options_on(const Machine& machine, std::uint64_t memory = 0) {
    GovernorOptions options;
    options.memory = memory;
    options.system_root = machine.root();
    return options;
}

/// A clock that goes as the test says.
Governor::Clock::time_point at(std::chrono::nanoseconds time) {
    return Governor::Clock::time_point(1h + time);
}

} // namespace

TEST_CASE("between the marks the verdict stays as it was") {
    Machine machine;
    Governor governor(options_on(machine, 1000));
    CHECK(governor.verdict() == Verdict::run);
    governor.charge(800);
    CHECK(governor.verdict() == Verdict::run);
    governor.charge(1);
    CHECK(governor.verdict() == Verdict::spill);
    governor.release(150); // 651
    CHECK(governor.verdict() == Verdict::spill);
    governor.release(2);
    CHECK(governor.verdict() == Verdict::run);
    governor.charge(151); // 800 again, from below.
    CHECK(governor.verdict() == Verdict::run);
    governor.charge(150);
    CHECK(governor.verdict() == Verdict::spill); // 950
    governor.charge(1);
    CHECK(governor.verdict() == Verdict::hold);
    governor.release(1);
    CHECK(governor.verdict() == Verdict::spill);
    governor.release(250); // 700: holding had begun to spill.
    CHECK(governor.verdict() == Verdict::spill);
    CHECK_FALSE(governor.below_low());
    governor.release(201);
    CHECK(governor.below_low());
}

TEST_CASE("releases that overtake their charges never make the use negative") {
    Machine machine;
    Governor governor(options_on(machine, 1000));
    governor.release(10);
    CHECK(governor.tracked() == 0);
    CHECK(governor.used() == 0);
    CHECK(governor.verdict() == Verdict::run);
    governor.charge(10);
    governor.charge(7);
    CHECK(governor.tracked() == 7);
}

TEST_CASE("a budget below the floor is a usage error that names both") {
    Machine machine;
    Governor governor(options_on(machine, 64_MiB));
    const Floor fits(governor, 64_MiB);
    try {
        const Floor exceeds(governor, 96_MiB);
        FAIL("accepted");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::usage);
        CHECK(std::string(error.what()) == "setting up memory: the budget of 64.0 MiB is below the floor of 96.0 MiB: "
                                           "allow at least 100663296 bytes, or use fewer threads");
    }
    CHECK(governor.floor() == 64_MiB);
}

TEST_CASE("a floor holds as long as its pipeline, and beside others the highest does, with what is resident of all") {
    Machine machine;
    machine.ram(1000).resident(10_MiB);
    GovernorOptions options = options_on(machine, 200_MiB);
    options.watch_process = true;
    Governor governor(options);
    {
        const Floor first(governor, 100_MiB, 80_MiB);
        machine.resident(90_MiB); // 80 more: what the first has loaded
        CHECK(governor.tick(at(0s)));
        CHECK(governor.verdict() == Verdict::run);
        {
            const Floor second(governor, 60_MiB, 10_MiB);
            CHECK(governor.floor() == 100_MiB);
            machine.resident(100_MiB);
            CHECK(governor.tick(at(10ms)));
            CHECK(governor.below_low()); // all 90 are fixed, and the rest is free
        }
        CHECK(governor.floor() == 100_MiB);
        CHECK(governor.verdict() == Verdict::run);
    }
    CHECK(governor.floor() == 0);
    // What stays in the process is no pipeline's any more: it is in use, and nothing else is set aside.
    CHECK(governor.used() == 90_MiB);
    CHECK(governor.verdict() == Verdict::run);
    const Floor next(governor, 1_MiB);
    CHECK(governor.verdict() == Verdict::run);
}

TEST_CASE("the marks lie in what the budget leaves above the floor, for use beyond what is fixed") {
    Machine machine;
    Governor governor(options_on(machine, 1000)); // marks at 0.5, 0.65, 0.8 and 0.95
    const Floor floor(governor, 600);
    governor.charge_fixed(500); // the other 100 will be in use, too
    CHECK(governor.verdict() == Verdict::run);
    CHECK(governor.below_low());
    governor.charge(200);
    CHECK_FALSE(governor.below_low());
    governor.charge(120);
    CHECK(governor.verdict() == Verdict::run);
    governor.charge(1);
    CHECK(governor.verdict() == Verdict::spill);
    governor.charge(60);
    CHECK(governor.verdict() == Verdict::hold);
    governor.charge_fixed(100);
    CHECK(governor.verdict() == Verdict::hold);
    CHECK(governor.tracked() == 981);
    governor.release(121);
    CHECK(governor.verdict() == Verdict::spill);
    governor.release(1);
    CHECK(governor.verdict() == Verdict::run);
    governor.charge_fixed(100); // beyond the floor: of 300 that are left
    CHECK(governor.verdict() == Verdict::spill);
    governor.charge_fixed(-700);
    governor.release(259);
    CHECK(governor.tracked() == 0);
    CHECK(governor.verdict() == Verdict::run);
    const Floor higher(governor, 1000);
    governor.charge_fixed(700);
    CHECK(governor.verdict() == Verdict::run);
    governor.charge(1);
    CHECK(governor.verdict() == Verdict::hold); // only what the head needs
}

TEST_CASE("marks out of order are a usage error") {
    Machine machine;
    for (auto change : {+[](GovernorOptions& o) { o.low = 0; }, +[](GovernorOptions& o) { o.spill_below = 0.9; },
                        +[](GovernorOptions& o) { o.hold_above = 1.5; },
                        +[](GovernorOptions& o) { o.hold_above = 0.7; }, +[](GovernorOptions& o) { o.low = 0.7; },
                        +[](GovernorOptions& o) { o.spill_above = std::numeric_limits<double>::quiet_NaN(); }}) {
        GovernorOptions options = options_on(machine, 1000);
        change(options);
        try {
            const Governor governor(options);
            FAIL("accepted");
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::usage);
        }
    }
}

TEST_CASE("a tick adds what is resident beyond the tracked bytes and the host's own at the start") {
    Machine machine;
    machine.ram(1000).resident(100_MiB);
    Governor governor(options_on(machine));
    governor.charge(50_MiB);
    CHECK(governor.used() == 50_MiB);
    machine.resident(180_MiB);
    CHECK(governor.tick(at(0s)));
    CHECK(governor.used() == 80_MiB);
    CHECK(governor.figures().untracked == 30_MiB);
    machine.resident(120_MiB); // Charged, but not yet touched.
    CHECK(governor.tick(at(10ms)));
    CHECK(governor.used() == 50_MiB);
    CHECK(governor.figures().peak == 80_MiB);
}

TEST_CASE("ticks within 10 ms of the last do nothing") {
    Machine machine;
    Governor governor(options_on(machine, 1000));
    CHECK(governor.tick(at(0s)));
    CHECK_FALSE(governor.tick(at(0s)));
    CHECK_FALSE(governor.tick(at(9999us)));
    CHECK(governor.tick(at(10ms)));
    CHECK(governor.tick(at(1s)));
}

TEST_CASE("what others in the group hold is taken off the budget, and given back when they go") {
    Machine machine;
    machine.ram(100000).resident(10_MiB).version_2("/job");
    machine.file("/sys/fs/cgroup/job/memory.max", std::to_string(1000_MiB));
    machine.file("/sys/fs/cgroup/job/memory.current", std::to_string(10_MiB));
    Governor governor(options_on(machine));
    CHECK(governor.budget() == 800_MiB);
    governor.charge(100_MiB);
    machine.resident(110_MiB).file("/sys/fs/cgroup/job/memory.current", std::to_string(400_MiB));
    CHECK(governor.tick(at(0s)));
    CHECK(governor.budget() == 500_MiB);
    // Cached files of a neighbour are no use; nor are our own spill files.
    machine.file("/sys/fs/cgroup/job/memory.stat",
                 "file " + std::to_string(290_MiB) + "\nfile_dirty " + std::to_string(5_MiB) + '\n');
    CHECK(governor.tick(at(50ms)));
    CHECK(governor.budget() == 500_MiB); // Read every 100 ms only.
    CHECK(governor.tick(at(100ms)));
    CHECK(governor.budget() == 785_MiB);
    const Floor floor(governor, 700_MiB);
    machine.file("/sys/fs/cgroup/job/memory.current", std::to_string(999_MiB));
    CHECK(governor.tick(at(200ms)));
    CHECK(governor.budget() == 700_MiB);
}

TEST_CASE("pressure lowers the budget by a tenth a period, not while spilling, not below the floor, and it recovers") {
    Machine machine;
    machine.version_2("/job");
    const auto waited = [&](std::uint64_t milliseconds) {
        machine.file("/sys/fs/cgroup/job/memory.pressure",
                     "some avg10=9.00 avg60=0.00 avg300=0.00 total=" + std::to_string(milliseconds * 1000) +
                         "\nfull total=0\n");
    };
    waited(5000);
    Governor governor(options_on(machine, 1000000));
    const Floor floor(governor, 750000);
    CHECK(governor.tick(at(0s)));
    CHECK(governor.budget() == 1000000); // What was before us does not count.
    waited(5200);
    CHECK(governor.tick(at(2s)));
    CHECK(governor.budget() == 1000000); // 10% is not over 10%.
    waited(5401);
    CHECK(governor.tick(at(4s)));
    CHECK(governor.budget() == 900000);
    waited(7000);
    CHECK(governor.tick(at(5s)));
    CHECK(governor.budget() == 900000); // In the middle of a period.
    governor.note_spilled(4096);
    CHECK(governor.tick(at(6s)));
    CHECK(governor.budget() == 900000); // We were writing.
    waited(8000);
    CHECK(governor.tick(at(8s)));
    CHECK(governor.budget() == 810000);
    waited(9000);
    CHECK(governor.tick(at(10s)));
    CHECK(governor.budget() == 810000); // The next step would go below the floor.
    CHECK(governor.figures().pressure_cuts == 2);
    CHECK(governor.tick(at(12s)));
    CHECK(governor.budget() == 900000);
    CHECK(governor.tick(at(14s)));
    CHECK(governor.budget() == 1000000);
    CHECK(governor.tick(at(16s)));
    CHECK(governor.budget() == 1000000);
}

TEST_CASE("charges, verdicts and ticks from many threads add up") {
    Machine machine;
    machine.ram(1000).resident(1_MiB);
    Governor governor(options_on(machine, 1000000));
    std::vector<std::thread> threads;
    std::atomic<int> ticks{0};
    for (int thread = 0; thread != 4; ++thread) {
        threads.emplace_back([&] {
            for (int i = 0; i != 20000; ++i) {
                governor.charge(3);
                static_cast<void>(governor.verdict());
                if (i % 100 == 0 && governor.tick(at(std::chrono::milliseconds(i)))) ++ticks;
                governor.release(2);
            }
        });
    }
    for (auto& thread : threads) thread.join();
    CHECK(governor.tracked() == 80000);
    CHECK(ticks > 0);
}

TEST_CASE("sizes are read with and without units") {
    CHECK(parse_bytes("0") == 0);
    CHECK(parse_bytes("1048576") == 1048576);
    CHECK(parse_bytes("512MiB") == 512_MiB);
    CHECK(parse_bytes("512 mb") == 512_MiB);
    CHECK(parse_bytes("2G") == 2_GiB);
    CHECK(parse_bytes("1.5g") == 1536_MiB);
    CHECK(parse_bytes(".5K") == 512);
    CHECK(parse_bytes("3T") == 3072_GiB);
    CHECK(parse_bytes("100B") == 100);
    CHECK(parse_bytes("0.3K") == 307);
    CHECK(parse_bytes("9223372036854775807") == 9223372036854775807U);
}

TEST_CASE("what is no size is refused with the flag's name and the way to write one") {
    for (const char* text : {"", "G", "1.", "1..5G", "-1", "+1", "1e9", "12Q", "1 2", "1KiBs", "0x10",
                             "9223372036854775808", "99999999T", "18446744073709551616", "1i", " 1", "."}) {
        INFO(text);
        if (std::string(text) == "1.") { // Odd, but clear.
            CHECK(parse_bytes(text) == 1);
            continue;
        }
        try {
            static_cast<void>(parse_bytes(text, "--disk"));
            FAIL_CHECK("accepted");
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::usage);
            CHECK(std::string(error.what()).find("reading --disk: \"" + std::string(text) + "\": ") == 0);
            CHECK(std::string(error.what()).find("such as 512M or 1.5GiB") != std::string::npos);
        }
    }
}

TEST_CASE("sizes are shown with one decimal of the largest unit") {
    CHECK(format_bytes(0) == "0 B");
    CHECK(format_bytes(1023) == "1023 B");
    CHECK(format_bytes(1536) == "1.5 KiB");
    CHECK(format_bytes(2_GiB) == "2.0 GiB");
}
