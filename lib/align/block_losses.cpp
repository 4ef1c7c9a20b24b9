#include "align/block_losses.hpp"

#include <algorithm>

namespace spillway {

namespace {

constexpr std::ptrdiff_t words_per_block = 6;
constexpr std::ptrdiff_t block_size = words_per_block * TargetIndex::word;

/// Blocks that a path may leave out between two that it goes through, in the guess at its loss.
constexpr std::size_t most_left_out = 32;

/// A block with more of them is a repeat; aligning it at each place would cost more than it helps.
constexpr std::size_t most_words = 48;

} // namespace

template <class Lane>
BlockLosses<Lane>::BlockLosses(const Losses& losses, Span span, Instructions instructions)
    : losses_(losses), span_(span), waves_(losses, instructions) {
    const auto word = static_cast<std::int32_t>(TargetIndex::word);
    const std::int32_t two_inserted = losses.insertion_open + losses.insertion_extend;
    word_loss_ = std::min({losses.mismatch, losses.deletion_open, two_inserted / 2, losses.insertion_extend * word});
    cap_ = least_loss(0);
    if (span == Span::local) {
        // A block that is clipped as a whole loses its measure as well. In one of which g bases are clipped, the
        // measure is more by no more than an insertion of them costs above clipping, nor than what they do not lose:
        // the lesser of the two is largest where they are equal.
        cap_ = std::min(cap_, losses.clip * static_cast<std::int32_t>(block_size));
        const std::int32_t extend = losses.insertion_extend - losses.clip;
        edge_ =
            (cap_ * extend + (losses.insertion_open - losses.insertion_extend) * losses.clip) / (extend + losses.clip);
    }
    std::int32_t drift = (cap_ - 1) / losses.insertion_extend;
    if (cap_ > losses.deletion_open && losses.deletion_extend > 0) {
        drift = std::max(drift, (cap_ - 1 - losses.deletion_open) / losses.deletion_extend + 1);
    }
    drift_ = drift;
}

template <class Lane>
void BlockLosses<Lane>::measure(const CodedBases& query, const CodedBases& target, const TargetIndex& index) {
    query_ = &query;
    target_ = &target;
    const auto count = query.size() / static_cast<std::size_t>(block_size);
    most_ = static_cast<std::int64_t>(count) * cap_;
    likely_ = {.low = static_cast<std::ptrdiff_t>(target.size()) + 1,
               .high = -static_cast<std::ptrdiff_t>(query.size()) - 1};
    blocks_.resize(count);
    for (std::size_t b = 0; b < count; ++b) {
        blocks_[b] = measure_block(static_cast<std::ptrdiff_t>(b) * block_size, index);
    }
    rest_.assign(count + 1, 0);
    for (std::size_t b = count; b-- > 0;) rest_[b] = rest_[b + 1] + blocks_[b].loss;
}

/// False if the block has too many.
template <class Lane>
bool BlockLosses<Lane>::find_words(std::ptrdiff_t begin, const TargetIndex& index) {
    words_.clear();
    for (std::ptrdiff_t at = begin; at < begin + block_size; at += TargetIndex::word) {
        const std::uint64_t word = eight_bases(query_->at(at));
        for (std::int32_t hit = index.first(query_->at(at)); hit != TargetIndex::none; hit = index.next(hit)) {
            if (eight_bases(target_->at(hit)) != word) continue;
            if (words_.size() == most_words) return false;
            words_.push_back(hit - at);
        }
    }
    return true;
}

/// Words so near to each other that one path may agree over both, the place with most of them first.
template <class Lane>
void BlockLosses<Lane>::group_words() {
    std::sort(words_.begin(), words_.end());
    places_.clear();
    for (const std::ptrdiff_t diagonal : words_) {
        if (places_.empty() || diagonal > places_.back().words.high + 2 * drift_) {
            places_.push_back({.words = {.low = diagonal, .high = diagonal}, .count = 0});
        }
        places_.back().words.high = diagonal;
        ++places_.back().count;
    }
    std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) { return a.count > b.count; });
}

/// What a path loses at least that agrees over so many of a block's words.
template <class Lane>
std::int32_t BlockLosses<Lane>::least_loss(std::ptrdiff_t words) const noexcept {
    const auto touched = static_cast<std::int32_t>(std::max<std::ptrdiff_t>(0, words_per_block - words));
    return std::max(0, word_loss_ * touched - std::max(0, word_loss_ - losses_.insertion_extend));
}

template <class Lane>
typename BlockLosses<Lane>::Block BlockLosses<Lane>::measure_block(std::ptrdiff_t begin, const TargetIndex& index) {
    if (!find_words(begin, index)) return {};
    group_words();
    Block block{.loss = cap_, .elsewhere = cap_, .words = {.low = 1, .high = 0}};
    std::size_t best = places_.size();
    for (std::size_t p = 0; p < places_.size() && least_loss(places_[p].count) < block.loss; ++p) {
        const Band& words = places_[p].words;
        if (words.low == words.high && places_[p].count == words_per_block) {
            block.loss = 0;
            best = p;
            break;
        }
        waves_.begin(*query_, *target_, {.low = words.low - drift_, .high = words.high + drift_},
                     {.row = begin, .highest = words.high + drift_, .inserting = true});
        while (waves_.furthest() < begin + block_size && waves_.loss() < block.loss) waves_.advance();
        if (waves_.loss() < block.loss) {
            block.loss = waves_.loss();
            best = p;
        }
    }
    for (std::size_t p = 0; p < places_.size(); ++p) {
        if (p == best) {
            block.words = places_[p].words;
            likely_.low = std::min(likely_.low, block.words.low);
            likely_.high = std::max(likely_.high, block.words.high);
        } else {
            block.elsewhere = std::min(block.elsewhere, std::max(block.loss, least_loss(places_[p].count)));
        }
    }
    return block;
}

template <class Lane>
std::int64_t BlockLosses<Lane>::guess() const {
    const std::int64_t beside = span_ == Span::local ? std::int64_t{losses_.clip} * block_size : cap_;
    const auto count = static_cast<std::int64_t>(blocks_.size());
    std::vector<std::int64_t> losses(blocks_.size()); // of the best path yet that goes through the block
    std::int64_t least = count * beside;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
        const Band& words = blocks_[b].words;
        if (words.low > words.high) continue;
        losses[b] = static_cast<std::int64_t>(b) * beside;
        for (std::size_t a = b > most_left_out ? b - most_left_out : 0; a < b; ++a) {
            const Band& from = blocks_[a].words;
            if (from.low > from.high) continue;
            std::int64_t gap = 0;
            if (words.low > from.high) {
                gap = losses_.deletion_open + (words.low - from.high - 1) * std::int64_t{losses_.deletion_extend};
            } else if (from.low > words.high) {
                gap = losses_.insertion_open + (from.low - words.high - 1) * std::int64_t{losses_.insertion_extend};
            }
            losses[b] = std::min(losses[b], losses[a] + gap + static_cast<std::int64_t>(b - a - 1) * cap_);
        }
        losses[b] += blocks_[b].loss;
        least = std::min(least, losses[b] + (count - 1 - static_cast<std::int64_t>(b)) * beside);
    }
    return least;
}

template <class Lane>
std::ptrdiff_t BlockLosses<Lane>::first_row(std::int64_t loss, std::size_t& block) const noexcept {
    while (block + 1 < rest_.size() && rest_[block] > loss + edge_) ++block;
    return block == 0 ? 0 : (static_cast<std::ptrdiff_t>(block) - 1) * block_size + 1;
}

/// The most that a path can lose in blocks that it crosses off the diagonals of likely_, and one more on either side,
/// if it loses at most `limit`. Negative if it may be off them in all.
template <class Lane>
std::int64_t BlockLosses<Lane>::most_off_likely(std::int64_t limit) const noexcept {
    std::int64_t all_elsewhere = 0;
    for (const Block& block : blocks_) all_elsewhere += block.elsewhere;
    const std::int64_t excess = limit + 2 * edge_ - total();
    if (excess < 0 || likely_.low > likely_.high || all_elsewhere <= limit + 2 * edge_) return -1;

    std::int64_t most = 0, lost = 0, more = 0; // lost and more: of blocks first to last
    std::size_t first = 0;
    const auto loss = [&](std::size_t b) { return b < blocks_.size() ? blocks_[b].loss : 0; };
    for (std::size_t last = 0; last < blocks_.size(); ++last) {
        lost += blocks_[last].loss;
        more += blocks_[last].elsewhere - blocks_[last].loss;
        for (; more > excess; ++first) {
            lost -= blocks_[first].loss;
            more -= blocks_[first].elsewhere - blocks_[first].loss;
        }
        most = std::max(most, lost + loss(last + 1) + (first > 0 ? loss(first - 1) : 0));
    }
    return excess + most;
}

template <class Lane>
Band BlockLosses<Lane>::diagonals(std::int64_t limit) const noexcept {
    const Band whole{.low = -static_cast<std::ptrdiff_t>(query_->size()),
                     .high = static_cast<std::ptrdiff_t>(target_->size())};
    const std::int64_t gaps = most_off_likely(limit);
    if (gaps < 0) return whole;
    const auto away = static_cast<std::ptrdiff_t>(gaps / losses_.deletion_extend);
    return {.low = std::max(whole.low, likely_.low - away), .high = std::min(whole.high, likely_.high + away)};
}

template <class Lane>
std::ptrdiff_t BlockLosses<Lane>::highest_start(std::int64_t limit) const noexcept {
    const auto target_size = static_cast<std::ptrdiff_t>(target_->size());
    const std::int64_t gaps = most_off_likely(limit);
    if (gaps < 0) return target_size;
    return std::min(target_size, likely_.high + static_cast<std::ptrdiff_t>(gaps / losses_.insertion_extend));
}

template class BlockLosses<std::int16_t>;
template class BlockLosses<std::int32_t>;

} // namespace spillway
