#include "align/exact_runs.hpp"

#include <algorithm>
#include <bit>

namespace spillway {

namespace {

/// Looking at more candidate positions than this, for each word of the query, costs more than aligning.
constexpr std::ptrdiff_t looks_per_word = 24;

bool covered(const std::vector<ExactRun>& runs, std::ptrdiff_t diagonal, std::ptrdiff_t query_position) {
    return std::any_of(runs.rbegin(), runs.rend(), [&](const ExactRun& run) {
        return run.diagonal == diagonal && query_position < run.query_begin + run.length;
    });
}

constexpr std::ptrdiff_t places_at_once = 16;

/// Whether the query's first five bases are at any of so many places from `target` on. Compilers make vector code of it;
/// what is read behind a target is in its border, since a query has eight bases at least.
bool may_begin(const std::uint8_t* query, const std::uint8_t* target) {
    std::uint8_t is[places_at_once];
    for (std::ptrdiff_t k = 0; k < places_at_once; ++k) {
        const auto same = [&](std::ptrdiff_t base) { return target[k + base] == query[base] ? 1 : 0; };
        is[k] = static_cast<std::uint8_t>(same(0) & same(1) & same(2) & same(3) & same(4));
    }
    return (eight_bases(is) | eight_bases(is + 8)) != 0;
}

} // namespace

void TargetIndex::build(const CodedBases& target) {
    const auto words = static_cast<std::ptrdiff_t>(target.size()) - word + 1;
    const std::size_t slots = std::bit_ceil(std::max<std::size_t>(2 * target.size(), 64));
    shift_ = 64U - static_cast<unsigned>(std::countr_zero(slots));
    first_.assign(slots, none);
    next_.resize(target.size());
    for (std::ptrdiff_t position = words - 1; position >= 0; --position) {
        std::int32_t& head = first_[slot(target.at(position))];
        next_[static_cast<std::size_t>(position)] = head;
        head = static_cast<std::int32_t>(position);
    }
}

std::optional<std::ptrdiff_t> find_whole(const CodedBases& query, const CodedBases& target) {
    const auto length = static_cast<std::ptrdiff_t>(query.size());
    if (length < TargetIndex::word || query.has_unknown()) return std::nullopt;
    const std::ptrdiff_t places = static_cast<std::ptrdiff_t>(target.size()) - length + 1;
    const std::uint8_t* const bases = query.at(0);
    for (std::ptrdiff_t first = 0; first < places; first += places_at_once) {
        if (!may_begin(bases, target.at(first))) continue;
        const std::ptrdiff_t behind = std::min(places, first + places_at_once);
        for (std::ptrdiff_t at = first; at < behind; ++at) {
            if (equal_after(bases, target.at(at)) == length) return at;
        }
    }
    return std::nullopt;
}

std::optional<std::ptrdiff_t> find_whole(const CodedBases& query, const CodedBases& target, const TargetIndex& index) {
    const auto length = static_cast<std::ptrdiff_t>(query.size());
    if (length < TargetIndex::word || query.has_unknown()) return std::nullopt;
    for (std::int32_t at = index.first(query.at(0)); at != TargetIndex::none; at = index.next(at)) {
        if (equal_after(query.at(0), target.at(at)) == length) return at;
    }
    return std::nullopt;
}

bool find_runs(const CodedBases& query, const CodedBases& target, const TargetIndex& index,
               std::vector<ExactRun>& runs) {
    runs.clear();
    const auto length = static_cast<std::ptrdiff_t>(query.size());
    std::ptrdiff_t looks = 0;
    for (std::ptrdiff_t at = 0; at + TargetIndex::word <= length; at += TargetIndex::word) {
        for (std::int32_t hit = index.first(query.at(at)); hit != TargetIndex::none; hit = index.next(hit)) {
            looks += 1 + static_cast<std::ptrdiff_t>(runs.size()) / 8;
            if (looks > looks_per_word * (2 + length / TargetIndex::word)) return false;
            if (covered(runs, hit - at, at)) continue;
            const std::ptrdiff_t after = equal_after(query.at(at), target.at(hit));
            if (after < TargetIndex::word) continue;
            const std::ptrdiff_t before = equal_before(query.at(at), target.at(hit));
            runs.push_back({.diagonal = hit - at, .query_begin = at - before, .length = before + after});
        }
    }
    return true;
}

} // namespace spillway
