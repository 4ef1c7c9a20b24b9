// How many threads are worth having under a CPU quota that stops them all when it is used up.
//
//     Throttle throttle(8);
//     std::size_t threads = throttle.look({periods, cpu_time, now});      // every second or so
//
// While the quota bites, one thread fewer is tried; while it does not, one more. What the process then gets of the CPU
// in the same time decides: fewer is kept if it costs less than 2%, more if it gains more than that. The same work is
// then done by threads that are stopped less, so that what they hold is held for less long.
#pragma once

#include "governor/cpu_quota.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace spillway::detail {

/// What a look at the machine found; all since some beginning.
struct ThrottleSample {
    QuotaPeriods periods;
    std::chrono::nanoseconds cpu_time{0}; ///< Of the process.
    std::chrono::nanoseconds now{0};
};

/// A plain value: no clock, no files. Thread safety: none.
class Throttle {
public:
    explicit Throttle(std::size_t most) : most_(most), threads_(most) {}

    /// Takes in what has been since the look before, and says how many threads may run until the next.
    std::size_t look(const ThrottleSample& sample) noexcept {
        const std::optional<ThrottleSample> before = std::exchange(last_, sample);
        if (!before || sample.now <= before->now) return threads_;
        const double rate = static_cast<double>((sample.cpu_time - before->cpu_time).count()) /
                            static_cast<double>((sample.now - before->now).count());
        const auto periods = static_cast<double>(sample.periods.all - before->periods.all);
        const auto throttled = static_cast<double>(sample.periods.throttled - before->periods.throttled);
        const bool bites = throttled > share_that_bites * periods;
        if (trial_ != Trial::none) {
            const bool fewer = trial_ == Trial::fewer;
            if (fewer ? rate < (1 - worth_it) * before_ : rate <= (1 + worth_it) * before_) {
                threads_ = fewer ? threads_ + 1 : threads_ - 1;
                rest_ = looks_of_rest;
            }
            trial_ = Trial::none;
        } else if (rest_ > 0) {
            --rest_;
        } else if (bites && threads_ > 1) {
            trial_ = Trial::fewer;
            before_ = rate;
            --threads_;
        } else if (throttled == 0 && threads_ < most_) {
            trial_ = Trial::more; // the quota, or what shares it, may have changed
            before_ = rate;
            ++threads_;
        }
        return threads_;
    }

private:
    enum class Trial : std::uint8_t { none, fewer, more };

    static constexpr double share_that_bites = 0.1, worth_it = 0.02;
    static constexpr unsigned looks_of_rest = 30;

    std::size_t most_, threads_;
    std::optional<ThrottleSample> last_;
    Trial trial_ = Trial::none; // what the last look changed
    double before_ = 0;         // CPUs' worth that the process got before the trial
    unsigned rest_ = 0;         // looks until something is tried again
};

} // namespace spillway::detail
