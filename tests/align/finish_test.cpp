#include <catch2/catch.hpp>

#include "align/finish.hpp"
#include "forms.hpp"
#include "pairs.hpp"

namespace spillway {
namespace {

/// What a score pass knows of an alignment; the rest is what a used result may hold.
Alignment only_end_of(const Alignment& whole) {
    Alignment end;
    end.score = whole.score;
    end.query_end = whole.query_end;
    end.target_end = whole.target_end;
    end.query_begin = end.target_begin = 77;
    end.cigar = {16, 33};
    return end;
}

void check_finish(Finisher& finisher, const std::string& query, const std::string& target, const Scores& scores,
                  Span span) {
    const Alignment expected = align_scalar(query, target, scores, span);
    INFO(query << "\n" << target << "\n" << describe(scores, span));
    Alignment found = only_end_of(expected);
    finisher.finish(query, target, found);
    REQUIRE(describe(found) == describe(expected));
    REQUIRE(score_again(found, query, target, scores) == found.score);
}

TEST_CASE("from score and end the oracle's alignment is finished, for pairs of every awkward kind") {
    Pairs random(40);
    for (int round = 0; round < 6000; ++round) {
        const Pair pair = random.next(round % 10 == 0 ? 300 : 100);
        const Scores scores = random.any_scores();
        const Span span = random.under(2) == 0 ? Span::local : Span::query;
        Finisher finisher(scores, span);
        check_finish(finisher, pair.query, pair.target, scores, span);
    }
}

TEST_CASE("one finisher serves pair after pair of any size") {
    Pairs random(41);
    for (const Span span : {Span::local, Span::query}) {
        Finisher finisher({}, span);
        for (int round = 0; round < 1500; ++round) {
            const std::string_view alphabet = round % 3 == 0 ? "AC" : "ACGT";
            const std::string target = random.bases(60 + random.under(120), alphabet);
            std::string query = target.substr(random.under(60), 20 + random.under(120));
            for (std::size_t k = random.under(5); k > 0; --k) random.edit(query);
            check_finish(finisher, query, target, {}, span);
        }
    }
}

TEST_CASE("an alignment whose sums leave 16 bits is finished as well") {
    Pairs random(42);
    const Scores scores{.match = 900, .mismatch = -1100, .unknown = -1100, .gap_open = 1900, .gap_extend = 400};
    Finisher finisher(scores, Span::local);
    const std::string target = random.bases(260, "ACGT");
    std::string query = target.substr(20, 200);
    query.erase(100, 12);
    check_finish(finisher, query, target, scores, Span::local);
}

TEST_CASE("nothing to align, a query that hangs over both ends and an empty target are finished") {
    Finisher local({}, Span::local), whole({}, Span::query);
    check_finish(local, "AAA", "CCC", {}, Span::local);
    check_finish(local, "", "CCC", {}, Span::local);
    check_finish(whole, "", "CCC", {}, Span::query);
    check_finish(whole, "ACG", "", {}, Span::query);
    check_finish(whole, "TTACGTACGTAA", "ACGTACGT", {}, Span::query);
    check_finish(whole, "NNNN", "ACGT", {}, Span::query);
}

} // namespace
} // namespace spillway
