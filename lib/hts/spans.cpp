#include "hts/alignment_state.hpp"
#include "spillway/hts.hpp"

#include <algorithm>
#include <limits>

namespace spillway::hts {
namespace {

/// The linear index of a BAM has one entry for each window of this many bases (SAM specification, section 5.1.3).
constexpr std::int64_t window = 16'384;
/// A cut through a CRAM has its slice decoded twice: with this many slices to a span that is about 4%.
constexpr std::size_t slices_in_span = 24;

/// What the index of one file knows about where cuts are cheap, for one contig.
class Cuts {
public:
    virtual ~Cuts() = default;
    /// Compressed bytes of the reads in [begin, end), about.
    virtual std::int64_t bytes(std::int64_t begin, std::int64_t end) const = 0;
    /// The nearest cheap cut at or after `wished`.
    virtual std::int64_t cut(std::int64_t wished) const = 0;
    /// Where a span that begins at `begin` should end at the earliest.
    virtual std::int64_t least_end(std::int64_t begin) const = 0;
    /// Whether a decoder that wants two intervals with this gap between them decodes something for both.
    virtual bool near(std::int64_t end, std::int64_t next_begin) const = 0;
};

class BamCuts final : public Cuts {
public:
    BamCuts(const hts_idx_t* index, std::int32_t contig, std::int64_t margin)
        : index_(index), contig_(contig), margin_(margin) {}

    std::int64_t bytes(std::int64_t begin, std::int64_t end) const override {
        const Iterator iterator(hts_itr_query(index_, contig_, begin, end, nullptr));
        if (!iterator) return 0;
        std::int64_t total = 0;
        for (int i = 0; i < iterator->n_off; ++i) {
            // Virtual offsets: the upper 48 bits are the place in the file.
            const auto first = static_cast<std::int64_t>(iterator->off[i].u >> 16);
            const auto last = static_cast<std::int64_t>(iterator->off[i].v >> 16);
            // Both may lie in one block: it counts as a byte, so that only what has no reads is 0.
            total += std::max<std::int64_t>(last - first, 0) + 1;
        }
        return total;
    }
    std::int64_t cut(std::int64_t wished) const override {
        return (std::max<std::int64_t>(wished - margin_, 0) + window - 1) / window * window + margin_;
    }
    std::int64_t least_end(std::int64_t begin) const override { return begin; }
    bool near(std::int64_t end, std::int64_t next_begin) const override {
        // The index would lead a reader of the second to the begin of its window, often before the end of the first.
        return next_begin - end < window + 2 * margin_;
    }

private:
    const hts_idx_t* index_;
    std::int32_t contig_;
    std::int64_t margin_;
};

class CramCuts final : public Cuts {
public:
    CramCuts(std::span<const CramSlice> slices, std::int64_t margin) : slices_(slices), margin_(margin) {}

    std::int64_t bytes(std::int64_t begin, std::int64_t end) const override {
        std::int64_t total = 0;
        for (std::size_t i = first_from(begin); i < slices_.size() && slices_[i].begin < end; ++i)
            total += slices_[i].bytes;
        return total;
    }
    std::int64_t cut(std::int64_t wished) const override {
        // The middle of the slice: both sides' margins then lie within it.
        const std::size_t i = first_from(wished + 1);
        if (i == 0) return wished;
        const CramSlice& slice = slices_[i - 1];
        const std::int64_t middle = slice.begin + (slice.end - slice.begin) / 2;
        if (middle >= wished || i == slices_.size()) return std::max(middle, wished);
        return slices_[i].begin + (slices_[i].end - slices_[i].begin) / 2;
    }
    std::int64_t least_end(std::int64_t begin) const override {
        const std::size_t i = first_from(begin) + slices_in_span;
        return i < slices_.size() ? slices_[i].begin : std::numeric_limits<std::int64_t>::max() / 2;
    }
    bool near(std::int64_t end, std::int64_t next_begin) const override {
        // The last slice that begins before the end of the one also covers the begin of the other.
        const std::size_t i = first_from(end + margin_);
        return next_begin - margin_ <= end + margin_ || (i > 0 && slices_[i - 1].end > next_begin - margin_);
    }

private:
    /// The first slice that begins at or after `position`.
    std::size_t first_from(std::int64_t position) const {
        const auto found = std::lower_bound(slices_.begin(), slices_.end(), position,
                                            [](const CramSlice& slice, std::int64_t p) { return slice.begin < p; });
        return static_cast<std::size_t>(found - slices_.begin());
    }
    std::span<const CramSlice> slices_;
    std::int64_t margin_;
};

/// Cuts one stretch into spans.
void cut_stretch(const Interval& stretch, const Cuts& cuts, const SpanOptions& options, std::vector<Interval>& result) {
    // Thousands of contigs without reads are common: they are not worth a task for each piece.
    const bool empty = cuts.bytes(stretch.begin, stretch.end) == 0;
    const std::int64_t length = empty ? stretch.end - stretch.begin : options.length;
    for (std::int64_t begin = stretch.begin; begin < stretch.end;) {
        std::int64_t end = std::min(cuts.cut(std::max(begin + length, cuts.least_end(begin))), stretch.end);
        // What is too heavy is halved until it is light or cannot be cut.
        while (cuts.bytes(begin, end) > options.bytes) {
            const std::int64_t halved = cuts.cut(begin + (end - begin) / 2);
            if (halved <= begin || halved >= end) break;
            end = halved;
        }
        // A short rest is no span of its own.
        if (stretch.end - end < (end - begin) / 4) end = stretch.end;
        result.push_back({stretch.contig, begin, end});
        begin = end;
    }
}

std::unique_ptr<Cuts> cuts_of(const AlignmentFile::State& state, std::int32_t contig, std::int64_t margin) {
    if (state.format != cram) return std::make_unique<BamCuts>(state.bam_index.get(), contig, margin);
    const auto order = [](const CramSlice& slice, std::int32_t c) { return slice.contig < c; };
    const auto first = std::lower_bound(state.slices.begin(), state.slices.end(), contig, order);
    const auto last = std::lower_bound(first, state.slices.end(), contig + 1, order);
    return std::make_unique<CramCuts>(std::span(first, last), margin);
}

} // namespace

std::vector<Interval> decode_spans(const AlignmentFile& file, std::vector<Interval> wanted, SpanOptions options) {
    if (options.length <= 0 || options.margin < 0 || options.bytes <= 0)
        throw Error(ErrorCode::usage, "cutting spans", file.path(),
                    "length and bytes must be positive, the margin not negative");
    std::vector<Interval> intervals = merged(std::move(wanted));
    if (!file.has_index()) return intervals;
    std::vector<Interval> result;
    for (std::size_t i = 0; i < intervals.size();) {
        Interval stretch = intervals[i];
        const auto cuts = cuts_of(file.state(), stretch.contig, options.margin);
        for (++i; i < intervals.size() && intervals[i].contig == stretch.contig; ++i) {
            if (cuts->near(stretch.end, intervals[i].begin)) {
                stretch.end = intervals[i].end;
            } else {
                cut_stretch(stretch, *cuts, options, result);
                stretch = intervals[i];
            }
        }
        cut_stretch(stretch, *cuts, options, result);
    }
    return result;
}

} // namespace spillway::hts
