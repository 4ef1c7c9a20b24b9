// How fast are reads aligned to haplotypes? Score and end, then begin and CIGAR text too, on one thread, beside SSW,
// parasail, edlib and WFA2: the same pairs, interleaved, CPU time, best of several rounds. Beside them the bound: what
// the recurrence's vector operations alone take at that time. Its time over Spillway's is how much of it is reached.
//
//     spillway-bench-align [--pairs 20000] [--rounds 5] [--query 150 --target 400]
// Prints Markdown tables; exits 1 if any score differs from parasail's of the same span. Reads that each have a
// deletion cannot be claimed without a matrix: there the lanes do all the work, and their share of the bound is seen.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <random>
#include <string>

#include "baselines/aligner.hpp"

namespace bench {
namespace {

/// Of this thread: what others run on the machine meanwhile counts little.
double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Settings {
    std::size_t pairs = 20'000, rounds = 5, query = 0, target = 0;
};

/// Reads from random haplotypes.
class Reads {
public:
    /// One of eight errors is an insertion or a deletion of 1 to 10 bases, the others are mismatches.
    Reads(std::size_t count, std::size_t query, std::size_t target, double error_rate, std::size_t of_one_target = 1,
          bool each_with_deletion = false)
        : random_(7), each_with_deletion_(each_with_deletion) {
        for (std::size_t i = 0; i < count; ++i) {
            if (i % of_one_target == 0) targets_.push_back(bases(target));
            queries_.push_back(read(targets_.back(), query, error_rate));
        }
        for (std::size_t i = 0; i < count; ++i) pairs_.push_back({queries_[i], targets_[i / of_one_target]});
    }
    [[nodiscard]] std::span<const spillway::SequencePair> pairs() const { return pairs_; }

private:
    std::string bases(std::size_t length) {
        std::string text;
        for (std::size_t i = 0; i < length; ++i) text += "ACGT"[random_() % 4];
        return text;
    }
    std::string read(const std::string& target, std::size_t length, double error_rate) {
        std::string text;
        std::size_t at = random_() % (target.size() - length + 1);
        bool deleted = !each_with_deletion_;
        while (text.size() < length) {
            if (!deleted && text.size() >= length / 2) {
                ++at;
                deleted = true;
            }
            const bool error = static_cast<double>(random_()) < error_rate * 0x1p64;
            const std::size_t kind = error ? random_() % 16 : 16, size = 1 + random_() % 10;
            if (kind == 0) {
                text += bases(size);
            } else if (kind == 1) {
                at += size;
            } else {
                const char base = at < target.size() ? target[at++] : "ACGT"[random_() % 4];
                text += kind < 16 ? (base == 'A' ? 'C' : 'A') : base;
            }
        }
        text.resize(length);
        return text;
    }

    std::mt19937_64 random_;
    bool each_with_deletion_;
    std::vector<std::string> queries_, targets_;
    std::vector<spillway::SequencePair> pairs_;
};

class Spillway : public Aligner {
public:
    /// isa: as in SPILLWAY_ISA, or nullptr: what it says.
    Spillway(std::string name, const spillway::Scores& scores, spillway::Span span, bool with_cigar,
             const char* isa = nullptr)
        : Aligner(span), name_(std::move(name)), scores_(scores), with_cigar_(with_cigar), isa_(isa) {}
    [[nodiscard]] std::string name() const override { return name_; }
    void align(std::span<const spillway::SequencePair> pairs) override {
        const char* const chosen = std::getenv("SPILLWAY_ISA");
        const std::string before = chosen == nullptr ? "" : chosen;
        if (isa_ != nullptr) ::setenv("SPILLWAY_ISA", isa_, 1);
        align_or_score(pairs);
        if (isa_ != nullptr) ::setenv("SPILLWAY_ISA", before.c_str(), 1);
    }

private:
    void align_or_score(std::span<const spillway::SequencePair> pairs) {
        if (with_cigar_) {
            alignments_.resize(pairs.size());
            spillway::align(pairs, scores_, span(), alignments_);
            for (const auto& alignment : alignments_) {
                found_scores.push_back(alignment.score);
                found_cigars.push_back(spillway::to_string(alignment.cigar));
            }
        } else {
            ends_.resize(pairs.size());
            spillway::score(pairs, scores_, span(), ends_);
            for (const auto& end : ends_) found_scores.push_back(end.score);
        }
    }

    std::string name_;
    spillway::Scores scores_;
    bool with_cigar_;
    const char* isa_;
    std::vector<spillway::Alignment> alignments_;
    std::vector<spillway::AlignmentEnd> ends_;
};

/// Seconds of each aligner for all pairs: of each part of them, the best round.
std::vector<double> measure(Aligners& aligners, std::span<const spillway::SequencePair> pairs, std::size_t rounds) {
    constexpr std::size_t part = 512;
    std::vector<double> total(aligners.size());
    for (std::size_t first = 0; first < pairs.size(); first += part) {
        const auto some = pairs.subspan(first, std::min(part, pairs.size() - first));
        std::vector<double> best(aligners.size(), std::numeric_limits<double>::infinity());
        for (std::size_t round = 0; round < rounds; ++round) {
            for (std::size_t turn = 0; turn < aligners.size(); ++turn) {
                const std::size_t k = (turn + round) % aligners.size();
                aligners[k]->found_scores.resize(first);
                aligners[k]->found_cigars.clear();
                const double begin = cpu_seconds();
                aligners[k]->align(some);
                best[k] = std::min(best[k], (cpu_seconds() - begin));
            }
        }
        for (std::size_t k = 0; k < aligners.size(); ++k) total[k] += best[k];
    }
    return total;
}

/// Prints the table; whether every score equals parasail's of the same span, where it is there.
bool report(const Aligners& aligners, const std::vector<double>& seconds, double cells) {
    std::printf("| | GCUPS | us a pair | times Spillway's time |\n|---|---|---|---|\n");
    const auto pairs = static_cast<double>(aligners[0]->found_scores.size());
    for (std::size_t k = 0; k < aligners.size(); ++k) {
        std::printf("| %s | %.1f | %.2f | %.2f |\n", aligners[k]->name().c_str(), cells / seconds[k] * 1e-9,
                    seconds[k] / pairs * 1e6, seconds[k] / seconds[0]);
    }
    bool equal = true;
    for (const auto& aligner : aligners) {
        const auto reference = std::find_if(aligners.begin(), aligners.end(), [&](const auto& a) {
            return a->span() == aligner->span() && a->name().rfind("parasail", 0) == 0;
        });
        for (std::size_t i = 0; reference != aligners.end() && i < aligner->found_scores.size(); ++i) {
            const std::int32_t score = aligner->found_scores[i], other = (*reference)->found_scores[i];
            if (score == std::numeric_limits<std::int32_t>::min() || score == other) continue;
            std::printf("\n%s scores pair %zu %d, parasail %d\n", aligner->name().c_str(), i, score, other);
            equal = false;
            break;
        }
    }
    return equal;
}

/// All ways to align; the first is what the others are compared with.
Aligners all_aligners(const spillway::Scores& scores, bool with_cigar) {
    Aligners all;
    all.push_back(std::make_unique<Spillway>("Spillway, local", scores, spillway::Span::local, with_cigar));
    all.push_back(std::make_unique<Spillway>("Spillway, whole query", scores, spillway::Span::query, with_cigar));
#if defined(__x86_64__)
    all.push_back(
        std::make_unique<Spillway>("Spillway, local, SSE4", scores, spillway::Span::local, with_cigar, "sse4"));
    if (__builtin_cpu_supports("avx512bw")) {
        all.push_back(
            std::make_unique<Spillway>("Spillway, local, AVX2", scores, spillway::Span::local, with_cigar, "avx2"));
    }
#endif
#if defined(BENCH_SSW)
    add_ssw(all, scores, with_cigar);
#endif
#if defined(BENCH_PARASAIL)
    add_parasail(all, scores, with_cigar);
#endif
#if defined(BENCH_EDLIB)
    add_edlib(all, with_cigar);
#endif
#if defined(BENCH_WFA2)
    add_wfa2(all, scores, with_cigar);
#endif
    return all;
}

/// What a table compares.
struct Task {
    const char* title;
    bool with_cigar = false;
    std::size_t lane_bytes = 1;
    std::size_t of_one_target = 1; ///< Reads.
    bool each_with_deletion = false;
};

bool table(const Task& task, std::size_t query, std::size_t target, double error_rate, const spillway::Scores& scores,
           const Settings& settings) {
    std::printf("\n**%s**, %zu pairs of %zu x %zu, %.1f%% errors, scores %d/%d/%d/%d\n\n", task.title, settings.pairs,
                query, target, error_rate * 100, scores.match, scores.mismatch, scores.gap_open, scores.gap_extend);
    const Reads reads(settings.pairs, query, target, error_rate, task.of_one_target, task.each_with_deletion);
    Aligners aligners = all_aligners(scores, task.with_cigar);
    if (!task.with_cigar) add_bound(aligners, task.lane_bytes, task.of_one_target > 1);
    const auto seconds = measure(aligners, reads.pairs(), settings.rounds);
    return report(aligners, seconds, static_cast<double>(settings.pairs * query * target));
}

/// What a pair costs where there are few.
void print_batches(const spillway::Scores& scores) {
    std::printf("\n**Few pairs**, 150 x 400, 1%% errors, local, us a pair\n\n| pairs | score and end | with CIGAR |\n"
                "|---|---|---|\n");
    const Reads reads(10'000, 150, 400, 0.01);
    for (const std::size_t count : {1UL, 7UL, 63UL, 64UL, 65UL, 10000UL}) {
        const auto pairs = reads.pairs().first(count);
        std::vector<spillway::AlignmentEnd> ends(count);
        std::vector<spillway::Alignment> alignments(count);
        double score = 1e9, align = 1e9;
        for (std::size_t round = 0; round < 10 + 2000 / count; ++round) {
            double begin = cpu_seconds();
            spillway::score(pairs, scores, spillway::Span::local, ends);
            score = std::min(score, (cpu_seconds() - begin));
            begin = cpu_seconds();
            spillway::align(pairs, scores, spillway::Span::local, alignments);
            align = std::min(align, (cpu_seconds() - begin));
        }
        std::printf("| %zu | %.2f | %.2f |\n", count, score / static_cast<double>(count) * 1e6,
                    align / static_cast<double>(count) * 1e6);
    }
}

/// Rivals that this program was built without.
void print_missing() {
#if !defined(BENCH_SSW)
    std::printf("Built without SSW (libssw-dev): it is left out.\n");
#endif
#if !defined(BENCH_PARASAIL)
    std::printf("Built without parasail (libparasail-dev): it is left out, and no score is compared.\n");
#endif
#if !defined(BENCH_EDLIB)
    std::printf("Built without edlib (libedlib-dev): it is left out.\n");
#endif
#if !defined(BENCH_WFA2)
    std::printf("Built without WFA2 (libwfa2-dev): it is left out.\n");
#endif
}

int run(const Settings& settings) {
    print_missing();
    const spillway::Scores scores;
    // Nothing divides these, and 8 bits do not hold what a few rows add.
    const spillway::Scores large{.match = 40, .mismatch = -60, .unknown = -60, .gap_open = 80, .gap_extend = 21};
    const Task tasks[] = {{.title = "Score and end"},
                          {.title = "Score and end, 40 reads a target", .of_one_target = 40},
                          {.title = "Score and end, each read with a deletion", .each_with_deletion = true},
                          {.title = "With CIGAR", .with_cigar = true}};
    const Task tasks16[] = {
        {.title = "Score and end, 16 bits", .lane_bytes = 2},
        {.title = "Score and end, 16 bits, 40 reads a target", .lane_bytes = 2, .of_one_target = 40},
        {.title = "Score and end, 16 bits, each read with a deletion", .lane_bytes = 2, .each_with_deletion = true}};
    bool equal = true;
    for (const auto& [query, target] : {std::pair<std::size_t, std::size_t>{150, 400}, {250, 600}, {100, 200}}) {
        if (settings.query != 0 && (settings.query != query || settings.target != target)) continue;
        for (const double errors : {0.002, 0.01}) {
            for (const Task& task : tasks) equal = table(task, query, target, errors, scores, settings) && equal;
            for (const Task& task : tasks16) equal = table(task, query, target, errors, large, settings) && equal;
        }
    }
    print_batches(scores);
    return equal ? 0 : 1;
}

} // namespace
} // namespace bench

int main(int argc, char** argv) {
    bench::Settings settings;
    for (int i = 1; i + 1 < argc; i += 2) {
        std::size_t* value = std::strcmp(argv[i], "--pairs") == 0    ? &settings.pairs
                             : std::strcmp(argv[i], "--rounds") == 0 ? &settings.rounds
                             : std::strcmp(argv[i], "--query") == 0  ? &settings.query
                             : std::strcmp(argv[i], "--target") == 0 ? &settings.target
                                                                     : nullptr;
        const long given = std::atol(argv[i + 1]);
        if (value == nullptr || given <= 0) {
            std::fprintf(stderr, "%s [--pairs N] [--rounds N] [--query N --target N]\n", argv[0]);
            return 2;
        }
        *value = static_cast<std::size_t>(given);
    }
    return bench::run(settings);
}
