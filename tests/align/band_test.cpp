#include <catch2/catch.hpp>

#include "forms.hpp"
#include "pairs.hpp"

namespace spillway {
namespace {

TEST_CASE("every form gives the oracle's alignment over the whole matrix") {
    Pairs random(10);
    const auto forms = all_forms();
    for (int round = 0; round < 500; ++round) {
        const Pair pair = random.next(round % 10 == 0 ? 150 : 40);
        const Scores scores = random.any_scores();
        const Span span = random.under(2) == 0 ? Span::local : Span::query;
        const std::string expected = describe(align_scalar(pair.query, pair.target, scores, span));
        if (pair.query.empty()) continue;
        for (const Form& form : forms) {
            INFO(form.name << "\n" << pair.query << "\n" << pair.target);
            REQUIRE(describe(form.align(pair.query, pair.target, scores, span)) == expected);
        }
    }
}

TEST_CASE("a band that holds every best path gives the oracle's alignment, whatever its width and place") {
    Pairs random(11);
    std::size_t compared = 0;
    for (int round = 0; round < 1500; ++round) {
        const Pair pair = random.next(80);
        if (pair.query.empty()) continue;
        const Scores scores = random.any_scores();
        const Span span = random.under(2) == 0 ? Span::local : Span::query;
        const Alignment expected = align_scalar(pair.query, pair.target, scores, span);
        CodedBases query(CodedBases::Side::query), target(CodedBases::Side::target);
        query.assign(pair.query);
        target.assign(pair.target);
        const auto query_size = static_cast<std::ptrdiff_t>(query.size());
        Band band;
        band.low = static_cast<std::ptrdiff_t>(random.under(query.size() + target.size() + 1)) - query_size;
        band.high = band.low + static_cast<std::ptrdiff_t>(random.under(80)); // one register, two, or more
        const auto compare = [&](auto lane, Instructions instructions) {
            INFO(pair.query << "\n" << pair.target << "\n" << band.low << " to " << band.high);
            Alignment found = worst_alignment();
            BandAligner<decltype(lane)> aligner(scores, span, instructions);
            aligner.set_target(target);
            aligner.set_query(query);
            aligner.align(band, found);
            REQUIRE(found.score <= expected.score);
            // If one best path goes through the band, its score is found there.
            const std::ptrdiff_t begin = expected.target_begin - expected.query_begin;
            if (expected.cigar.size() == 1 && (expected.cigar[0] & 15) == 0 && begin >= band.low &&
                begin <= band.high) {
                REQUIRE(found.score == expected.score);
                ++compared;
            }
        };
        for (const Instructions instructions : {Instructions::widest, Instructions::baseline}) {
            compare(std::int32_t{}, instructions);
            if (fits_16_bits(query.size(), target.size(), scores)) compare(std::int16_t{}, instructions);
        }
    }
    CHECK(compared > 200);
}

TEST_CASE("16 bits are refused where a sum could leave them") {
    CHECK(fits_16_bits(250, 700, {}));
    CHECK(fits_16_bits(7000, 20000, {}));
    CHECK_FALSE(fits_16_bits(7001, 20000, {.match = 4, .gap_open = 2, .gap_extend = 2}));
    CHECK_FALSE(fits_16_bits(20000, 20000, {.match = 1}));
    CHECK_FALSE(fits_16_bits(100, 100, {.match = 300}));
    CHECK_FALSE(fits_16_bits(10, 10, {.mismatch = -3000}));
    CHECK_FALSE(fits_16_bits(300, 300, {.gap_open = 200, .gap_extend = 200}));
}

} // namespace
} // namespace spillway
