// What a CPU quota grants this process, and whether it holds the process back.
//
//     const CpuQuota quota = CpuQuota::of_process("");      // "" or what stands before /proc and /sys: a fixture
//     if (quota.cpus) ... quota.periods() ...
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace spillway {

/// Since the group began.
struct QuotaPeriods {
    std::uint64_t all = 0;
    std::uint64_t throttled = 0; ///< In which the group had used up its share, and all its threads were stopped.
};

/// The tightest level's, up to the root. Thread safety: as a value.
class CpuQuota {
public:
    [[nodiscard]] static CpuQuota of_process(const std::string& root);

    std::optional<double> cpus; ///< CPUs' worth of time; nothing: no quota.

    /// Nothing where there is no quota or the kernel does not tell. About 10 us.
    [[nodiscard]] std::optional<QuotaPeriods> periods() const noexcept;

private:
    std::string statistics_;
};

} // namespace spillway
