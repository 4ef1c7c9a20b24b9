#include "governor/pressure.hpp"

#include "governor/system_text.hpp"

#include <limits>

namespace spillway {

std::optional<std::chrono::microseconds> some_pressure(const char* path) noexcept {
    const SystemText file(path);
    for (std::string_view text = file.text(); !text.empty();) {
        const std::string_view line = take_line(text); // "some avg10=0.00 avg60=0.00 avg300=0.00 total=0"
        if (line.substr(0, 5) != "some ") continue;
        const std::size_t total = line.find(" total=");
        if (total == std::string_view::npos) return std::nullopt;
        const auto count = leading_number<std::int64_t>(line.substr(total + 7));
        if (!count || *count < 0) return std::nullopt;
        return std::chrono::microseconds(*count);
    }
    return std::nullopt;
}

} // namespace spillway
