#include "governor/meminfo.hpp"

#include "base/checked.hpp"
#include "governor/system_text.hpp"

#include <unistd.h>

namespace spillway {

std::optional<std::uint64_t> total_memory(const std::string& root) {
    const SystemText file((root + "/proc/meminfo").c_str());
    const auto kibibytes = named_number(file.text(), "MemTotal:");
    if (!kibibytes || *kibibytes == 0) return std::nullopt;
    return checked_multiply<std::uint64_t>(*kibibytes, 1024);
}

std::optional<std::uint64_t> resident_memory(const char* statm_path) noexcept {
    const SystemText file(statm_path); // "size resident shared text lib data dirty", in pages
    const std::size_t blank = file.text().find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    const auto pages = leading_number<std::uint64_t>(file.text().substr(blank));
    const long page_bytes = ::sysconf(_SC_PAGESIZE);
    if (!pages || page_bytes <= 0) return std::nullopt;
    return checked_multiply(*pages, static_cast<std::uint64_t>(page_bytes));
}

} // namespace spillway
