#include "likelihoods.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace caller {

namespace {

constexpr std::int32_t unit = static_cast<std::int32_t>(phred_unit);

/// Qualities above it are not believed: errors before sequencing do not show in them.
constexpr std::uint8_t max_base_quality = 40;

/// A third of the errors give one certain base: 10 log10 3.
constexpr std::int32_t one_of_three = 305;

/// A base that is not known on either side.
constexpr std::int32_t unknown_base = 6 * unit;

constexpr std::int64_t max_period = 6;

/// Phred of a homopolymer error by length, from 0; see gap_cost.
constexpr std::array<std::int32_t, 17> homopolymer_costs = {2904, 2904, 2904, 2904, 2904, 2796, 2533, 2317, 2076,
                                                            1920, 1827, 1753, 1692, 1639, 1593, 1553, 1516};
constexpr std::int32_t extension = 8 * unit;

std::int32_t repeat_cost(std::int64_t period, std::int64_t length) {
    const std::int64_t units = length / period;
    if (period == 1) return homopolymer_costs[static_cast<std::size_t>(std::clamp<std::int64_t>(units, 0, 16))];
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(45 - 3 * (units - 2), 24, 45)) * unit;
}

/// Length of the stretch of period `period` around `at`: bases that equal those a period away.
std::int64_t repeat_length(std::string_view bases, std::int64_t at, std::int64_t period) {
    const auto size = static_cast<std::int64_t>(bases.size());
    const auto base = [&](std::int64_t i) { return bases[static_cast<std::size_t>(i)]; };
    std::int64_t first = std::min(at, size - period), last = first + period;
    if (first < 0) return 0;
    while (first > 0 && base(first - 1) == base(first - 1 + period)) --first;
    while (last < size && base(last) == base(last - period)) ++last;
    return last - first;
}

/// The least that gap_cost can be anywhere on a haplotype.
std::int32_t cheapest_gap(std::string_view bases) {
    std::int32_t cheapest = homopolymer_costs[0];
    for (std::size_t period = 1; period <= max_period; ++period) {
        std::size_t run = 0;
        std::size_t longest = 0;
        for (std::size_t i = period; i < bases.size(); ++i) {
            run = bases[i] == bases[i - period] ? run + 1 : 0;
            longest = std::max(longest, run);
        }
        cheapest = std::min(
            cheapest, repeat_cost(static_cast<std::int64_t>(period), static_cast<std::int64_t>(longest + period)));
    }
    return cheapest;
}

std::int32_t base_cost(char read, std::uint8_t quality, char haplotype) {
    if (read == 'N' || haplotype == 'N') return unknown_base;
    const std::uint8_t believed = std::min(quality, max_base_quality);
    if (read == haplotype) return detail::correct[believed];
    return believed * unit + one_of_three;
}

/// What it costs a query that was cut at the slice's edge not to reach it.
Phred edge_cost(const Query& query, std::string_view haplotype, std::int64_t begin, std::int64_t end) {
    Phred cost = 0;
    const std::int64_t rest = static_cast<std::int64_t>(haplotype.size()) - end;
    if (query.cut_left && begin > 0) cost += gap_cost(haplotype, 0, begin, {});
    if (query.cut_right && rest > 0) cost += gap_cost(haplotype, end, rest, {});
    return cost;
}

std::int32_t gapless_cost(const Candidate& candidate, const Query& query, std::string_view haplotype,
                          std::int64_t start) {
    const std::int64_t end = start + query.size;
    if (start < 0 || end > static_cast<std::int64_t>(haplotype.size()))
        return std::numeric_limits<std::int32_t>::max() / 4;
    const auto bases = candidate.bases(query);
    const auto qualities = candidate.qualities(query);
    const char* target = haplotype.data() + start;
    auto cost = static_cast<std::int32_t>(edge_cost(query, haplotype, start, end));
    for (std::size_t i = 0; i < bases.size(); ++i) cost += base_cost(bases[i], qualities[i], target[i]);
    return cost;
}

std::int32_t path_cost(const Candidate& candidate, const Query& query, std::string_view haplotype,
                       const spillway::Alignment& alignment) {
    const auto bases = candidate.bases(query);
    const auto qualities = candidate.qualities(query);
    auto read = static_cast<std::size_t>(alignment.query_begin);
    auto at = static_cast<std::size_t>(alignment.target_begin);
    Phred cost = edge_cost(query, haplotype, alignment.target_begin, alignment.target_end);
    for (const auto element : alignment.cigar) {
        const auto operation = cigar::operation(element);
        const auto length = static_cast<std::size_t>(cigar::length(element));
        if (operation == spillway::hts::cigar_match) {
            for (std::size_t i = 0; i < length; ++i) {
                cost += base_cost(bases[read + i], qualities[read + i], haplotype[at + i]);
            }
        } else if (operation == spillway::hts::cigar_insertion) {
            cost += gap_cost(haplotype, static_cast<std::int64_t>(at), 0, bases.substr(read, length));
        } else if (operation == spillway::hts::cigar_deletion) {
            cost += gap_cost(haplotype, static_cast<std::int64_t>(at), static_cast<std::int64_t>(length), {});
        }
        if (cigar::takes_read(operation)) read += length;
        if (cigar::takes_reference(operation)) at += length;
    }
    return static_cast<std::int32_t>(std::min<Phred>(cost, std::numeric_limits<std::int32_t>::max() / 4));
}

} // namespace

Phred gap_cost(std::string_view haplotype, std::int64_t at, std::int64_t size, std::string_view inserted) {
    const std::int64_t length = inserted.empty() ? size : static_cast<std::int64_t>(inserted.size());
    std::int32_t cost = homopolymer_costs[0] + static_cast<std::int32_t>(length - 1) * extension;
    for (std::int64_t period = 1; period <= std::min(max_period, length); ++period) {
        if (length % period != 0) continue;
        const std::int64_t place = std::min(at, static_cast<std::int64_t>(haplotype.size()) - period);
        if (place < 0) continue;
        const auto more_of_the_same = [&](std::int64_t begin) {
            if (begin < 0) return false;
            for (std::size_t i = 0; i < inserted.size(); ++i) {
                const auto j = static_cast<std::size_t>(begin) + i % static_cast<std::size_t>(period);
                if (inserted[i] != haplotype[j]) return false;
            }
            return true;
        };
        for (const std::int64_t begin : {place, place - period}) {
            if (!inserted.empty() && !more_of_the_same(begin)) continue;
            if (inserted.empty() && begin != place) continue;
            cost = std::min(cost, repeat_cost(period, repeat_length(haplotype, begin, period)) +
                                      static_cast<std::int32_t>(length / period - 1) * extension);
        }
    }
    return cost;
}

void place(Candidate& candidate) {
    candidate.alignments.clear();
    candidate.costs.assign(candidate.queries.size() * candidate.haplotypes.size(), 0);
    for (std::size_t h = 0; h < candidate.haplotypes.size(); ++h) {
        const Haplotype& haplotype = candidate.haplotypes[h];
        const std::int32_t enough = cheapest_gap(haplotype.bases);
        AlignmentTask task{static_cast<std::uint32_t>(h), {}, {}};
        for (std::size_t q = 0; q < candidate.queries.size(); ++q) {
            const Query& query = candidate.queries[q];
            const std::int64_t by_begin = place_on(candidate, haplotype, query.begin, true);
            const std::int64_t by_end = place_on(candidate, haplotype, query.end, false) - query.size;
            std::int32_t cost = gapless_cost(candidate, query, haplotype.bases, by_begin);
            if (by_end != by_begin && cost > 0)
                cost = std::min(cost, gapless_cost(candidate, query, haplotype.bases, by_end));
            candidate.cost(q, h) = cost;
            if (cost > enough) task.queries.push_back(static_cast<std::uint32_t>(q));
        }
        task.found.resize(task.queries.size());
        if (!task.queries.empty()) candidate.alignments.push_back(std::move(task));
    }
}

void align_on_cpu(std::span<Candidate* const> candidates) {
    std::vector<spillway::SequencePair> pairs;
    for (Candidate* candidate : candidates) {
        for_each_task(*candidate, [&](std::string_view haplotype, const auto& queries, const auto&) {
            for (const std::string_view query : queries) pairs.push_back({query, haplotype});
        });
    }
    std::vector<spillway::Alignment> found(pairs.size());
    spillway::align(pairs, alignment_scores, spillway::Span::query, found);
    auto next = found.begin();
    for (Candidate* candidate : candidates) {
        for (AlignmentTask& task : candidate->alignments) {
            for (spillway::Alignment& alignment : task.found) alignment = std::move(*next++);
        }
    }
}

void settle(Candidate& candidate) {
    for (const AlignmentTask& task : candidate.alignments) {
        const std::string_view target = candidate.haplotypes[task.haplotype].bases;
        for (std::size_t i = 0; i < task.queries.size(); ++i) {
            std::int32_t& cost = candidate.cost(task.queries[i], task.haplotype);
            cost = std::min(cost, path_cost(candidate, candidate.queries[task.queries[i]], target, task.found[i]));
        }
    }
    candidate.alignments.clear();
}

} // namespace caller
