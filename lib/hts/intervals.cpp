#include "hts/alignment_state.hpp"
#include "spillway/hts.hpp"

#include <htslib/bgzf.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <tuple>
#include <unordered_map>

namespace spillway::hts {
namespace {

constexpr std::int64_t to_the_end = std::int64_t{1} << 60;

class ContigNames {
public:
    explicit ContigNames(std::span<const Contig> contigs) : contigs_(contigs) {
        for (std::size_t i = 0; i < contigs.size(); ++i)
            indexes_.emplace(contigs[i].name, static_cast<std::int32_t>(i));
    }
    [[nodiscard]] std::optional<std::int32_t> find(std::string_view name) const {
        const auto found = indexes_.find(name);
        if (found == indexes_.end()) return std::nullopt;
        return found->second;
    }
    [[nodiscard]] std::int64_t length(std::int32_t contig) const {
        return contigs_[static_cast<std::size_t>(contig)].length;
    }

private:
    std::span<const Contig> contigs_;
    std::unordered_map<std::string_view, std::int32_t> indexes_;
};

/// Digits, with commas allowed between them; nothing else, and not beyond to_the_end.
std::optional<std::int64_t> position(std::string_view text) {
    std::int64_t value = 0;
    bool digits = false;
    for (const char c : text) {
        if (c == ',' && digits) continue;
        if (c < '0' || c > '9') return std::nullopt;
        digits = true;
        if (value >= to_the_end / 10) return std::nullopt;
        value = value * 10 + (c - '0');
    }
    return digits && text.back() != ',' ? std::optional(value) : std::nullopt;
}

/// "", "5", "5-", "-9", "5-9": what follows a contig's colon, as a 0-based half-open range.
std::optional<std::pair<std::int64_t, std::int64_t>> range(std::string_view text) {
    const std::size_t dash = text.find('-');
    const std::string_view from = text.substr(0, dash);
    const std::string_view to = dash == std::string_view::npos ? std::string_view{} : text.substr(dash + 1);
    std::int64_t begin = 1, end = to_the_end;
    if (!from.empty()) {
        const auto value = position(from);
        if (!value || *value < 1) return std::nullopt;
        begin = *value;
    }
    if (!to.empty()) {
        const auto value = position(to);
        if (!value) return std::nullopt;
        end = *value;
    }
    if ((from.empty() && to.empty()) || end < begin) return std::nullopt;
    return std::pair(begin - 1, end);
}

/// One region; empty where `text` is none.
std::optional<Interval> region(std::string_view text, const ContigNames& names) {
    std::string_view name = text, rest;
    if (!text.empty() && text.front() == '{') {
        const std::size_t close = text.find('}');
        if (close == std::string_view::npos) return std::nullopt;
        name = text.substr(1, close - 1);
        rest = text.substr(close + 1);
        if (!rest.empty() && rest.front() != ':') return std::nullopt;
    } else if (!names.find(text)) {
        // A name that is a contig wins over a name with a range.
        const std::size_t colon = text.rfind(':');
        if (colon == std::string_view::npos) return std::nullopt;
        name = text.substr(0, colon);
        rest = text.substr(colon);
    }
    const auto contig = names.find(name);
    if (!contig) return std::nullopt;
    if (rest.empty()) return Interval{*contig, 0, names.length(*contig)};
    const auto found = range(rest.substr(1));
    if (!found) return std::nullopt;
    const std::int64_t length = names.length(*contig);
    return Interval{*contig, std::min(found->first, length), std::min(found->second, length)};
}

std::string_view next_field(std::string_view& line) {
    const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
    const std::string_view field = line.substr(0, end);
    line.remove_prefix(end);
    return field;
}

/// Whether the line's first word is `word`: "track" is, "track1" is a contig.
bool begins_with_word(std::string_view line, std::string_view word) {
    return next_field(line) == word;
}

} // namespace

std::vector<Interval> whole(std::span<const Contig> contigs) {
    std::vector<Interval> all;
    for (std::size_t i = 0; i < contigs.size(); ++i)
        if (contigs[i].length > 0) all.push_back({static_cast<std::int32_t>(i), 0, contigs[i].length});
    return all;
}

std::vector<Interval> merged(std::vector<Interval> intervals) {
    std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) {
        return std::tie(a.contig, a.begin, a.end) < std::tie(b.contig, b.begin, b.end);
    });
    std::vector<Interval> result;
    for (const Interval& interval : intervals) {
        if (interval.begin >= interval.end) continue;
        if (!result.empty() && result.back().contig == interval.contig && interval.begin <= result.back().end)
            result.back().end = std::max(result.back().end, interval.end);
        else
            result.push_back(interval);
    }
    return result;
}

std::vector<Interval> parse_regions(std::string_view text, std::span<const Contig> contigs) {
    const ContigNames names(contigs);
    std::vector<Interval> result;
    // A comma may divide regions or thousands, or be part of a name: the longest piece that is a region is taken. No
    // piece is longer than the longest name and two positions, so that long lists take linear time.
    std::size_t longest = 64;
    for (const Contig& contig : contigs) longest = std::max(longest, contig.name.size() + 64);
    for (std::size_t at = 0; at <= text.size();) {
        std::optional<Interval> found;
        std::size_t end = text.size();
        if (end - at > longest) end = std::min(text.rfind(',', at + longest), end);
        if (end < at) end = at;
        for (;;) {
            found = region(text.substr(at, end - at), names);
            if (found) break;
            const std::size_t comma = end == 0 ? std::string_view::npos : text.rfind(',', end - 1);
            if (comma == std::string_view::npos || comma < at) break;
            end = comma;
        }
        if (!found)
            throw Error(
                ErrorCode::usage, "reading regions", std::string(text.substr(at)),
                "no such region: give contig, contig:from or contig:from-to (1-based) with a contig of the header");
        result.push_back(*found);
        at = end + 1;
    }
    return merged(std::move(result));
}

std::string read_text(const std::string& path, const std::string& doing) {
    errno = 0;
    const std::unique_ptr<BGZF, Destroy<bgzf_close>> file(bgzf_open(path.c_str(), "r"));
    if (!file) throw system_error(errno, doing, path, ErrorCode::input);
    std::string text;
    constexpr std::size_t step = std::size_t{1} << 16;
    for (;;) {
        const std::size_t before = text.size();
        text.resize(before + step);
        const ssize_t got = bgzf_read(file.get(), text.data() + before, step);
        if (got < 0) throw Error(ErrorCode::input, doing, path, "truncated or malformed");
        text.resize(before + static_cast<std::size_t>(got));
        if (got == 0) return text;
    }
}

std::vector<Interval> read_bed(const std::string& path, std::span<const Contig> contigs) {
    const std::string text = read_text(path, "reading regions");
    const ContigNames names(contigs);
    std::vector<Interval> result;
    std::size_t line_number = 0;
    const auto fail = [&](const std::string& detail) -> Error {
        return {ErrorCode::input, "reading regions", path + ":" + std::to_string(line_number), detail};
    };
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        std::string_view line = std::string_view(text).substr(at, end - at);
        at = end + 1;
        ++line_number;
        while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t'))
            line.remove_suffix(1);
        if (line.empty() || line.front() == '#' || begins_with_word(line, "track") || begins_with_word(line, "browser"))
            continue;
        const std::string_view name = next_field(line), from = next_field(line), to = next_field(line);
        std::int64_t begin = 0, stop = 0;
        const auto parse = [](std::string_view field, std::int64_t& value) {
            const auto [rest, problem] = std::from_chars(field.data(), field.data() + field.size(), value);
            return problem == std::errc{} && rest == field.data() + field.size();
        };
        if (!parse(from, begin) || !parse(to, stop)) {
            // A line of column names may stand first.
            if (result.empty() && line_number == 1 && !from.empty() && from.find_first_of("0123456789") == from.npos)
                continue;
            throw fail("expected contig, begin and end, divided by tabs");
        }
        if (begin < 0 || stop < begin) throw fail("begin and end must be 0 <= begin <= end");
        const auto contig = names.find(name);
        if (!contig) throw fail("contig " + std::string(name) + " is not in the alignment header");
        const std::int64_t length = names.length(*contig);
        result.push_back({*contig, std::min(begin, length), std::min(stop, length)});
    }
    return merged(std::move(result));
}

} // namespace spillway::hts
