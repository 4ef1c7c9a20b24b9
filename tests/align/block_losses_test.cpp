#include "align/block_losses.hpp"

#include <catch2/catch.hpp>

#include "forms.hpp"
#include "pairs.hpp"

namespace spillway {
namespace {

/// Walks along an alignment and calls with what it has lost yet, the row and the diagonal of each of its cells.
template <class Visit>
void walk(const Alignment& a, const Pair& pair, const Losses& losses, Visit visit) {
    std::int64_t lost = std::int64_t{losses.clip} * a.query_begin;
    std::ptrdiff_t i = a.query_begin, j = a.target_begin;
    visit(lost, i, j - i);
    for (const CigarElement element : a.cigar) {
        const auto operation = static_cast<CigarOperation>(element & 15);
        for (std::uint32_t k = 0; k < element >> 4; ++k) {
            if (operation == CigarOperation::match) {
                const char base = pair.query[static_cast<std::size_t>(i++)];
                if (base != pair.target[static_cast<std::size_t>(j++)] || base == 'N') lost += losses.mismatch;
            } else if (operation == CigarOperation::deletion) {
                lost += k == 0 ? losses.deletion_open : losses.deletion_extend;
                ++j;
            } else {
                lost += k == 0 ? losses.insertion_open : losses.insertion_extend;
                ++i;
            }
            visit(lost, i, j - i);
        }
    }
}

/// Few errors, at the borders of blocks and of words: there the bounds are sharp.
Pair pair_with_gaps_at_borders(Pairs& random) {
    Pair pair;
    pair.target = random.bases(50 + random.under(250), random.under(4) == 0 ? "AC" : "ACGT");
    pair.query = pair.target;
    for (std::size_t edits = 1 + random.under(4); edits > 0; --edits) {
        const std::size_t border = random.under(2) == 0 ? 48 : 8;
        const std::size_t at = std::min(pair.query.size() - 1, random.under(6) * border + random.under(6));
        const std::size_t length = std::min(at, 1 + random.under(10));
        switch (random.under(3)) {
        case 0:
            pair.query.insert(at - random.under(length + 1), random.bases(length, "ACGT"));
            break;
        case 1:
            pair.query.erase(at - random.under(length + 1), length);
            break;
        default:
            pair.query[at] = "ACGTN"[random.under(5)];
        }
    }
    if (random.under(3) == 0) pair.query = random.bases(random.under(60), "ACGT") + pair.query;
    if (random.under(3) == 0) pair.query += random.bases(random.under(60), "ACGT");
    return pair;
}

TEST_CASE("no best alignment loses less than its blocks must, from any of its cells on, or leaves their diagonals") {
    Pairs random(40);
    for (int round = 0; round < 6'000; ++round) {
        const Pair pair = pair_with_gaps_at_borders(random);
        Scores scores;
        if (random.under(2) == 0) scores = random.scores();
        scores.unknown = scores.mismatch;
        const Span span = random.under(2) == 0 ? Span::local : Span::query;
        const Alignment best = align_scalar(pair.query, pair.target, scores, span);
        if (best.cigar.empty()) continue;
        CodedBases query(CodedBases::Side::query), target(CodedBases::Side::target);
        query.assign(pair.query);
        target.assign(pair.target);
        TargetIndex index;
        index.build(target);
        const Losses losses(scores);
        BlockLosses<std::int16_t> blocks(losses, span);
        blocks.measure(query, target, index);

        const std::int64_t all = (std::int64_t{scores.match} * std::ssize(pair.query) - best.score) / losses.unit;
        const Band band = blocks.diagonals(all);
        INFO(pair.query << "\n" << pair.target << "\n" << describe(best));
        REQUIRE(best.target_begin - best.query_begin <= blocks.highest_start(all));
        bool inside = true;
        walk(best, pair, losses, [&](std::int64_t lost, std::ptrdiff_t row, std::ptrdiff_t diagonal) {
            std::size_t block = 0;
            inside =
                inside && blocks.first_row(all - lost, block) <= row && diagonal >= band.low && diagonal <= band.high;
        });
        REQUIRE(inside);
    }
}

} // namespace
} // namespace spillway
