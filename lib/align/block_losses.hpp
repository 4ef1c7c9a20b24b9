// What each block of a query must lose wherever it lies on the target: bounds that a search for the best path prunes
// by.
//
//     BlockLosses<std::int16_t> blocks(losses, Span::query);
//     blocks.measure(query, target, index);
//     blocks.total();               // no alignment loses less
//     blocks.diagonals(limit);      // no alignment that loses no more than this leaves these diagonals
//
// A block is a few words of 8 bases. Cut a path where blocks end: its pieces lose no more than all of it, if a piece
// may begin inside an insertion that goes on. A piece that agrees with the target over none of its words loses at least
// `cap`: each event costs at least `word_loss` a word that it touches (a mismatch or a deletion touches one; an
// insertion of g bases 1 + ceil((g - 1) / 8); one that goes on from the block before, ceil(g / 8), and only that one
// may cost less). So what a block loses, up to cap, is found by aligning it around each place where a word of it
// agrees.
//
// From there, the diagonals. Say that no path of a limited loss can afford to keep off the diagonals [low, high] of
// those words in every block, and take a path that is elsewhere by d diagonals. It gets there, or comes from there, by
// d deleted or inserted bases within successive blocks that it crosses off [low, high], and one more on either side.
// The former lose cap instead of what they must; the limit says for how many of them that is possible, so how much they
// and their neighbours can lose, and what those bases cost is within that. A path that begins on a higher diagonal
// comes down by insertions, which cost more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "align/band.hpp"
#include "align/bases.hpp"
#include "align/exact_runs.hpp"
#include "align/losses.hpp"
#include "align/wavefronts.hpp"

namespace spillway {

/// Lane as for Wavefronts. Thread safety: one thread at a time.
template <class Lane>
class BlockLosses {
public:
    BlockLosses(const Losses& losses, Span span, Instructions instructions = Instructions::widest);

    /// Until the next call. Most of the cost is in the blocks with errors.
    void measure(const CodedBases& query, const CodedBases& target, const TargetIndex& index);

    [[nodiscard]] std::int64_t total() const noexcept { return rest_.front(); }
    /// What a query would lose that agrees with the target nowhere: the closer total() is, the less is known.
    [[nodiscard]] std::int64_t most() const noexcept { return most_; }

    /// About what the best alignment loses: each block at its best place, and the gaps between these. A block is
    /// compared with no more than 32 before it.
    [[nodiscard]] std::int64_t guess() const;

    /// The first row from which on an alignment may lose no more than `loss`. `block` is where to begin looking, and
    /// then where to go on for a smaller loss; 0 at first.
    [[nodiscard]] std::ptrdiff_t first_row(std::int64_t loss, std::size_t& block) const noexcept;

    /// Every alignment that loses at most `limit` stays on these diagonals.
    [[nodiscard]] Band diagonals(std::int64_t limit) const noexcept;
    /// And if it loses nothing by where it begins, that is on no higher diagonal.
    [[nodiscard]] std::ptrdiff_t highest_start(std::int64_t limit) const noexcept;
    /// Those of the words that agree in each block's best place; none if low > high.
    [[nodiscard]] const Band& likely() const noexcept { return likely_; }

private:
    struct Block {
        std::int32_t loss = 0;
        std::int32_t elsewhere = 0;      ///< At least this is lost off the diagonals of likely_.
        Band words{.low = 1, .high = 0}; ///< Of the best place; none if low > high.
    };

    /// The diagonals of words that agree, from the first that lies near to the next to the last.
    struct Place {
        Band words;
        std::ptrdiff_t count = 0;
    };

    [[nodiscard]] Block measure_block(std::ptrdiff_t begin, const TargetIndex& index);
    [[nodiscard]] bool find_words(std::ptrdiff_t begin, const TargetIndex& index);
    void group_words();
    [[nodiscard]] std::int32_t least_loss(std::ptrdiff_t words) const noexcept;
    [[nodiscard]] std::int64_t most_off_likely(std::int64_t limit) const noexcept;

    Losses losses_;
    Span span_;
    std::int32_t word_loss_ = 0, cap_ = 0, edge_ = 0;
    std::ptrdiff_t drift_ = 0;
    Wavefronts<Lane> waves_;
    const CodedBases* query_ = nullptr;
    const CodedBases* target_ = nullptr;
    std::int64_t most_ = 0;
    Band likely_;
    std::vector<Block> blocks_;
    std::vector<std::int64_t> rest_; // what the blocks from this one on lose
    std::vector<std::ptrdiff_t> words_;
    std::vector<Place> places_;
};

extern template class BlockLosses<std::int16_t>;
extern template class BlockLosses<std::int32_t>;

} // namespace spillway
