// From reads in file order to windows: short stretches of a contig where reads speak for a variant, with their reads.
//
//     caller::WindowMaker windows({.contig = 0, .begin = 0, .end = contig->size()}, contig);
//     for (const Read& read : block->reads()) windows.push(read, block);
//     while (auto window = windows.pop()) use(*window);          // as soon as no later read can change it
//     windows.finish();                                          // then pop() gives the rest
//
// Windows are a pure function of reads and reference, in absolute coordinates; where reading began or ended does not
// matter farther away than window_reach:
// - Evidence at a position depends on the reads that cover it, no others. It extends over at most max_evidence.
// - Evidence at most join_gap apart joins to a run. A run longer than long_run is cut at each multiple m of long_run
//   in it: at the evidence whose begin is nearest m, less than long_run / 2 away, rather where no earlier evidence
//   reaches; there is no cut at m if none begins there. Other runs are one window.
// - So a cut at m depends on the evidence within long_run / 2 of m, and on whether the run is long. Let reading begin
//   at A < m - long_run - join_gap - max_evidence. If the run begins before A, what is seen of it begins before
//   A + join_gap + max_evidence, more than long_run before m, which is in the run: it is long, and is seen to be. If it
//   begins after A, it is seen from its begin. The same holds for the end of reading.
// - Neighbouring evidence of a run begins at most join_gap + max_evidence apart, so at most 3 multiples in a row have
//   none within long_run / 2 (join_gap + max_evidence < 3 long_run): from cut to cut it is at most 5 long_run, and a
//   window ends at most max_evidence after its last evidence begins. That is longest_window. What decides the cuts at
//   both its ends lies at most window_reach from its first evidence.
#pragma once

#include "variants.hpp"

#include "spillway/hts.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace caller {

/// Bases of reference on both sides of a window's evidence that its haplotypes include; less than join_gap, so that no
/// other evidence lies in them unless a long run was cut.
inline constexpr std::int64_t flank = 30;
inline constexpr std::int64_t join_gap = 32;
inline constexpr std::int64_t long_run = 256;
inline constexpr std::int64_t max_evidence = max_indel + max_shift;
inline constexpr std::int64_t longest_window = 5 * long_run + max_evidence;
inline constexpr std::int64_t window_reach = longest_window + 3 * long_run + 2 * (join_gap + max_evidence) + flank;
/// A window's calls lie from so far before its first evidence (assembly sees the flank; a shift; VCF's base before an
/// indel) to the flank after its last.
inline constexpr std::int64_t calls_before = flank + max_shift + 1;
inline constexpr std::int64_t calls_after = flank;
static_assert(join_gap + max_evidence < 3 * long_run && flank < join_gap);

/// What counts as evidence of a variant.
struct EvidenceRules {
    [[nodiscard]] bool enough(std::int64_t templates, std::int64_t depth, std::int64_t share) const {
        return templates >= min_templates && (templates * 1000 >= share * depth ||
                                              (templates >= many_templates && templates * 1000 >= many_share * depth));
    }

    std::uint8_t min_mapping_quality = 5; ///< Reads below it are no evidence; they still count when genotyping.
    std::uint8_t min_base_quality = 12;   ///< Of a mismatch, or of the bases beside an indel.
    std::int64_t min_templates = 2;       ///< Distinct read names that show the same thing.
    /// And at least so many of 1000 reads that begin before and end after the first position.
    std::int64_t min_share = 40;
    std::int64_t min_clip = 8; ///< Soft clips shorter than it, or of worse mean quality than a base may have, are none.
    /// Or this many templates and this share of 1000, so that a low fraction in deep data is seen, and errors are not.
    std::int64_t many_templates = 25;
    std::int64_t many_share = 5;
    /// And at least so many of 1000 reads that span all places where it could be, which in a long repeat are few.
    std::int64_t min_share_spanning = 80;
};

/// Calls `visit(position, at_end)` for a read's soft-clipped ends that count: where the aligned part begins or ends.
template <class Visit>
void for_each_clip(const spillway::hts::Read& read, const EvidenceRules& rules, Visit&& visit) {
    const auto counts = [&](std::uint32_t element, bool at_end) {
        const std::int64_t length = cigar::length(element);
        if (cigar::operation(element) != spillway::hts::cigar_soft_clip || length < rules.min_clip) return false;
        const auto size = static_cast<std::size_t>(length);
        std::int64_t sum = 0;
        for (const auto quality : at_end ? read.qualities.last(size) : read.qualities.first(size)) sum += quality;
        return sum >= rules.min_base_quality * length;
    };
    if (counts(read.cigar.front(), false)) visit(read.begin, false);
    if (counts(read.cigar.back(), true)) visit(read.end, true);
}

/// A stretch of a contig to be called as one, and all reads that touch it. A plain value; its reads live in its blocks.
struct Window {
    std::int32_t contig = -1;
    std::int64_t begin = 0; ///< First evidence position; the window belongs to whoever owns this position.
    std::int64_t end = 0;   ///< One past the last evidence position.
    std::shared_ptr<const std::string> reference;                        ///< The whole contig.
    std::vector<const spillway::hts::Read*> reads;                       ///< By begin, then name hash, then flags.
    std::vector<std::shared_ptr<const spillway::hts::ReadBlock>> blocks; ///< What owns the reads, each once.

    /// The stretch that haplotypes spell.
    [[nodiscard]] std::int64_t slice_begin() const { return std::max<std::int64_t>(0, begin - flank); }
    [[nodiscard]] std::int64_t slice_end() const {
        return std::min<std::int64_t>(static_cast<std::int64_t>(reference->size()), end + flank);
    }
};

/// Holds the reads of the last few hundred bases only: memory is depth times a few kilobases, whatever the span.
class WindowMaker {
public:
    /// Gives windows whose first evidence is in `wanted`; the reads must cover `wanted` widened by window_reach.
    WindowMaker(const spillway::hts::Interval& wanted, std::shared_ptr<const std::string> reference,
                EvidenceRules rules = {});

    /// Reads of the contig in order of begin; `block` holds the read.
    void push(const spillway::hts::Read& read, const std::shared_ptr<const spillway::hts::ReadBlock>& block);
    /// No more reads come.
    void finish();
    /// The next window, in order of begin, if one is complete.
    [[nodiscard]] std::optional<Window> pop();

private:
    /// One thing seen in one read, or a change of depth.
    struct Mark {
        std::int64_t position;
        std::int64_t deleted; ///< -1 and -2: an aligned part begins, or ends, with a soft clip.
        std::uint64_t name_hash;
        const char* inserted;
        std::int32_t inserted_size;
        std::int32_t depth; ///< +1 or -1: a read's aligned stretch begins or ends; 0: a difference.
    };
    struct Evidence {
        std::int64_t begin;
        std::int64_t end;
    };
    struct Held {
        const spillway::hts::Read* read;
        std::shared_ptr<const spillway::hts::ReadBlock> block;
    };

    void mark(const spillway::hts::Read& read);
    void settle(std::int64_t final);
    void weigh(std::vector<Mark>::const_iterator first, std::vector<Mark>::const_iterator last);
    void add(const Evidence& evidence);
    void cut_run(bool complete);
    void close_run();
    void emit(std::size_t count);
    void drop_reads();

    spillway::hts::Interval wanted_;
    std::shared_ptr<const std::string> reference_;
    EvidenceRules rules_;
    std::int64_t frontier_ = 0; ///< No later read begins before it.
    std::int64_t settled_ = 0;  ///< Evidence before it is complete.
    std::int64_t depth_ = 0;    ///< At settled_.
    std::vector<Mark> marks_;   ///< From settled_ on.
    std::deque<Held> held_;     ///< Reads that some window from here on may need.
    std::vector<Evidence> run_; ///< The current run's evidence from its last cut on, by begin.
    std::int64_t run_begin_ = 0;
    std::int64_t run_end_ = 0;
    std::int64_t next_multiple_ = 0; ///< Of long_run: where the run may be cut next.
    std::deque<Evidence> closed_;    ///< Windows without their reads yet.
};

/// The window that a WindowMaker gave for this evidence, made again. Needs an index; `stream` is sought.
[[nodiscard]] Window window_at(const spillway::hts::Interval& evidence, std::shared_ptr<const std::string> reference,
                               spillway::hts::ReadStream& stream);

} // namespace caller
