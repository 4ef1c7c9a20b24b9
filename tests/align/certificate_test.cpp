#include <catch2/catch.hpp>

#include <algorithm>
#include <iterator>

#include "align/certificate.hpp"
#include "align/detours.hpp"
#include "align/exact_runs.hpp"
#include "forms.hpp"
#include "pairs.hpp"

namespace spillway {
namespace {

TEST_CASE("a loss of 10 leaves room for one gap of two deleted bases, one of 7 for none") {
    const Certificate certificate({}, Span::query, 150, 0);
    CHECK(certificate.perfect() == 600);
    const Freedom one_mismatch = certificate.freedom(590);
    CHECK(one_mismatch.gaps);
    CHECK(one_mismatch.deleted == 2);
    CHECK(one_mismatch.inserted == 0);
    CHECK(one_mismatch.longest_run == 75); // 149 matching bases in two runs
    const Freedom little = certificate.freedom(593);
    CHECK_FALSE(little.gaps);
    CHECK(little.longest_run == 149);
    CHECK(certificate.freedom(592).gaps); // equality proves nothing
}

TEST_CASE("a loss of 24 leaves room for three inserted or nine deleted bases") {
    const Freedom freedom = Certificate({}, Span::query, 100, 0).freedom(376);
    CHECK(freedom.inserted == 3); // 8 + 2 * 2 for the gap, 3 * 4 for what the bases would have matched
    CHECK(freedom.deleted == 9);  // 8 + 8 * 2
}

TEST_CASE("a loss of 40 bounds the diagonals: ten bases clipped, or five inserted") {
    const Band local = Certificate({}, Span::local, 100, 0).diagonals(360, 120);
    CHECK(local.low == -10); // ten bases of the query left out lose their matches
    CHECK(local.high == 30);
    const Band whole = Certificate({}, Span::query, 100, 0).diagonals(360, 120);
    CHECK(whole.low == -5); // and if inserted 8 + 4 * 2 as well
    CHECK(whole.high == 25);
    const Band perfect = Certificate({}, Span::query, 100, 0).diagonals(400, 120);
    CHECK(perfect.low == 0);
    CHECK(perfect.high == 20);
}

TEST_CASE("scores of which nothing is proven leave every alignment free") {
    for (const Scores& scores : {Scores{.gap_extend = 0}, Scores{.gap_open = 1, .gap_extend = 2}}) {
        CHECK_FALSE(certifiable(scores));
        const Freedom freedom = Certificate(scores, Span::query, 100, 0).freedom(400);
        CHECK(freedom.gaps);
        CHECK(freedom.longest_run == 0);
        CHECK(freedom.inserted == 100);
        CHECK(freedom.deleted >= 16384);
    }
    CHECK(certifiable({.gap_open = 2, .gap_extend = 2}));
}

TEST_CASE("the oracle's alignment is never freer than its own score allows") {
    Pairs random(30);
    for (int round = 0; round < 1500; ++round) {
        const Pair pair = random.next(100);
        if (pair.query.empty()) continue;
        const Scores scores = random.scores();
        const Span span = random.under(2) == 0 ? Span::local : Span::query;
        const Alignment oracle = align_scalar(pair.query, pair.target, scores, span);
        if (oracle.cigar.empty()) continue;
        CodedBases query(CodedBases::Side::query), target(CodedBases::Side::target);
        query.assign(pair.query);
        target.assign(pair.target);
        const Certificate certificate(scores, span, query.size(), query.unknown());
        INFO(pair.query << "\n" << pair.target << "\n" << describe(oracle));
        REQUIRE(oracle.score <= certificate.perfect());
        const Freedom freedom = certificate.freedom(oracle.score);
        const Band diagonals = certificate.diagonals(oracle.score, target.size());
        std::ptrdiff_t deleted = 0, inserted = 0, longest = 0, run = 0;
        std::ptrdiff_t i = oracle.query_begin, j = oracle.target_begin;
        for (const CigarElement element : oracle.cigar) {
            REQUIRE((j - i >= diagonals.low && j - i <= diagonals.high));
            const auto length = static_cast<std::ptrdiff_t>(element >> 4);
            run = 0;
            if ((element & 15) == 1) inserted += length, i += length;
            if ((element & 15) == 2) deleted += length, j += length;
            for (std::ptrdiff_t k = 0; (element & 15) == 0 && k < length; ++k, ++i, ++j) {
                run = *query.at(i) == *target.at(j) ? run + 1 : 0;
                longest = std::max(longest, run);
            }
        }
        REQUIRE((j - i >= diagonals.low && j - i <= diagonals.high));
        REQUIRE(deleted <= freedom.deleted);
        REQUIRE(inserted <= freedom.inserted);
        REQUIRE((freedom.gaps || oracle.cigar.size() == 1));
        REQUIRE(longest >= freedom.longest_run);
    }
}

TEST_CASE("every exact run of fifteen bases or more is found") {
    Pairs random(31);
    std::size_t long_runs = 0;
    for (int round = 0; round < 300; ++round) {
        const Pair pair = random.next(200);
        CodedBases query(CodedBases::Side::query), target(CodedBases::Side::target);
        query.assign(pair.query);
        target.assign(pair.target);
        TargetIndex index;
        index.build(target);
        std::vector<ExactRun> runs;
        if (!find_runs(query, target, index, runs)) continue;
        const auto query_size = static_cast<std::ptrdiff_t>(query.size());
        for (std::ptrdiff_t diagonal = -query_size; diagonal <= static_cast<std::ptrdiff_t>(target.size());
             ++diagonal) {
            std::ptrdiff_t length = 0;
            for (std::ptrdiff_t i = 0; i <= query_size; ++i) {
                const bool inside = i + diagonal >= 0 && i + diagonal < static_cast<std::ptrdiff_t>(target.size());
                if (i < query_size && inside && *query.at(i) == *target.at(i + diagonal)) {
                    ++length;
                    continue;
                }
                if (length >= surely_found) {
                    ++long_runs;
                    INFO(pair.query << "\n" << pair.target);
                    REQUIRE(std::count_if(runs.begin(), runs.end(), [&](const ExactRun& run) {
                                return run.diagonal == diagonal && run.query_begin == i - length &&
                                       run.length == length;
                            }) == 1);
                }
                length = 0;
            }
        }
    }
    CHECK(long_runs > 100);
}

TEST_CASE("a mismatch in the middle of a unique read has no detour, one beside a repeat may") {
    const std::string target = "GATTACAGGCTTAACCGTGACTTCGAGATCCGTAACTGGTCATTGCACGTTTTTTTTTTGCA";
    CodedBases query(CodedBases::Side::query), coded(CodedBases::Side::target);
    coded.assign(target);
    const auto excluded = [&](std::size_t begin, std::size_t size, std::size_t at, char base) {
        std::string read = target.substr(begin, size);
        read[at] = base;
        query.assign(read);
        const Certificate certificate({}, Span::query, size, 0);
        return detours_excluded(query, coded, static_cast<std::ptrdiff_t>(begin), certificate,
                                certificate.freedom(certificate.perfect() - 10));
    };
    CHECK(excluded(0, 40, 20, 'T'));
    CHECK_FALSE(excluded(10, 49, 48, 'G')); // the last base: one deleted T, and it matches the G that follows
}

TEST_CASE("where detours are excluded, an oracle's path that touches the diagonal stays on it") {
    Pairs random(32);
    std::size_t excluded = 0, touching_with_gaps = 0;
    for (int round = 0; round < 30000; ++round) {
        const std::string_view alphabet = round % 2 == 0 ? "ACG" : "AC";
        const std::string text = random.bases(8 + random.under(40), alphabet);
        std::string read = text.substr(random.under(6), 6 + random.under(30));
        for (std::size_t k = 0, errors = 1 + random.under(4); k < errors; ++k) {
            read[random.under(read.size())] = alphabet[random.under(alphabet.size())];
        }
        if (random.under(3) == 0) read = read.substr(0, read.size() / 2) + read.substr(read.size() / 2 + 1);
        const Scores scores = round % 2 == 0 ? Scores{} : random.scores();
        const Span span = random.under(2) == 0 ? Span::local : Span::query;
        const Alignment oracle = align_scalar(read, text, scores, span);
        CodedBases query(CodedBases::Side::query), target(CodedBases::Side::target);
        query.assign(read);
        target.assign(text);
        const Certificate certificate(scores, span, read.size(), 0);
        for (std::ptrdiff_t diagonal = 0; diagonal <= std::ssize(text) - std::ssize(read); ++diagonal) {
            bool touches = false;
            std::ptrdiff_t i = oracle.query_begin, j = oracle.target_begin;
            for (const CigarElement element : oracle.cigar) {
                const auto length = static_cast<std::ptrdiff_t>(element >> 4);
                if ((element & 15) == 0) touches = touches || j - i == diagonal;
                if ((element & 15) != 2) i += length;
                if ((element & 15) != 1) j += length;
            }
            if (!touches) continue;
            touching_with_gaps += oracle.cigar.size() > 1;
            if (!detours_excluded(query, target, diagonal, certificate, certificate.freedom(oracle.score))) continue;
            ++excluded;
            INFO(read << " " << text << " " << describe(oracle) << " diagonal " << diagonal);
            REQUIRE(oracle.cigar.size() == 1);
        }
    }
    CHECK(excluded > 3000);
    CHECK(touching_with_gaps > 3000);
}

} // namespace
} // namespace spillway
