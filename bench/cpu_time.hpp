// The CPU time that a benchmark compares: its own thread's, at the cost of one system call.
//
//     const double begin = bench::cpu_seconds(); ...; const double spent = bench::cpu_seconds() - begin;
#pragma once

#include <ctime>

namespace bench {

/// Of this thread: what others run on the machine meanwhile counts little.
[[nodiscard]] inline double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

} // namespace bench
