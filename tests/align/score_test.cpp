#include <catch2/catch.hpp>

#include "align/isa.hpp"
#include "align/score_pass.hpp"
#include "forms.hpp"
#include "pairs.hpp"
#include "spillway/error.hpp"

namespace spillway {
namespace {

/// Pairs that own their bases.
struct Texts {
    std::vector<Pair> texts;

    [[nodiscard]] std::vector<SequencePair> pairs() const {
        std::vector<SequencePair> all;
        for (const Pair& pair : texts) all.push_back({pair.query, pair.target});
        return all;
    }
};

AlignmentEnd end_of(const Alignment& a) {
    return {a.score, a.query_end, a.target_end};
}

std::string describe(const AlignmentEnd& end) {
    return std::to_string(end.score) + " q" + std::to_string(end.query_end) + " t" + std::to_string(end.target_end);
}

void check_every_isa(const Texts& texts, const Scores& scores, Span span) {
    const std::vector<SequencePair> pairs = texts.pairs();
    std::vector<AlignmentEnd> expected;
    for (const SequencePair& pair : pairs) {
        expected.push_back(end_of(align_scalar(pair.query, pair.target, scores, span)));
    }
    for (const Isa isa : available_isas()) {
        std::vector<AlignmentEnd> found(pairs.size(), {-5, -5, -5});
        ScorePass(scores, span, isa).run(pairs, found);
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            if (found[i] == expected[i]) continue;
            INFO(name_of(isa) << ", pair " << i << " of " << pairs.size() << "\n"
                              << pairs[i].query << "\n"
                              << pairs[i].target << "\n"
                              << scores.match << "/" << scores.mismatch << "/" << scores.unknown << "/"
                              << scores.gap_open << "/" << scores.gap_extend
                              << (span == Span::local ? " local" : " query"));
            REQUIRE(describe(found[i]) == describe(expected[i]));
        }
        REQUIRE(found == expected);
    }
}

TEST_CASE("every ISA scores pairs of every awkward kind as the oracle does") {
    Pairs random(50);
    for (int round = 0; round < 60; ++round) {
        Texts texts;
        for (int k = 0; k < 100; ++k) texts.texts.push_back(random.next(round % 10 == 0 ? 300 : 90));
        check_every_isa(texts, random.scores(), round % 2 == 0 ? Span::local : Span::query);
    }
}

TEST_CASE("every ISA scores reads on their haplotypes as the oracle does") {
    Pairs random(51);
    for (int round = 0; round < 24; ++round) {
        Texts texts;
        const std::size_t length = 60 + random.under(140);
        for (int k = 0; k < 64; ++k) {
            Pair pair;
            pair.target = random.bases(length + random.under(120), round % 3 == 0 ? "AC" : "ACGT");
            pair.query = pair.target.substr(random.under(pair.target.size() - length + 1), length);
            for (std::size_t edits = random.under(6); edits > 0; --edits) random.edit(pair.query);
            texts.texts.push_back(pair);
        }
        check_every_isa(texts, round % 4 == 3 ? random.scores() : Scores{}, round % 2 == 0 ? Span::local : Span::query);
    }
}

} // namespace
} // namespace spillway
