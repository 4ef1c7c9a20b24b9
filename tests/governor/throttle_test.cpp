// Threads under a CPU quota, in virtual time.
#include "pool/throttle.hpp"

#include <catch2/catch.hpp>

#include <vector>

using spillway::detail::Throttle;
using namespace std::chrono_literals;

namespace {

/// A machine where a thread gets a whole CPU until all together have used up the quota of each period.
struct Machine {
    double quota;

    /// How many threads run after so many seconds.
    std::size_t after(int seconds, Throttle& throttle, std::vector<std::size_t>* trace = nullptr) {
        std::size_t threads = 0;
        for (int i = 0; i < seconds; ++i) {
            threads = throttle.look(sample);
            if (trace != nullptr) trace->push_back(threads);
            const auto busy = static_cast<double>(threads);
            const bool bites = busy > quota;
            const double rate = bites ? quota : busy;
            sample.now += 1s;
            sample.cpu_time += std::chrono::duration_cast<std::chrono::nanoseconds>(rate * 1s);
            sample.periods.all += 10;
            sample.periods.throttled += bites ? 10 : 0;
        }
        return threads;
    }
    spillway::detail::ThrottleSample sample = {};
};

} // namespace

TEST_CASE("threads that a quota would only stop are taken away, down to what the quota gives, and no further") {
    Throttle throttle(8);
    Machine machine{2};
    CHECK(machine.after(60, throttle) == 2);
    CHECK(machine.after(300, throttle) >= 2);
}

TEST_CASE("a thread whose loss costs more than 2% comes back, and is let be for half a minute") {
    Throttle throttle(2);
    Machine machine{1.5}; // one thread would get 1.0
    std::vector<std::size_t> trace;
    machine.after(40, throttle, &trace);
    CHECK(std::count(trace.begin(), trace.end(), 1U) == 2); // one look each for two trials, 31 looks apart
    CHECK(trace.back() == 2);
}

TEST_CASE("without throttling nothing is taken away, and when a quota is raised the threads come back") {
    Throttle throttle(4);
    Machine machine{4};
    CHECK(machine.after(100, throttle) == 4);
    machine.quota = 1;
    CHECK(machine.after(60, throttle) == 1);
    machine.quota = 8;
    CHECK(machine.after(200, throttle) == 4);
}

TEST_CASE("one thread is never taken away") {
    Throttle throttle(1);
    Machine machine{0.5};
    CHECK(machine.after(100, throttle) == 1);
}
