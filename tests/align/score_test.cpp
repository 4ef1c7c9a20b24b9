#include <catch2/catch.hpp>

#include <cstdlib>

#include "align/isa.hpp"
#include "align/lanes.hpp"
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

template <class Result>
void check_equal(const std::vector<Result>& found, const std::vector<Result>& expected,
                 const std::vector<SequencePair>& pairs, const std::string& form) {
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        if (found[i] == expected[i]) continue;
        INFO(form << ", pair " << i << " of " << pairs.size() << "\n" << pairs[i].query << "\n" << pairs[i].target);
        REQUIRE(describe(found[i]) == describe(expected[i]));
    }
    REQUIRE(found == expected);
}

/// Score pass, score() and align() against the oracle, whose CIGARs are scored again.
void check_every_isa(const std::vector<SequencePair>& pairs, const Scores& scores, Span span) {
    std::vector<Alignment> alignments;
    std::vector<AlignmentEnd> ends;
    for (const SequencePair& pair : pairs) {
        alignments.push_back(align_scalar(pair.query, pair.target, scores, span));
        ends.push_back(end_of(alignments.back()));
        const auto again = score_again(alignments.back(), pair.query, pair.target, scores);
        if (again == alignments.back().score) continue;
        INFO(pair.query << "\n" << pair.target << "\n" << describe(scores, span) << describe(alignments.back()));
        REQUIRE(again == alignments.back().score);
    }
    for (const Isa isa : available_isas()) {
        const std::string form = std::string(name_of(isa)) + " " + describe(scores, span);
        const ForcedIsa forced(isa);
        std::vector<AlignmentEnd> found(pairs.size(), {-5, -5, -5});
        ScorePass(scores, span, isa).run(pairs, found);
        check_equal(found, ends, pairs, form + ", score pass");
        found.assign(pairs.size(), {-5, -5, -5});
        score(pairs, scores, span, found);
        check_equal(found, ends, pairs, form + ", score()");
        std::vector<Alignment> aligned(pairs.size());
        align(pairs, scores, span, aligned);
        check_equal(aligned, alignments, pairs, form + ", align()");
    }
}

void check_every_isa(const Texts& texts, const Scores& scores, Span span) {
    check_every_isa(texts.pairs(), scores, span);
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

TEST_CASE("every ISA scores reads that share their haplotypes as the oracle does, however many they are") {
    Pairs random(59);
    for (int round = 0; round < 20; ++round) {
        std::vector<std::string> haplotypes;
        for (int k = 0; k < 3; ++k) haplotypes.push_back(random.target(round % 5 == 0 ? 30 : 200));
        Texts texts;
        std::vector<std::size_t> haplotype_of;
        for (std::size_t h = 0; h < haplotypes.size(); ++h) {
            const std::string& haplotype = haplotypes[h];
            const std::size_t length = 1 + random.under(haplotype.size() + 1);
            for (std::size_t k = 0, reads = random.under(150); k < reads; ++k) {
                Pair pair;
                pair.query = haplotype.substr(random.under(haplotype.size() + 1), length + random.under(16));
                for (std::size_t edits = random.under(5); edits > 0; --edits) random.edit(pair.query);
                texts.texts.push_back(pair);
                haplotype_of.push_back(h);
            }
        }
        std::vector<SequencePair> pairs = texts.pairs();
        for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i].target = haplotypes[haplotype_of[i]];
        const Scores scores = round % 2 == 0 ? Scores{} : random.scores();
        check_every_isa(pairs, scores, round % 4 < 2 ? Span::local : Span::query);
    }
}

TEST_CASE("queries of every length up to 300 are aligned as the oracle does, on targets around the edges of tiles") {
    Pairs random(52);
    const Scores schemes[] = {
        {},
        {.match = 40, .mismatch = -60, .unknown = -60, .gap_open = 80, .gap_extend = 21},                     // 16 bits
        {.match = 500'009, .mismatch = -700'001, .unknown = -3, .gap_open = 800'011, .gap_extend = 200'003}}; // 32
    for (const Scores& scores : schemes) {
        Texts texts;
        for (const std::size_t size : {0U, 1U, 63U, 64U, 65U, 127U, 128U, 129U, 255U, 256U, 257U, 300U}) {
            for (std::size_t length = size % 3; length <= 300; length += 1 + random.under(4)) {
                Pair pair;
                pair.target = random.bases(size, length % 3 == 0 ? "AC" : "ACGT");
                pair.query = length % 2 == 0 ? random.bases(length, "ACGT") : pair.target.substr(0, length);
                if (length > 20) random.edit(pair.query);
                pair.query.resize(length, 'T');
                texts.texts.push_back(pair);
            }
        }
        for (std::size_t length = 0; length <= 300; ++length) { // none is left out
            Pair pair;
            pair.target = random.bases(63 + random.under(3) + 64 * random.under(3), "ACGT");
            pair.query = random.bases(length, "ACGT");
            if (length > 40) pair.query.replace(9, 30, pair.target.substr(20, 30));
            texts.texts.push_back(pair);
        }
        for (const Span span : {Span::local, Span::query}) check_every_isa(texts, scores, span);
    }
}

TEST_CASE("sums up to the largest that 32 bits may hold are told apart") {
    // 302 times the largest is just below 2^29.
    Pairs random(61);
    Texts texts;
    for (int k = 0; k < 24; ++k) {
        const std::string longer = k % 8 == 0 ? std::string(200, 'A') : random.bases(200, k % 2 == 0 ? "AC" : "ACGT");
        std::string shorter = k % 3 == 0 ? random.bases(100, "CG") : longer.substr(random.under(101), 100);
        if (k % 3 == 2) random.edit(shorter);
        shorter.resize(100, 'N');
        texts.texts.push_back({shorter, longer, ""});
        texts.texts.push_back({longer, shorter, ""});
    }
    constexpr int most = 1'777'685;
    const Scores schemes[] = {
        {.match = most, .mismatch = -most, .unknown = -most, .gap_open = most, .gap_extend = most - 1},
        {.match = most, .mismatch = -1, .unknown = 0, .gap_open = most, .gap_extend = 1},
        {.match = 1, .mismatch = -most, .unknown = -most, .gap_open = most, .gap_extend = most},
        {.match = most - 1, .mismatch = 0, .unknown = -most, .gap_open = 0, .gap_extend = 0}};
    for (const Scores& scores : schemes) {
        for (const Span span : {Span::local, Span::query}) check_every_isa(texts, scores, span);
    }
}

TEST_CASE("losses around what 8 bits prove are scored as the oracle does") {
    // 24 bases may be left out at each end; a sum of 8 bits has room for a loss of some 150 halves of a score.
    Pairs random(53);
    for (const Span span : {Span::local, Span::query}) {
        Texts texts;
        for (std::size_t lost = 0; lost < 60; ++lost) {
            const std::string target = random.bases(400, "ACGT");
            const std::string read = target.substr(100, 150);
            std::string begin = read, end = read, middle = read, inserted = read, deleted = read;
            for (std::size_t k = 0; k < lost; ++k) {
                begin[k] = begin[k] == 'A' ? 'C' : 'A';
                char& last = end[149 - k];
                last = last == 'A' ? 'C' : 'A';
                char& base = middle[(k * 5 + 20) % 140];
                base = base == 'A' ? 'C' : 'A';
            }
            inserted.insert(75, random.bases(lost, "ACGT"));
            deleted.erase(70, lost);
            for (const std::string& query : {begin, end, middle, inserted, deleted}) {
                texts.texts.push_back({query, target, "lost"});
            }
        }
        check_every_isa(texts, {}, span);
        check_every_isa(texts, {.match = 1, .mismatch = -4, .unknown = -1, .gap_open = 6, .gap_extend = 1}, span);
        check_every_isa(texts, {.match = 3, .mismatch = -7, .unknown = 0, .gap_open = 5, .gap_extend = 5}, span);
    }
}

TEST_CASE("whether mismatches near an end are clipped with more or fewer bases than are proven makes no difference") {
    // 11 mismatches lose 110; to clip them and the 15 bases before them loses 104; gaps around them lose more.
    Pairs random(58);
    Texts texts;
    for (std::size_t before = 8; before < 24; ++before) {
        for (std::size_t mismatches = 7; mismatches < 16; ++mismatches) {
            const std::string target = random.bases(300, "ACGT");
            std::string query = target.substr(80, 150);
            for (std::size_t k = 0; k < mismatches; ++k) {
                char& base = query[mismatches % 2 == 0 ? before + k : 149 - before - k];
                base = base == 'A' ? 'C' : 'A';
            }
            texts.texts.push_back({query, target, "beside the margin"});
        }
    }
    check_every_isa(texts, {.gap_open = 40}, Span::local);
}

TEST_CASE("scores around the greatest of 16 bits are told apart") {
    Pairs random(54);
    for (const Span span : {Span::local, Span::query}) {
        Texts texts;
        for (std::size_t length = 300; length < 340; ++length) {
            const std::string target = random.bases(380, "ACGT");
            std::string query = target.substr(20, length);
            if (length % 4 == 0) random.edit(query);
            texts.texts.push_back({query, target, "long"});
        }
        // Prime scores: nothing divides them. 101 * 325 is past 32767.
        check_every_isa(texts, {.match = 101, .mismatch = -103, .unknown = -107, .gap_open = 211, .gap_extend = 11},
                        span);
        check_every_isa(texts, {.match = 97, .mismatch = -3, .unknown = -1, .gap_open = 7, .gap_extend = 5}, span);
        check_every_isa(texts, {.match = 10007, .mismatch = -20011, .unknown = -3, .gap_open = 31, .gap_extend = 3},
                        span);
    }
}

TEST_CASE("lower case and unknown bases are scored side by side as the oracle does") {
    Pairs random(55);
    for (int round = 0; round < 12; ++round) {
        Texts texts;
        for (int k = 0; k < 64; ++k) {
            Pair pair;
            pair.target = random.bases(160, "ACGTacgt");
            pair.query = pair.target.substr(random.under(40), 110);
            for (char& base : pair.query) base = random.under(12) == 0 ? "NnR-"[random.under(4)] : base;
            if (k % 2 == 0) pair.target.replace(random.under(100), 20, std::string(20, 'N'));
            texts.texts.push_back(pair);
        }
        Scores scores;
        scores.unknown = round % 3 == 0 ? -6 : round % 3 == 1 ? 0 : -1;
        if (round >= 6) scores.match = 90, scores.mismatch = -130, scores.gap_open = 151;
        check_every_isa(texts, scores, round % 2 == 0 ? Span::local : Span::query);
    }
}

TEST_CASE("a pair's result does not depend on how many are with it") {
    Pairs random(56);
    Texts texts;
    for (int k = 0; k < 10'000; ++k) texts.texts.push_back(random.next(k < 200 ? 130 : 40));
    const std::vector<SequencePair> pairs = texts.pairs();
    for (const Span span : {Span::local, Span::query}) {
        std::vector<Alignment> expected;
        for (const SequencePair& pair : pairs) expected.push_back(align_scalar(pair.query, pair.target, {}, span));
        for (const Isa isa : available_isas()) {
            const ForcedIsa forced(isa);
            for (const std::size_t count :
                 {0U, 1U, 7U, 8U, 15U, 16U, 17U, 31U, 32U, 33U, 63U, 64U, 65U, 129U, 4096U, 4097U, 10'000U}) {
                INFO(name_of(isa) << ", " << count << " pairs");
                const std::span<const SequencePair> some(pairs.data(), count);
                std::vector<AlignmentEnd> ends(count);
                score(some, {}, span, ends);
                std::vector<Alignment> aligned(count);
                align(some, {}, span, aligned);
                bool equal = true;
                for (std::size_t i = 0; i < count; ++i) {
                    equal = equal && aligned[i] == expected[i] && ends[i] == end_of(expected[i]);
                }
                REQUIRE(equal);
            }
        }
    }
}

TEST_CASE("pairs that no seed explains are aligned as the oracle does, side by side") {
    Pairs random(57);
    for (int round = 0; round < 4; ++round) {
        const Span span = round % 2 == 0 ? Span::local : Span::query;
        std::vector<std::string> queries;
        const std::string target = random.bases(200, "ACGT");
        for (int k = 0; k < 60; ++k) {
            std::string query = target.substr(random.under(60), 100);
            query.insert(40, random.bases(random.under(30), "ACGT"));
            for (std::size_t error = random.under(24); error > 0; --error) query[random.under(query.size())] = 'G';
            queries.push_back(query);
        }
        const std::vector<std::string_view> views(queries.begin(), queries.end());
        std::vector<SequencePair> pairs;
        for (const std::string_view query : views) pairs.push_back({query, target});
        std::vector<Alignment> of_one_target(views.size()), of_pairs(views.size());
        align(views, target, {}, span, of_one_target);
        align(pairs, {}, span, of_pairs);
        for (std::size_t i = 0; i < views.size(); ++i) {
            const std::string expected = describe(align_scalar(views[i], target, {}, span));
            REQUIRE(describe(of_one_target[i]) == expected);
            REQUIRE(describe(of_pairs[i]) == expected);
        }
    }
}

TEST_CASE("every instruction set of this machine has kernels, as wide as its registers") {
    const auto lanes = [](Isa isa) {
        return isa == Isa::avx512 ? 64 : isa == Isa::avx2 ? 32 : isa == Isa::baseline ? 0 : 16;
    };
    for (const Isa isa : available_isas()) {
        INFO(name_of(isa));
        const LaneKernels kernels = lane_kernels(isa);
        CHECK(kernels.on8.lanes == lanes(isa));
        CHECK(kernels.on16.lanes == lanes(isa) / 2);
        CHECK(kernels.on32.lanes == lanes(isa) / 4);
        CHECK(kernels.differences.lanes == lanes(isa));
        const bool there = isa != Isa::baseline;
        CHECK((kernels.on8.fill != nullptr) == there);
        CHECK((kernels.on16.fill != nullptr) == there);
        CHECK((kernels.on32.fill != nullptr) == there);
        CHECK((kernels.differences.fill != nullptr) == there);
        CHECK((kernels.pack != nullptr) == there);
    }
}

TEST_CASE("an instruction set is taken by name, and refused where it is unknown or missing") {
    CHECK(chosen_isa() == available_isas().back());
    const auto chosen = [](const char* name) {
        ::setenv("SPILLWAY_ISA", name, 1);
        std::string result;
        try {
            result = name_of(chosen_isa());
        } catch (const Error& error) {
            result = error.code() == ErrorCode::usage ? std::string("refused: ") + error.what() : "";
        }
        ::unsetenv("SPILLWAY_ISA");
        return result;
    };
    for (const Isa isa : available_isas()) CHECK(chosen(std::string(name_of(isa)).c_str()) == name_of(isa));
    CHECK(chosen("") == name_of(available_isas().back()));
    CHECK_THAT(chosen("mmx"), Catch::StartsWith("refused") && Catch::Contains("SPILLWAY_ISA=mmx"));
#if defined(__x86_64__)
    CHECK_THAT(chosen("neon"), Catch::StartsWith("refused") && Catch::Contains("baseline"));
#endif
}

TEST_CASE("results without room and pairs too long are refused before anything is scored") {
    const std::vector<SequencePair> pairs(2, {"ACGT", "ACGT"});
    std::vector<AlignmentEnd> one(1), two(2);
    std::vector<Alignment> aligned(1);
    CHECK_THROWS_AS(score(pairs, {}, Span::local, one), Error);
    CHECK_THROWS_AS(align(pairs, {}, Span::local, aligned), Error);
    CHECK_THROWS_AS(score(pairs, {.match = 0}, Span::local, two), Error);
    const std::string huge(20000, 'A');
    const std::vector<SequencePair> large{{"ACGT", "ACGT"}, {huge, huge}};
    CHECK_THROWS_AS(score(large, {}, Span::local, two), Error);
    CHECK(two[0] == AlignmentEnd{});
}

TEST_CASE("whole queries that lose anything are scored up to the greatest difference that 8 bits hold") {
    Pairs random(59);
    const Scores schemes[] = {
        {.match = 101, .mismatch = -127, .unknown = -103, .gap_open = 77, .gap_extend = 77}, // match + 2 gap_open: 255
        {.match = 102, .mismatch = -127, .unknown = -103, .gap_open = 77, .gap_extend = 77}, // 256
        {.match = 127, .mismatch = -1, .unknown = 0, .gap_open = 64, .gap_extend = 1},       // 255
        {.match = 1, .mismatch = -127, .unknown = -127, .gap_open = 127, .gap_extend = 1},   // 255
        {.match = 40, .mismatch = -60, .unknown = 0, .gap_open = 80, .gap_extend = 21}};
    for (const Scores& scores : schemes) {
        for (const std::size_t longest : {9UL, 70UL, 200UL}) {
            Texts texts;
            for (int k = 0; k < 130; ++k)
                texts.texts.push_back({random.bases(1 + random.under(longest), "ACGTN"), "", ""});
            for (Pair& pair : texts.texts) pair.target = random.bases(1 + random.under(2 * longest), "ACGTN");
            check_every_isa(texts, scores, Span::query);
        }
    }
}

/// Batches of random pairs against the oracle, each scored and aligned by every ISA.
void check_random_pairs(std::size_t count, std::uint64_t seed) {
    Pairs random(seed);
    while (count > 0) {
        Texts texts;
        const std::size_t some = std::min<std::size_t>(count, 1 + random.under(400));
        const std::size_t longest = 20 + random.under(60);
        for (std::size_t k = 0; k < some; ++k) texts.texts.push_back(random.next(longest));
        count -= some;
        const Scores scores = random.any_scores();
        check_every_isa(texts, scores, random.under(2) == 0 ? Span::local : Span::query);
    }
}

TEST_CASE("two hundred thousand random pairs are scored and aligned as the oracle does") {
    check_random_pairs(200'000, 60);
}

TEST_CASE("ten million random pairs are scored and aligned as the oracle does", "[.long]") {
    for (std::uint64_t million = 1; million <= 10; ++million) {
        DYNAMIC_SECTION("million " << million) {
            check_random_pairs(1'000'000, 60 + million);
        }
    }
}

} // namespace
} // namespace spillway
