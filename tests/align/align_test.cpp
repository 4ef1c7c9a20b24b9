#include <catch2/catch.hpp>

#include "align/limits.hpp"
#include "forms.hpp"
#include "pairs.hpp"
#include "spillway/error.hpp"

namespace spillway {
namespace {

std::string mutated(Pairs& random, std::string read, std::size_t mismatches) {
    for (std::size_t k = 0; k < mismatches; ++k) {
        char& base = read[random.under(read.size())];
        base = base == 'A' ? 'C' : 'A';
    }
    return read;
}

void check_batch(const std::vector<std::string>& reads, const std::string& target, const Scores& scores, Span span) {
    const std::vector<std::string_view> queries(reads.begin(), reads.end());
    std::vector<Alignment> out(queries.size());
    align(queries, target, scores, span, out);
    for (std::size_t i = 0; i < reads.size(); ++i) {
        INFO("query " << reads[i] << "\ntarget " << target << "\n" << describe(scores, span));
        REQUIRE(describe(out[i]) == describe(align_scalar(queries[i], target, scores, span)));
        REQUIRE(score_again(out[i], queries[i], target, scores) == out[i].score);
    }
}

TEST_CASE("a batch gives the oracle's alignments of pairs of every awkward kind") {
    Pairs random(1);
    for (int round = 0; round < 2500; ++round) {
        const Pair pair = random.next(round % 10 == 0 ? 300 : 120);
        check_batch({pair.query}, pair.target, random.any_scores(), random.under(2) == 0 ? Span::local : Span::query);
    }
}

TEST_CASE("a batch gives the oracle's alignments of reads with a few errors on their haplotype") {
    Pairs random(2);
    for (int round = 0; round < 30; ++round) {
        std::string target = random.bases(250 + random.under(200), "ACGT");
        if (round % 3 == 1) target.replace(100, 60, random.bases(60, "AC"));
        if (round % 3 == 2) target += target.substr(0, 120); // reads that lie on two places
        std::vector<std::string> reads;
        for (std::size_t k = 0; k < 16; ++k) {
            std::string read = target.substr(random.under(target.size() - 150), 150);
            read = mutated(random, read, k % 6);
            if (k % 5 == 4) random.edit(read);
            if (k % 7 == 6) read.erase(10 + random.under(130), 1 + random.under(40));
            reads.push_back(read);
        }
        const Scores scores = round % 2 == 0 ? Scores{} : random.scores();
        check_batch(reads, target, scores, round % 5 == 0 ? Span::local : Span::query);
    }
}

TEST_CASE("mismatches near a read's ends and in repeats give way to gaps where these score the same or better") {
    Pairs random(3);
    for (int round = 0; round < 12000; ++round) {
        // Tandem repeats near the read's ends, their copies a little different, invite gaps of their unit and clips.
        const std::string_view alphabet = round % 2 == 0 ? "ACGT" : "AC";
        std::string repeat;
        const std::string unit = random.bases(1 + random.under(round % 5 == 0 ? 24 : 4), alphabet);
        for (std::size_t k = 0, times = 2 + random.under(5); k < times; ++k) {
            repeat += random.under(3) == 0 ? mutated(random, unit, 1) : unit;
        }
        const std::string target = random.bases(random.under(20), alphabet) + repeat +
                                   random.bases(20 + random.under(30), "ACGT") + repeat +
                                   random.bases(random.under(20), alphabet);
        std::string read = target.substr(random.under(30), 40 + random.under(40));
        if (random.under(6) == 0) read = random.bases(1 + random.under(3), alphabet) + read;
        for (std::size_t k = 0, errors = 1 + random.under(4); k < errors; ++k) {
            const std::size_t at = std::min(random.under(14), read.size() - 1);
            read[random.under(2) == 0 ? at : read.size() - 1 - at] = "ACGT"[random.under(4)];
        }
        check_batch({read}, target, round % 2 == 0 ? Scores{} : random.scores(),
                    round % 3 == 0 ? Span::local : Span::query);
    }
}

TEST_CASE("of two places with as many mismatches the first is taken, wherever the mismatches are") {
    Pairs random(6);
    for (int round = 0; round < 300; ++round) {
        const std::string read = random.bases(60 + random.under(60), "ACGT");
        const std::size_t mismatches = 1 + random.under(3);
        const std::string target = random.bases(random.under(9), "ACGT") + mutated(random, read, mismatches) +
                                   random.bases(random.under(9), "ACGT") + mutated(random, read, mismatches);
        check_batch({read}, target, {}, round % 2 == 0 ? Span::local : Span::query);
    }
}

TEST_CASE("a read that hangs over an end of its haplotype by a few bases is aligned as the oracle does") {
    Pairs random(7);
    for (int round = 0; round < 1500; ++round) {
        const std::string whole = random.bases(160, round % 2 == 0 ? "ACGT" : "AC");
        const std::size_t over = 1 + random.under(6);
        const std::string read = mutated(random, whole.substr(0, 80), random.under(4));
        const std::string target = round % 4 < 2 ? whole.substr(over) : whole.substr(0, 80 - over);
        check_batch({read}, target, round % 3 == 0 ? random.scores() : Scores{},
                    random.under(2) == 0 ? Span::local : Span::query);
    }
}

TEST_CASE("a read that lies on several places is claimed at the first") {
    const std::string read = "ACGTTGCATTGACCATGCAA";
    const std::string target = "GG" + read + "TTT" + read + "CC";
    for (const Span span : {Span::local, Span::query}) {
        CHECK(describe(align(read, target, {}, span)) == "80 q0-20 t2-22 20M");
    }
}

TEST_CASE("scores whose sums leave 16 bits are summed in 32") {
    Pairs random(4);
    const std::string target = random.bases(300, "ACGT");
    const Scores scores{.match = 1000, .mismatch = -1500, .unknown = -1500, .gap_open = 2000, .gap_extend = 500};
    std::string read = target.substr(40, 200);
    read.erase(90, 5);
    const Alignment aligned = align(read, target, scores, Span::query);
    CHECK(aligned.score == 195 * 1000 - 4000);
    CHECK(aligned.score > 32767);
    check_batch({read, mutated(random, read, 4), random.bases(200, "ACGT")}, target, scores, Span::local);
}

TEST_CASE("a long read is aligned past the reach of 16 bits") {
    Pairs random(5);
    const std::string target = random.bases(11000, "ACGT");
    std::string read = mutated(random, target.substr(300, 10000), 3);
    read.erase(5000, 2);
    const Alignment aligned = align(read, target, {}, Span::query);
    CHECK(aligned.score > 9998 * 4 - 60);
    CHECK(score_again(aligned, read, target, {}) == aligned.score);
    CHECK(aligned.target_begin == 300);
    CHECK(aligned.target_end == 10300);
}

TEST_CASE("an output's former content does not matter") {
    std::vector<Alignment> out(2);
    out[0] = align("ACGTACGTTT", "ACGTACGTTTG", {}, Span::local);
    out[1] = out[0];
    const std::vector<std::string_view> queries{"AAA", ""};
    align(queries, "CCC", {}, Span::local, out);
    CHECK(out[0] == Alignment{});
    CHECK(out[1] == Alignment{});
}

TEST_CASE("scores and lengths out of range are refused with what to do") {
    const auto refuses = [](const Scores& scores) {
        try {
            (void)align("ACGT", "ACGT", scores, Span::local);
        } catch (const Error& error) {
            return error.code() == ErrorCode::usage;
        }
        return false;
    };
    CHECK(refuses({.match = 0}));
    CHECK(refuses({.match = -1}));
    CHECK(refuses({.mismatch = 1}));
    CHECK(refuses({.unknown = 1}));
    CHECK(refuses({.gap_open = -1}));
    CHECK(refuses({.gap_extend = -1}));
    CHECK(refuses({.gap_extend = 1 << 28}));
    CHECK_FALSE(refuses({.gap_extend = 0}));
    CHECK_FALSE(refuses({.gap_open = 1, .gap_extend = 2}));
    CHECK(refuses({.match = 1 << 28}));
    CHECK(refuses({.mismatch = std::numeric_limits<int>::min()}));
    CHECK_FALSE(refuses({.match = 1 << 25}));

    CHECK_NOTHROW(check_lengths(16352, 16352, {}));
    CHECK_THROWS_WITH(check_lengths(16353, 16352, {}),
                      Catch::Contains("16353 x 16352 bases") && Catch::Contains("2^28"));
    CHECK_NOTHROW(check_lengths(0, (1 << 23) - 32, {}));
    CHECK_THROWS_AS(check_lengths(0, (1 << 23) - 31, {}), Error);
    CHECK_THROWS_WITH(check_lengths(100, 100, {.match = 1 << 22}), Catch::Contains("divide the scores"));
    const std::string long_query(20000, 'A');
    CHECK_THROWS_AS(align(long_query, long_query, {}, Span::local), Error);
    std::vector<Alignment> out(1);
    const std::vector<std::string_view> queries{"A", "C"};
    CHECK_THROWS_AS(align(queries, "ACGT", {}, Span::local, out), Error);
    CHECK_NOTHROW(align({}, "ACGT", {}, Span::local, {}));
}

TEST_CASE("more pairs than can be numbered are refused before any is looked at") {
    const SequencePair pair{"A", "C"};
    const std::string_view query = "A";
    Alignment alignment;
    AlignmentEnd end;
    constexpr std::size_t many = std::size_t{1} << 32; // none of them there but the first
    const auto message = [](const auto& call) -> std::string {
        try {
            call();
        } catch (const Error& error) {
            return error.code() == ErrorCode::usage ? error.what() : "";
        }
        return "nothing refused";
    };
    const std::string too_many = "4294967296 pairs; at most 2^32 - 1 are possible, so give them in parts";
    CHECK_THAT(message([&] { align({&pair, many}, {}, Span::local, {&alignment, many}); }), Catch::Contains(too_many));
    CHECK_THAT(message([&] {
                   align({&query, many}, "C", {}, Span::local, {&alignment, many});
               }),
               Catch::Contains(too_many));
    CHECK_THAT(message([&] { score({&pair, many}, {}, Span::local, {&end, many}); }), Catch::Contains(too_many));
    const std::string no_room = "1 pairs but room for 2 results; give one for each pair";
    CHECK_THAT(message([&] { align({&pair, 1}, {}, Span::local, {&alignment, 2}); }), Catch::Contains(no_room));
    CHECK_THAT(message([&] { align({&query, 1}, "C", {}, Span::local, {&alignment, 2}); }), Catch::Contains(no_room));
    CHECK_THAT(message([&] { score({&pair, 1}, {}, Span::local, {&end, 2}); }), Catch::Contains(no_room));
}

TEST_CASE("where opening a gap costs no more than extending it, its cost of extension makes no difference") {
    Pairs random(8);
    for (int round = 0; round < 300; ++round) {
        const Pair pair = random.next(60);
        Scores scores = random.scores();
        scores.gap_extend = scores.gap_open;
        const Span span = random.under(2) == 0 ? Span::local : Span::query;
        const std::string expected = describe(align_scalar(pair.query, pair.target, scores, span));
        scores.gap_extend += static_cast<int>(1 + random.under(1000));
        INFO(pair.query << "\n" << pair.target << "\n" << describe(scores, span));
        REQUIRE(describe(align_scalar(pair.query, pair.target, scores, span)) == expected);
        REQUIRE(describe(align(pair.query, pair.target, scores, span)) == expected);
    }
}

TEST_CASE("a CIGAR is written as length and letter") {
    const std::vector<CigarElement> cigar{6 << 4, 1 << 4 | 2, 12 << 4 | 1, 3 << 4 | 4};
    CHECK(to_string(cigar) == "6M1D12I3S");
    CHECK(to_string({}).empty());
}

} // namespace
} // namespace spillway
