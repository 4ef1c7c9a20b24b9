#include "governor/cgroup.hpp"

#include "governor/system_text.hpp"

#include <algorithm>
#include <string_view>

#include <unistd.h>

namespace spillway {
namespace {

/// v1 says "no limit" by a number near 2^63, rounded to a page; nothing real comes near it.
constexpr std::uint64_t largest_limit = std::uint64_t{1} << 60U;

/// Where a hierarchy is mounted, and which of its groups that is.
struct Mount {
    std::string point, group;
};

struct Mounts {
    std::optional<Mount> unified, memory, cpu;
};

/// mountinfo writes blanks and backslashes as octal escapes.
std::string unescaped(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto octal = [&](std::size_t at) { return text[at] >= '0' && text[at] <= '7'; };
        if (text[i] == '\\' && i + 3 < text.size() && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
            out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
            i += 3;
        } else {
            out += text[i];
        }
    }
    return out;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (;;) {
        const std::size_t end = text.find(separator);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

bool lists(std::string_view comma_separated, std::string_view name) {
    const auto names = split(comma_separated, ',');
    return std::find(names.begin(), names.end(), name) != names.end();
}

/// "31 23 0:28 / /sys/fs/cgroup rw shared:1 - cgroup2 cgroup2 rw,memory": fields 3 (group) and 4 (point), and those
/// behind " - ".
Mounts find_mounts(const std::string& root) {
    Mounts mounts;
    std::vector<char> buffer(std::size_t{1}
                             << 20U); // It grows with the mounted file systems, to hundreds of KiB on some hosts.
    for (std::string_view text = read_text((root + "/proc/self/mountinfo").c_str(), buffer); !text.empty();) {
        const std::string_view line = take_line(text);
        const std::size_t dash = line.find(" - ");
        if (dash == std::string_view::npos) continue;
        const auto before = split(line.substr(0, dash), ' ');
        const auto behind = split(line.substr(dash + 3), ' ');
        if (before.size() < 5 || behind.size() < 3) continue;
        const Mount mount{unescaped(before[4]), unescaped(before[3])};
        if (behind[0] == "cgroup2" && !mounts.unified) mounts.unified = mount;
        if (behind[0] == "cgroup" && lists(behind[2], "memory") && !mounts.memory) mounts.memory = mount;
        if (behind[0] == "cgroup" && lists(behind[2], "cpu") && !mounts.cpu) mounts.cpu = mount;
    }
    return mounts;
}

bool exists(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

/// The directories from the group's own up to the mount point. `group` is as /proc/self/cgroup says it, which in a
/// container may be seen from outside: then the mount's own group is its beginning, or it is not to be found at all and
/// the mount point is ours.
std::vector<std::string> levels(const std::string& root, const Mount& mount, std::string_view group) {
    const std::string_view outer = mount.group == "/" ? std::string_view() : std::string_view(mount.group);
    if (group.substr(0, outer.size()) == outer && (group.size() == outer.size() || group[outer.size()] == '/')) {
        group.remove_prefix(outer.size());
    }
    const std::string top = root + mount.point;
    std::string directory = top + std::string(group);
    while (!directory.empty() && directory.back() == '/') directory.pop_back();
    std::vector<std::string> found;
    if (group.find("..") == std::string_view::npos) {
        for (; directory.size() > top.size(); directory.erase(directory.rfind('/'))) {
            if (exists(directory)) found.push_back(directory);
        }
    }
    if (exists(top)) found.push_back(top);
    return found;
}

std::uint64_t limit_in(const std::string& path) {
    const SystemText file(path.c_str());
    const auto limit = leading_number<std::uint64_t>(file.text()); // "max" is no number.
    return limit && *limit < largest_limit ? *limit : MemoryLimit::no_limit;
}

} // namespace

Cgroups Cgroups::of_process(const std::string& root) {
    Mounts mounts = find_mounts(root);
    if (!mounts.unified && !mounts.memory && exists(root + "/sys/fs/cgroup/cgroup.controllers")) {
        mounts.unified = Mount{"/sys/fs/cgroup", "/"}; // mountinfo is hidden or cut short.
    }
    Cgroups cgroups;
    std::string_view unified_group = "/";
    const SystemText file((root + "/proc/self/cgroup").c_str());
    std::string_view memory_group = "/";
    std::string_view cpu_group = "/";
    for (std::string_view text = file.text(); !text.empty();) {
        const std::string_view line = take_line(text); // "4:memory:/a/b", "0::/a/b"
        const std::size_t first = line.find(':');
        const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
        if (second == std::string_view::npos) continue;
        const std::string_view controllers = line.substr(first + 1, second - first - 1);
        const std::string_view group = line.substr(second + 1);
        if (controllers.empty()) unified_group = group;
        if (lists(controllers, "memory")) memory_group = group;
        if (lists(controllers, "cpu")) cpu_group = group;
    }
    if (mounts.unified) cgroups.unified_ = levels(root, *mounts.unified, unified_group);
    if (mounts.memory) cgroups.memory_v1_ = levels(root, *mounts.memory, memory_group);
    if (mounts.cpu) cgroups.cpu_v1_ = levels(root, *mounts.cpu, cpu_group);

    if (!cgroups.unified_.empty()) cgroups.pressure_file_ = cgroups.unified_.front() + "/memory.pressure";
    if (!exists(cgroups.pressure_file_)) {
        // The root group has no file of its own: the machine's is the same thing. In any other group it would tell of
        // strangers.
        const bool in_root = unified_group == "/" && memory_group == "/";
        cgroups.pressure_file_ = in_root ? root + "/proc/pressure/memory" : std::string();
        if (!exists(cgroups.pressure_file_)) cgroups.pressure_file_.clear();
    }
    return cgroups;
}

std::vector<MemoryLimit> Cgroups::memory_limits() const {
    std::vector<MemoryLimit> limits;
    const auto add = [&](const std::string& directory, bool version_2, const char* max, const char* high) {
        const std::uint64_t maximum = limit_in(directory + max);
        const std::uint64_t throttle = high != nullptr ? limit_in(directory + high) : MemoryLimit::no_limit;
        if (maximum == MemoryLimit::no_limit && throttle == MemoryLimit::no_limit) return;
        limits.push_back({directory, version_2, maximum, throttle});
    };
    for (const auto& directory : unified_) add(directory, true, "/memory.max", "/memory.high");
    for (const auto& directory : memory_v1_) add(directory, false, "/memory.limit_in_bytes", nullptr);
    return limits;
}

std::vector<CpuLimit> Cgroups::cpu_limits() const {
    std::vector<CpuLimit> limits;
    const auto add = [&](const std::string& directory, std::optional<std::int64_t> quota,
                         std::optional<std::int64_t> period) {
        if (!quota || !period || *quota <= 0 || *period <= 0) return; // v1 says "no quota" by -1.
        limits.push_back({directory, static_cast<double>(*quota) / static_cast<double>(*period)});
    };
    for (const auto& directory : unified_) {
        const SystemText file((directory + "/cpu.max").c_str()); // "150000 100000" or "max 100000"
        const std::size_t blank = file.text().find(' ');
        if (blank == std::string_view::npos) continue;
        add(directory, leading_number<std::int64_t>(file.text()),
            leading_number<std::int64_t>(file.text().substr(blank)));
    }
    for (const auto& directory : cpu_v1_) {
        const SystemText quota((directory + "/cpu.cfs_quota_us").c_str());
        const SystemText period((directory + "/cpu.cfs_period_us").c_str());
        add(directory, leading_number<std::int64_t>(quota.text()), leading_number<std::int64_t>(period.text()));
    }
    return limits;
}

std::optional<std::uint64_t> cgroup_memory_use(const MemoryLimit& limit) noexcept {
    // Paths are made on the stack: this is called by ticks, which must not throw.
    std::array<char, 4200> path; // NOLINT(cppcoreguidelines-pro-type-member-init): written before it is read
    const auto text_of = [&](std::string_view name) -> const char* {
        if (limit.directory.size() + name.size() >= path.size()) return "";
        char* const end = std::copy(limit.directory.begin(), limit.directory.end(), path.begin());
        *std::copy(name.begin(), name.end(), end) = '\0';
        return path.data();
    };
    const SystemText current(text_of(limit.version_2 ? "/memory.current" : "/memory.usage_in_bytes"));
    const auto use = leading_number<std::uint64_t>(current.text());
    if (!use) return std::nullopt;
    const SystemText stat(text_of("/memory.stat"));
    const auto figure = [&](std::string_view v2, std::string_view v1) {
        return named_number(stat.text(), limit.version_2 ? v2 : v1).value_or(0);
    };
    const std::uint64_t file = figure("file", "total_cache");
    const std::uint64_t held = figure("shmem", "total_shmem") + figure("file_dirty", "total_dirty") +
                               figure("file_writeback", "total_writeback");
    const std::uint64_t droppable = file > held ? file - held : 0;
    return *use > droppable ? *use - droppable : 0;
}

} // namespace spillway
