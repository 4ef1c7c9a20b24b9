// The opened inputs of a run, checked against each other, and how spans of them become candidates.
//
//     const caller::Inputs inputs(options, warn);
//     spillway::hts::ReadStream stream(inputs.file(), inputs.filter());
//     for (const caller::Task& task : inputs.tasks()) {
//         auto candidates = caller::candidates_of(task, stream, inputs);
//         while (auto candidate = candidates.next()) use(*candidate);
//     }
#pragma once

#include "haplotypes.hpp"
#include "options.hpp"

#include "spillway/generator.hpp"
#include "spillway/hts.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace caller {

using Warn = std::function<void(const std::string&)>;

/// Both neighbours decode the reads near a border: shorter spans would be mostly border. Windows, not spans, are the
/// work.
inline constexpr std::int64_t shortest_span = 25 * 2 * window_reach;

/// What is decoded as one: a span of a contig, or, without an index, the whole file in its order.
struct Task {
    bool whole_file = false;
    spillway::hts::Interval span;
};

/// Immutable once made; safe from any thread, if `warn` is.
class Inputs {
public:
    /// Throws Error(usage) or Error(input): what is missing or does not fit. `warn` is called with whole sentences.
    Inputs(const CallerOptions& options, Warn warn);

    [[nodiscard]] const std::shared_ptr<const spillway::hts::AlignmentFile>& file() const { return file_; }
    [[nodiscard]] const spillway::hts::ReadFilter& filter() const { return filter_; }
    [[nodiscard]] const EvidenceRules& rules() const { return rules_; }
    [[nodiscard]] const std::string& sample() const { return sample_; }
    [[nodiscard]] spillway::hts::Profile profile() const { return profile_; }
    /// Where calls are wanted, by POS; merged.
    [[nodiscard]] const std::vector<spillway::hts::Interval>& wanted() const { return wanted_; }
    [[nodiscard]] bool wants(std::int32_t contig) const;
    /// In the order of the output.
    [[nodiscard]] std::vector<Task> tasks() const;
    /// Bytes of the reference that the run holds at once, at most.
    [[nodiscard]] std::uint64_t reference_bytes() const;

    /// The contig's bases, or none where its reads are to be left out. Throws Error(input) where the FASTA lacks it.
    [[nodiscard]] std::shared_ptr<const std::string> contig(std::int32_t index) const;

private:
    CallerOptions options_;
    Warn warn_;
    std::shared_ptr<const spillway::hts::AlignmentFile> file_;
    spillway::hts::Reference reference_;
    spillway::hts::ReadFilter filter_;
    EvidenceRules rules_;
    std::string sample_;
    spillway::hts::Profile profile_;
    std::vector<spillway::hts::Interval> wanted_;
    /// By contig: it was missing or differed, and that has been said.
    mutable std::vector<std::atomic<bool>> warned_;
};

/// The candidates whose window begins in the task's span, in order, those left out that cannot call in a wanted
/// interval. `stream` must outlive the generator and serve nobody else meanwhile.
[[nodiscard]] spillway::generator<Candidate> candidates_of(Task task, spillway::hts::ReadStream& stream,
                                                           const Inputs& inputs);

/// One of them made again, from what it gave as its evidence(). Needs an index; `stream` is sought.
[[nodiscard]] Candidate candidate_at(const spillway::hts::Interval& evidence, spillway::hts::ReadStream& stream,
                                     const Inputs& inputs);

} // namespace caller
