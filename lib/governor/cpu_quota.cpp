#include "governor/cpu_quota.hpp"

#include "governor/cgroup.hpp"
#include "governor/system_text.hpp"

namespace spillway {

CpuQuota CpuQuota::of_process(const std::string& root) {
    CpuQuota found;
    for (const CpuLimit& limit : Cgroups::of_process(root).cpu_limits()) {
        if (found.cpus && limit.cpus >= *found.cpus) continue;
        found.cpus = limit.cpus;
        found.statistics_ = limit.directory + "/cpu.stat";
    }
    return found;
}

std::optional<QuotaPeriods> CpuQuota::periods() const noexcept {
    if (!cpus) return std::nullopt;
    const SystemText file(statistics_.c_str());
    const auto all = named_number(file.text(), "nr_periods");
    const auto throttled = named_number(file.text(), "nr_throttled");
    if (!all || !throttled) return std::nullopt;
    return QuotaPeriods{*all, *throttled};
}

} // namespace spillway
