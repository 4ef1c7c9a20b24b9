// What does a CIGAR of a long pair cost, beside WFA2 and edlib?
//
// Pairs of 10 kb x 10 kb at 1% and at 5% errors: half of them mismatches, a quarter inserted and a quarter deleted
// bases, gaps of 1 to 4. The first and last 60 bases have none, so that the best alignment of any kind is the one from
// end to end and the rivals' global mode computes the same as Spillway's Span::query and Span::local. WFA2 is given the
// penalties that make its optimum ours; edlib counts edits, for reference. One thread, the contenders in turn, the
// fastest of several rounds each. Every score is compared, WFA2's after scoring its CIGAR with our scores: exits 1 on a
// difference. Beneath each table stands whether Spillway is slower than WFA2, which it shall not be.
//
//     spillway-bench-align-long [PAIRS=50] [BASES=10000] [ROUNDS=5]
#include "arguments.hpp"
#include "cpu_time.hpp"
#include "goals.hpp"

#include <spillway/align.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#ifdef BENCH_WFA2
#include <bindings/cpp/WFAligner.hpp>
#endif
#ifdef BENCH_EDLIB
#include <edlib.h>
#endif

namespace {

constexpr char usage[] = "spillway-bench-align-long [PAIRS=50] [BASES=10000] [ROUNDS=5]";

struct Pair {
    std::string query, target;
};

/// What one makes of a pair.
struct Found {
    std::int64_t score = 0; ///< 0: none that the others have,
    std::string operations; ///< or to be scored, when no time is taken: a letter a base, as WFA2 writes it.
};

struct Contender {
    std::string name;
    std::function<void(const Pair&, Found&)> align;
    double fastest = 1e30; ///< CPU ms a pair.
    std::vector<Found> found = {};
};

Pair make_pair(std::mt19937_64& random, std::size_t bases, double errors) {
    const auto under = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    const auto base = [&] { return "ACGT"[under(4)]; };
    constexpr std::size_t clean = 60;
    Pair pair;
    for (std::size_t i = 0; i < bases; ++i) pair.target += base();
    for (std::size_t i = 0; i < bases; ++i) {
        const bool error = i >= clean && i + clean < bases && static_cast<double>(under(1'000'000)) < errors * 1e6;
        if (!error || under(2) == 0) {
            const char same = pair.target[i];
            char put = same;
            while (error && put == same) put = base();
            pair.query += put;
        } else if (under(2) == 0) {
            for (std::size_t length = 1 + under(4); length > 0; --length) pair.query += base();
            pair.query += pair.target[i];
        } else {
            i += std::min(under(4), bases - clean - 1 - i);
        }
    }
    return pair;
}

/// What WFA2's CIGAR, a letter a base, scores with ours: 4/-6/8/2.
[[maybe_unused]] std::int64_t score_again(std::string_view operations) {
    std::int64_t score = 0;
    char before = 0;
    for (const char operation : operations) {
        if (operation == 'M') score += 4;
        if (operation == 'X') score -= 6;
        if (operation == 'I' || operation == 'D') score -= operation == before ? 2 : 8;
        before = operation;
    }
    return score;
}

std::vector<Contender> contenders() {
    std::vector<Contender> all;
    for (const auto& [name, span] : {std::pair{"Spillway, whole query", spillway::Span::query},
                                     std::pair{"Spillway, local", spillway::Span::local}}) {
        all.push_back({name, [span = span](const Pair& pair, Found& found) {
                           found.score = spillway::align(pair.query, pair.target, {}, span).score;
                       }});
    }
#ifdef BENCH_WFA2
    // Of a and b bases in all, each gap base and mismatch takes from match * (a + b) / 2: a mismatch 10, a gap of g
    // bases 6 + 4 g. Halved: 5, 3, 2.
    using wfa::WFAligner;
    for (const auto& [name, memory] :
         {std::pair{"WFA2, memory high", WFAligner::MemoryHigh}, std::pair{"WFA2, memory medium", WFAligner::MemoryMed},
          std::pair{"WFA2, memory ultralow", WFAligner::MemoryUltralow}}) {
        const auto aligner = std::make_shared<wfa::WFAlignerGapAffine>(5, 3, 2, WFAligner::Alignment, memory);
        aligner->setHeuristicNone();
        all.push_back({name, [aligner](const Pair& pair, Found& found) {
                           aligner->alignEnd2End(pair.query.data(), static_cast<int>(pair.query.size()),
                                                 pair.target.data(), static_cast<int>(pair.target.size()));
                           char* operations = nullptr;
                           int length = 0;
                           aligner->getAlignmentCigar(&operations, &length);
                           found.operations.assign(operations, static_cast<std::size_t>(length));
                       }});
    }
#endif
#ifdef BENCH_EDLIB
    all.push_back({"edlib, edits only", [](const Pair& pair, Found&) {
                       const EdlibAlignResult result =
                           edlibAlign(pair.query.data(), static_cast<int>(pair.query.size()), pair.target.data(),
                                      static_cast<int>(pair.target.size()),
                                      edlibNewAlignConfig(-1, EDLIB_MODE_NW, EDLIB_TASK_PATH, nullptr, 0));
                       edlibFreeAlignResult(result);
                   }});
#endif
    return all;
}

/// Each of Spillway's spans against the fastest form of WFA2.
void print_goals(const std::vector<Contender>& all, double errors) {
    const Contender* rival = nullptr;
    for (const Contender& each : all) {
        if (each.name.starts_with("WFA2") && (rival == nullptr || each.fastest < rival->fastest)) rival = &each;
    }
    std::printf("\n");
    for (const Contender& each : all) {
        if (!each.name.starts_with("Spillway")) continue;
        std::printf("goal: %g%% errors: time of %s over that of %s, %s\n", errors * 100,
                    rival == nullptr ? "WFA2" : rival->name.c_str(), each.name.c_str(),
                    rival == nullptr ? "left out: this program was built without it"
                                     : bench::judged(rival->fastest / each.fastest, 1).c_str());
    }
}

/// False if two scores differ.
bool measure(double errors, std::size_t pairs, std::size_t bases, std::size_t rounds) {
    std::mt19937_64 random(static_cast<std::uint64_t>(errors * 1e6));
    std::vector<Pair> all;
    for (std::size_t i = 0; i < pairs; ++i) all.push_back(make_pair(random, bases, errors));
    std::vector<Contender> contending = contenders();
    for (std::size_t round = 0; round < rounds; ++round) {
        for (Contender& contender : contending) {
            contender.found.resize(pairs);
            const double start = bench::cpu_seconds();
            for (std::size_t i = 0; i < pairs; ++i) contender.align(all[i], contender.found[i]);
            const double milliseconds = (bench::cpu_seconds() - start) * 1e3;
            contender.fastest = std::min(contender.fastest, milliseconds / static_cast<double>(pairs));
        }
    }
    std::printf(
        "\n%zu pairs of %zu bases, %g%% errors\n\n| | CPU ms a pair | of Spillway, whole query |\n|---|---:|---:|\n",
        pairs, bases, errors * 100);
    bool equal = true;
    for (Contender& contender : contending) {
        std::printf("| %s | %.3f | %.2f |\n", contender.name.c_str(), contender.fastest,
                    contender.fastest / contending[0].fastest);
        for (std::size_t i = 0; i < pairs; ++i) {
            Found& found = contender.found[i];
            if (!found.operations.empty()) found.score = score_again(found.operations);
            if (found.score == 0 || found.score == contending[0].found[i].score) continue;
            std::fprintf(stderr, "pair %zu: %s scores %lld, Spillway %lld\n", i, contender.name.c_str(),
                         static_cast<long long>(found.score), static_cast<long long>(contending[0].found[i].score));
            equal = false;
        }
    }
    print_goals(contending, errors);
    return equal;
}

} // namespace

int main(int argc, char** argv) {
    if (argc > 4) bench::refuse(std::string("one too many: ") + argv[4], usage);
    const auto given = [&](int at, std::size_t otherwise) {
        return at < argc ? bench::number<std::size_t>(argv[at], usage) : otherwise;
    };
    const std::size_t pairs = given(1, 50), bases = std::max<std::size_t>(given(2, 10'000), 200), rounds = given(3, 5);
#ifndef BENCH_WFA2
    std::printf("Built without WFA2 (libwfa2-dev): it is left out.\n");
#endif
#ifndef BENCH_EDLIB
    std::printf("Built without edlib (libedlib-dev): it is left out.\n");
#endif
    bool equal = true;
    for (const double errors : {0.01, 0.05}) equal = measure(errors, pairs, bases, rounds) && equal;
    return equal ? 0 : 1;
}
