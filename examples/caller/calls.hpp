// Calls of windows, in the windows' order, become VCF records in order of position.
//
//     caller::CallQueue queue(wanted, [&](const caller::Call& call) { vcf.write(caller::record_of(call)); });
//     queue.push(window_begin, std::move(calls));      // for every window, in order
//     queue.finish();
#pragma once

#include "genotype.hpp"

#include "spillway/hts.hpp"

#include <functional>
#include <vector>

namespace caller {

/// Holds calls until no later window can have one before them, which a variant's bounded shift to the left allows;
/// sorts them, drops those seen twice, and those outside the wanted intervals.
class CallQueue {
public:
    using Write = std::function<void(const Call&)>;

    /// `wanted` as spillway::hts::merged gives them.
    CallQueue(std::vector<spillway::hts::Interval> wanted, Write write);

    /// Calls of the window that begins at `begin`; windows come in order.
    void push(std::int32_t contig, std::int64_t begin, std::vector<Call> calls);
    void finish();

private:
    void release(std::int32_t contig, std::int64_t before);

    std::vector<spillway::hts::Interval> wanted_;
    Write write_;
    std::vector<Call> held_;
};

/// The record with GT:DP:AD:GQ:PL.
[[nodiscard]] spillway::hts::VcfRecord record_of(const Call& call);

/// Header lines for the FILTER, INFO and FORMAT that record_of uses.
[[nodiscard]] std::vector<std::string> header_lines();

} // namespace caller
