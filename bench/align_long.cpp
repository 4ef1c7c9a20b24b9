// What does a CIGAR of a long pair cost, beside WFA2 and edlib?
//
// Pairs of 10 kb x 10 kb at 1% and at 5% errors: half of them mismatches, a quarter inserted and a quarter deleted
// bases, gaps of 1 to 4. The first and last 60 bases have none, so that the best alignment of any kind is the one from
// end to end and the rivals' global mode computes the same as Spillway's Span::query and Span::local. WFA2 is given the
// penalties that make its optimum ours; edlib counts edits, for reference. One thread, the contenders in turn, the
// fastest of several rounds each. Every score is compared, WFA2's after scoring its CIGAR with our scores: exits 1 on a
// difference.
//
//     spillway-bench-align-long [PAIRS=50] [BASES=10000] [ROUNDS=5]
#include <spillway/align.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
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

/// Of this thread, so that what else runs on the machine matters less.
double cpu_milliseconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

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
    for (const auto& [name, span] : {std::pair{"**Spillway**, whole query", spillway::Span::query},
                                     std::pair{"**Spillway**, local", spillway::Span::local}}) {
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

/// False if two scores differ.
bool measure(double errors, std::size_t pairs, std::size_t bases, std::size_t rounds) {
    std::mt19937_64 random(static_cast<std::uint64_t>(errors * 1e6));
    std::vector<Pair> all;
    for (std::size_t i = 0; i < pairs; ++i) all.push_back(make_pair(random, bases, errors));
    std::vector<Contender> contending = contenders();
    for (std::size_t round = 0; round < rounds; ++round) {
        for (Contender& contender : contending) {
            contender.found.resize(pairs);
            const double start = cpu_milliseconds();
            for (std::size_t i = 0; i < pairs; ++i) contender.align(all[i], contender.found[i]);
            contender.fastest = std::min(contender.fastest, (cpu_milliseconds() - start) / static_cast<double>(pairs));
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
    return equal;
}

std::size_t number(int argc, char** argv, int at, std::size_t otherwise) {
    if (argc <= at) return otherwise;
    char* end = nullptr;
    const unsigned long long value = std::strtoull(argv[at], &end, 10);
    if (end == argv[at] || *end != '\0' || value == 0) {
        std::fprintf(stderr, "not a number above 0: %s\n", argv[at]);
        std::exit(2);
    }
    return value;
}

} // namespace

int main(int argc, char** argv) {
    const std::size_t pairs = number(argc, argv, 1, 50);
    const std::size_t bases = std::max<std::size_t>(number(argc, argv, 2, 10'000), 200);
    const std::size_t rounds = number(argc, argv, 3, 5);
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
