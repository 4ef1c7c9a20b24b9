// Gathers decoded records into a ReadBlock: normalises each, and packs a block's bases, qualities and CIGARs into one
// array.
#pragma once

#include "hts/handles.hpp"
#include "spillway/hts.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace spillway::hts {

/// What became of a record.
enum class Outcome { added, without_bases, without_match, malformed };

/// Scratch that is reused from block to block. One thread at a time.
class BlockBuilder {
public:
    explicit BlockBuilder(std::uint8_t missing_quality) : missing_quality_(missing_quality) {}

    /// Adds a mapped record whose contig has `contig_length` bases; counts replaced qualities and clipping in `counts`.
    [[nodiscard]] Outcome add(const bam1_t& record, std::int64_t contig_length, ReadCounts& counts);

    [[nodiscard]] std::size_t size() const noexcept { return reads_.size(); }
    /// Bytes that the gathered reads will take in a block's arena.
    [[nodiscard]] std::size_t bytes_used() const noexcept {
        return 2 * bases_.size() + cigar_.size() * sizeof(std::uint32_t);
    }
    /// The contig of the gathered reads; -1 where there are none.
    [[nodiscard]] std::int32_t contig() const noexcept { return reads_.empty() ? -1 : reads_.front().contig; }
    /// The gathered reads as a block, null where there are none; begins the next one.
    [[nodiscard]] std::shared_ptr<const ReadBlock> take();
    void clear() noexcept;

private:
    /// Appends to cigar_ what `raw` means for us; false where it is malformed.
    [[nodiscard]] bool normalise(std::span<const std::uint32_t> raw, std::int64_t room);
    void append(std::uint32_t operation, std::int64_t length);

    std::uint8_t missing_quality_;
    std::vector<Read> reads_;
    std::vector<std::uint32_t> cigar_;
    std::vector<std::uint32_t> cigar_sizes_, lengths_; // of each read, in elements and bases
    std::vector<char> bases_;
    std::vector<std::uint8_t> qualities_;

    // What normalise() found for the last record.
    std::size_t cigar_begin_ = 0;
    std::int64_t on_reference_ = 0, on_read_ = 0;
    bool matches_ = false, clipped_ = false;
};

} // namespace spillway::hts
