// Lines of a report, printed as printf does.
//
//     append_line(text, "%zu candidates\n", count);
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <string>

namespace spillway {

/// Up to 255 characters; the rest is cut off.
template <class... Values>
void append_line(std::string& text, const char* format, Values... values) {
    std::array<char, 256> buffer{};
    const int length = std::snprintf(buffer.data(), buffer.size(), format, values...);
    if (length > 0) text.append(buffer.data(), std::min(static_cast<std::size_t>(length), buffer.size() - 1));
}

} // namespace spillway
