#include "hts/vcf_record.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace spillway::hts {
namespace {

template <class Integer>
void append_integer(std::string& text, Integer value) {
    std::array<char, 24> digits{};
    const auto [end, problem] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
    text.append(digits.data(), end);
}

template <class Range>
void append_joined(std::string& text, const Range& parts, char divider) {
    if (parts.empty()) {
        text += '.';
        return;
    }
    bool first = true;
    for (const std::string& part : parts) {
        if (!first) text += divider;
        first = false;
        text += part;
    }
}

} // namespace

std::string number(double value, int decimals) {
    if (!std::isfinite(value)) return ".";
    constexpr std::array<std::int64_t, 7> powers{1, 10, 100, 1'000, 10'000, 100'000, 1'000'000};
    const std::int64_t scale = powers[static_cast<std::size_t>(std::clamp(decimals, 0, 6))];
    // Beyond this the scaled value has no decimals left to round and might not fit 64 bits.
    constexpr double largest = 9e15;
    const double scaled = std::round(value * static_cast<double>(scale));
    std::string text;
    if (std::fabs(scaled) > largest) {
        std::array<char, 400> digits{};
        const auto [end, problem] =
            std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed, 0);
        text.append(digits.data(), end);
        return text;
    }
    const auto units = static_cast<std::int64_t>(scaled);
    if (units < 0) text += '-';
    const std::int64_t magnitude = units < 0 ? -units : units;
    append_integer(text, magnitude / scale);
    std::int64_t rest = magnitude % scale;
    if (rest == 0) return text;
    text += '.';
    for (std::int64_t digit = scale / 10; digit > 0 && rest > 0; digit /= 10) {
        text += static_cast<char>('0' + rest / digit);
        rest %= digit;
    }
    return text;
}

std::string joined(std::span<const std::int32_t> values) {
    std::string text;
    for (const std::int32_t value : values) {
        if (!text.empty()) text += ',';
        append_integer(text, value);
    }
    return text;
}

void append_line(std::string& line, const VcfRecord& record, std::string_view contig) {
    line += contig;
    line += '\t';
    append_integer(line, record.begin + 1);
    line += '\t';
    line += record.id.empty() ? "." : std::string_view(record.id);
    line += '\t';
    line += record.reference;
    line += '\t';
    append_joined(line, record.alternates, ',');
    line += '\t';
    line += record.quality ? number(*record.quality) : ".";
    line += '\t';
    append_joined(line, record.filters, ';');
    line += '\t';
    bool first = true;
    for (const auto& [key, value] : record.info) {
        if (!first) line += ';';
        first = false;
        line += key;
        if (!value.empty()) line += '=', line += value;
    }
    if (record.info.empty()) line += '.';
    if (!record.format.empty()) {
        for (std::size_t i = 0; i < record.format.size(); ++i)
            line += i == 0 ? '\t' : ':', line += record.format[i].first;
        for (std::size_t i = 0; i < record.format.size(); ++i)
            line += i == 0 ? '\t' : ':', line += record.format[i].second;
    } else {
        line += "\t.\t.";
    }
    line += '\n';
}

} // namespace spillway::hts
