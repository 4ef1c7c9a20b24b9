// What the control groups of this process allow, v1, v2 or both at once, on every level up to the root.
//
//     const Cgroups cgroups = Cgroups::of_process("");        // "" or what stands before /proc and /sys: a fixture
//     for (const MemoryLimit& limit : cgroups.memory_limits()) ... cgroup_memory_use(limit) ...
//
// What is missing, unreadable or malformed is taken for no limit: a container without cgroup files must run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway {

/// A level of the hierarchy that bounds our memory.
struct MemoryLimit {
    std::string directory;
    bool version_2 = true;
    std::uint64_t max = 0;  ///< Beyond it the kernel kills; no_limit if only `high` is set.
    std::uint64_t high = 0; ///< Beyond it the kernel throttles; no_limit if only `max` is set.

    static constexpr std::uint64_t no_limit = ~std::uint64_t{0};
};

/// A level that bounds our CPU time.
struct CpuLimit {
    std::string directory;
    double cpus = 0; ///< CPUs' worth of time.
};

/// The directories of the process's groups, its own first, the hierarchy's root last. Thread safety: as a value.
class Cgroups {
public:
    [[nodiscard]] static Cgroups of_process(const std::string& root);

    /// The levels that set one, innermost first.
    [[nodiscard]] std::vector<MemoryLimit> memory_limits() const;
    [[nodiscard]] std::vector<CpuLimit> cpu_limits() const;
    /// The file that tells of our own group's memory pressure; of the whole machine if we are in no group; empty if
    /// there is none.
    [[nodiscard]] const std::string& pressure_file() const noexcept { return pressure_file_; }

private:
    std::vector<std::string> unified_, memory_v1_, cpu_v1_;
    std::string pressure_file_;
};

/// Bytes that a level's processes hold and the kernel cannot simply drop: its use, less clean file pages; shared memory
/// and pages on their way to the disk stay in.
[[nodiscard]] std::optional<std::uint64_t> cgroup_memory_use(const MemoryLimit& limit) noexcept;

} // namespace spillway
