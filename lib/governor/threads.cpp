#include "governor/cpu_quota.hpp"
#include "spillway/governor.hpp"

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include <sched.h>

namespace spillway {
namespace {

/// CPUs that this thread may run on; 0 if the kernel does not tell.
unsigned affinity_count() {
    // The kernel refuses masks that are smaller than its own: grow until it takes one.
    constexpr std::size_t most_cpus = 1U << 20U;
    for (std::size_t cpus = 1024; cpus <= most_cpus; cpus *= 2) {
        std::vector<cpu_set_t> mask(cpus / CPU_SETSIZE);
        const std::size_t bytes = mask.size() * sizeof(cpu_set_t);
        if (::sched_getaffinity(0, bytes, mask.data()) == 0)
            return static_cast<unsigned>(CPU_COUNT_S(bytes, mask.data()));
    }
    return 0;
}

} // namespace

unsigned allowed_threads(const std::string& system_root) {
    unsigned threads = affinity_count();
    if (threads == 0) threads = std::thread::hardware_concurrency();
    if (const auto quota = CpuQuota::of_process(system_root).cpus) {
        const double whole = std::ceil(*quota);
        if (whole < threads) threads = static_cast<unsigned>(whole);
    }
    return std::max(threads, 1U);
}

} // namespace spillway
