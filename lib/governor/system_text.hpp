// Numbers out of the kernel's text files.
#pragma once

#include "base/file.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace spillway {

/// A file's text, as far as 16 KiB of it; made on the stack, so that a tick allocates nothing.
class SystemText {
public:
    explicit SystemText(const char* path) noexcept : text_(read_text(path, buffer_)) {}
    SystemText(const SystemText&) = delete;
    SystemText& operator=(const SystemText&) = delete;

    [[nodiscard]] std::string_view text() const noexcept { return text_; }

private:
    std::array<char, 16384> buffer_; // NOLINT(cppcoreguidelines-pro-type-member-init): read_text fills it
    std::string_view text_;
};

/// The number that `text` begins with, behind blanks; nothing if there is none, or it does not fit.
template <typename T>
[[nodiscard]] std::optional<T> leading_number(std::string_view text) noexcept {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return std::nullopt;
    T number{};
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + begin, end, number);
    if (error != std::errc() || (rest != end && *rest != ' ' && *rest != '\t' && *rest != '\n')) return std::nullopt;
    return number;
}

/// Takes the first line off `text`.
[[nodiscard]] inline std::string_view take_line(std::string_view& text) noexcept {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    return line;
}

/// The number behind `name` in lines of "name number": memory.stat ("file 12"), meminfo ("MemTotal:  12 kB").
[[nodiscard]] inline std::optional<std::uint64_t> named_number(std::string_view text, std::string_view name) noexcept {
    while (!text.empty()) {
        const std::string_view line = take_line(text);
        if (line.size() > name.size() && line.substr(0, name.size()) == name &&
            (line[name.size()] == ' ' || line[name.size()] == '\t')) {
            return leading_number<std::uint64_t>(line.substr(name.size()));
        }
    }
    return std::nullopt;
}

} // namespace spillway
