// How fast are reads aligned to haplotypes? Score and end, then begin and CIGAR text too, on one thread, beside SSW,
// parasail, edlib and WFA2: the same pairs, interleaved, CPU time, best of several rounds. Beside them the bound: what
// the recurrence's vector operations alone take at that time. Its time over Spillway's is how much of it is reached.
//
//     spillway-bench-align [--pairs 20000] [--rounds 5] [--query 150 --target 400]
//                              --query and --target: one of the shapes alone, 150 x 400, 250 x 600 or 100 x 200
//
// Prints Markdown tables; exits 1 if any score differs from parasail's of the same span. Reads that each have a
// deletion cannot be claimed without a matrix: there the lanes do all the work, and their share of the bound is seen.
// Beneath a table stands which of its goals are met. Where SPILLWAY_ISA forces an instruction set, Spillway is not
// measured with others.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <random>
#include <string>

#include "arguments.hpp"
#include "baselines/aligner.hpp"
#include "cpu_time.hpp"
#include "goals.hpp"

namespace bench {
namespace {

constexpr char usage[] = "spillway-bench-align [--pairs N] [--rounds N] [--query 150 --target 400]";

struct Shape {
    std::uint64_t query, target;
    bool operator==(const Shape&) const = default;
};
constexpr Shape main_shape{150, 400};
constexpr Shape shapes[] = {main_shape, {250, 600}, {100, 200}};

struct Settings {
    std::uint64_t pairs = 20'000, rounds = 5;
    Shape only{0, 0}; ///< Zeros: all of them.
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
    const char* const forced = std::getenv("SPILLWAY_ISA");
    if (forced == nullptr || *forced == '\0') {
        all.push_back(
            std::make_unique<Spillway>("Spillway, local, SSE4", scores, spillway::Span::local, with_cigar, "sse4"));
        if (__builtin_cpu_supports("avx512bw")) {
            all.push_back(
                std::make_unique<Spillway>("Spillway, local, AVX2", scores, spillway::Span::local, with_cigar, "avx2"));
        }
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

/// The time of `of` over that of `over`, so how many times as fast `over` is, shall be at least so much. `over` is a
/// name, `of` how names begin: meant is the fastest of those, of the same span.
struct Goal {
    std::string_view of, over;
    double at_least;        ///< Of main_shape;
    double elsewhere = 0.8; ///< and this part of it of the other shapes.
};
// Where the lanes do all the work: elsewhere it is the fast pass that is compared. Without SPILLWAY_ISA "Spillway, local"
// is of the widest instruction set here.
constexpr Goal lane_goals[] = {{"SSW", "Spillway, local", 10},
                               {"parasail", "Spillway, local", 5},
                               {"bound", "Spillway, local", 0.85},
                               {"Spillway, local", "Spillway, local, AVX2", 0.7, 1},
                               {"Spillway, local", "Spillway, local, SSE4", 0.3, 1}};
constexpr Goal cigar_goals[] = {{"SSW", "Spillway, local", 14}, {"WFA2", "Spillway, whole query", 1.4}};

/// What a table compares.
struct Task {
    const char* title;
    bool with_cigar = false;
    std::size_t lane_bytes = 1;
    std::size_t of_one_target = 1; ///< Reads.
    bool each_with_deletion = false;
    std::span<const Goal> goals = {};
};

void print_goal(const Goal& goal, const std::string& where, double part, const Aligners& aligners,
                const std::vector<double>& seconds) {
    std::size_t over = 0;
    while (over < aligners.size() && aligners[over]->name() != goal.over) ++over;
    std::size_t of = aligners.size();
    for (std::size_t k = 0; k < aligners.size() && over < aligners.size(); ++k) {
        if (aligners[k]->span() != aligners[over]->span() || !aligners[k]->name().starts_with(goal.of)) continue;
        if (of == aligners.size() || seconds[k] < seconds[of]) of = k;
    }
    const bool there = of < aligners.size();
    const std::string rival = there ? aligners[of]->name() : std::string(goal.of);
    std::printf("goal: %s: time of %s over that of %s, %s\n", where.c_str(), rival.c_str(),
                std::string(goal.over).c_str(),
                there ? judged(seconds[of] / seconds[over], goal.at_least * part).c_str()
                      : "left out: not both are in this run");
}

bool table(const Task& task, const Shape& shape, double error_rate, const spillway::Scores& scores,
           const Settings& settings) {
    const auto& [query, target] = shape;
    char where[64];
    std::snprintf(where, sizeof where, "%llu x %llu, %.1f%% errors", static_cast<unsigned long long>(query),
                  static_cast<unsigned long long>(target), error_rate * 100);
    std::printf("\n**%s**, %llu pairs of %s, scores %d/%d/%d/%d\n\n", task.title,
                static_cast<unsigned long long>(settings.pairs), where, scores.match, scores.mismatch, scores.gap_open,
                scores.gap_extend);
    const Reads reads(settings.pairs, query, target, error_rate, task.of_one_target, task.each_with_deletion);
    Aligners aligners = all_aligners(scores, task.with_cigar);
    if (!task.with_cigar) add_bound(aligners, task.lane_bytes, task.of_one_target > 1);
    const auto seconds = measure(aligners, reads.pairs(), settings.rounds);
    const bool equal = report(aligners, seconds, static_cast<double>(settings.pairs * query * target));
    if (!task.goals.empty()) std::printf("\n");
    for (const Goal& goal : task.goals) {
        print_goal(goal, std::string(task.title) + ", " + where, shape == main_shape ? 1 : goal.elsewhere, aligners,
                   seconds);
    }
    return equal;
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
                          {.title = "With CIGAR", .with_cigar = true, .goals = cigar_goals}};
    const Task tasks16[] = {
        {.title = "Score and end, 16 bits", .lane_bytes = 2},
        {.title = "Score and end, 16 bits, 40 reads a target", .lane_bytes = 2, .of_one_target = 40},
        {.title = "Score and end, 16 bits, each read with a deletion",
         .lane_bytes = 2,
         .each_with_deletion = true,
         .goals = lane_goals}};
    bool equal = true;
    for (const Shape& shape : shapes) {
        if (settings.only != Shape{0, 0} && settings.only != shape) continue;
        for (const double errors : {0.002, 0.01}) {
            for (const Task& task : tasks) equal = table(task, shape, errors, scores, settings) && equal;
            for (const Task& task : tasks16) equal = table(task, shape, errors, large, settings) && equal;
        }
    }
    print_batches(scores);
    return equal ? 0 : 1;
}

} // namespace
} // namespace bench

int main(int argc, char** argv) {
    bench::Settings settings;
    bench::Shape& only = settings.only;
    bench::read_options(argc, argv, bench::usage,
                        {{"--pairs", &settings.pairs},
                         {"--rounds", &settings.rounds},
                         {"--query", &only.query},
                         {"--target", &only.target}});
    const bool known = std::find(std::begin(bench::shapes), std::end(bench::shapes), only) != std::end(bench::shapes);
    if (!known && only != bench::Shape{0, 0}) {
        bench::refuse("--query and --target go together: 150 and 400, 250 and 600, or 100 and 200", bench::usage);
    }
    return bench::run(settings);
}
