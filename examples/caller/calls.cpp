#include "calls.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace caller {

using spillway::hts::Interval;

namespace {

/// REF and ALT without the bases that both end in: equal for equal variants, whatever else their records hold.
std::pair<std::string_view, std::string_view> trimmed(std::string_view reference, std::string_view alternate) {
    while (!reference.empty() && !alternate.empty() && reference.back() == alternate.back()) {
        reference.remove_suffix(1);
        alternate.remove_suffix(1);
    }
    return {reference, alternate};
}

bool share_a_variant(const Call& a, const Call& b) {
    if (a.contig != b.contig || a.position != b.position) return false;
    for (const auto& x : a.alternates) {
        for (const auto& y : b.alternates) {
            if (trimmed(a.reference, x) == trimmed(b.reference, y)) return true;
        }
    }
    return false;
}

} // namespace

CallQueue::CallQueue(std::vector<Interval> wanted, Write write)
    : wanted_(std::move(wanted)), write_(std::move(write)) {}

void CallQueue::push(std::int32_t contig, std::int64_t begin, std::vector<Call> calls) {
    release(contig, begin - calls_before);
    for (Call& call : calls) held_.push_back(std::move(call));
}

void CallQueue::finish() {
    release(std::numeric_limits<std::int32_t>::max(), 0);
}

void CallQueue::release(std::int32_t contig, std::int64_t before) {
    const auto ready = std::partition(held_.begin(), held_.end(), [&](const Call& call) {
        return std::tuple(call.contig, call.position) >= std::tuple(contig, before);
    });
    std::vector<Call> calls(std::make_move_iterator(ready), std::make_move_iterator(held_.end()));
    held_.erase(ready, held_.end());
    // Two windows that were cut from one run, or that see into each other's flank, may find one variant: the surer call
    // counts.
    std::ranges::sort(calls, {}, [](const Call& call) {
        return std::tuple(call.contig, call.position, -call.quality, call.reference, call.alternates);
    });
    for (auto call_at = calls.cbegin(); call_at != calls.cend(); ++call_at) {
        const Call& call = *call_at;
        if (std::any_of(calls.cbegin(), call_at, [&](const Call& surer) { return share_a_variant(surer, call); }))
            continue;
        const auto after = std::ranges::upper_bound(wanted_, std::pair(call.contig, call.position), {},
                                                    [](const Interval& i) { return std::pair(i.contig, i.begin); });
        if (after == wanted_.begin()) continue;
        const Interval& interval = *(after - 1);
        if (interval.contig == call.contig && call.position < interval.end) write_(call);
    }
}

spillway::hts::VcfRecord record_of(const Call& call) {
    spillway::hts::VcfRecord record;
    record.contig = call.contig;
    record.begin = call.position;
    record.reference = call.reference;
    record.alternates = call.alternates;
    record.quality = static_cast<double>(call.quality) / static_cast<double>(phred_unit);
    record.filters = {call.low_fraction ? "LowFraction" : "PASS"};
    record.info = {{"DP", std::to_string(call.depth)}};
    record.format = {{"GT", std::to_string(call.genotype[0]) + "/" + std::to_string(call.genotype[1])},
                     {"DP", std::to_string(call.depth)},
                     {"AD", spillway::hts::joined(call.allele_depth)},
                     {"GQ", std::to_string(call.genotype_quality)},
                     {"PL", spillway::hts::joined(call.likelihoods)}};
    return record;
}

std::vector<std::string> header_lines() {
    return {
        R"(##FILTER=<ID=PASS,Description="All filters passed">)",
        R"(##FILTER=<ID=LowFraction,Description="In many fragments, but too few for one of two chromosomes">)",
        R"(##INFO=<ID=DP,Number=1,Type=Integer,Description="Fragments over the position; overlapping mates count once">)",
        R"(##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">)",
        R"(##FORMAT=<ID=DP,Number=1,Type=Integer,Description="Fragments over the position; overlapping mates count once">)",
        R"(##FORMAT=<ID=AD,Number=R,Type=Integer,Description="Fragments that fit one allele better than the others">)",
        R"(##FORMAT=<ID=GQ,Number=1,Type=Integer,Description="Phred-scaled probability that GT is wrong">)",
        R"(##FORMAT=<ID=PL,Number=G,Type=Integer,Description="Phred-scaled likelihoods of the genotypes">)",
    };
}

} // namespace caller
