// Random pairs, scored and aligned with every instruction set of this machine, against the oracle, and pairs long enough
// for wavefronts: without a test framework, so that neon.sh can build it for another machine. Lengths and batches lie at
// both sides of what registers hold, scores at both sides of what 8 and 16 bits hold.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "align/forms.hpp"
#include "align/isa.hpp"
#include "align/limits.hpp"
#include "align/pairs.hpp"
#include "align/scalar.hpp"
#include "align/score_pass.hpp"
#include "align/wavefront.hpp"

namespace {

/// About so many times as high, or as high as pairs of 1200 bases together allow, and without a common divisor.
spillway::Scores higher(spillway::Scores scores, int times) {
    const int largest = std::max({scores.match, -scores.mismatch, -scores.unknown, scores.gap_open, scores.gap_extend});
    times = static_cast<int>(std::min<std::int64_t>(times, spillway::max_sum / 1200 / (largest + 1)));
    return {scores.match * times + 1, scores.mismatch * times, scores.unknown * times, scores.gap_open * times + 2,
            scores.gap_extend * times};
}

} // namespace

int main(int argc, char** argv) {
    using namespace spillway;
    const std::size_t wanted = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
    Pairs random(70);
    std::size_t checked = 0, different = 0;
    while (checked < wanted) {
        constexpr std::size_t sizes[] = {1, 7, 63, 64, 65};
        constexpr int times[] = {1, 1, 100, 100'000};
        std::vector<Pair> texts;
        const std::size_t longest = random.under(4) == 0 ? 300 : 20 + random.under(120);
        for (std::size_t k = sizes[random.under(5)]; k > 0; --k) texts.push_back(random.next(longest));
        std::vector<SequencePair> pairs;
        for (const Pair& pair : texts) pairs.push_back({pair.query, pair.target});
        const int scale = times[random.under(4)];
        const Scores scores = scale == 1 ? random.any_scores() : higher(random.any_scores(), scale);
        const Span span = random.under(2) == 0 ? Span::local : Span::query;
        std::vector<Alignment> aligned(pairs.size());
        align(pairs, scores, span, aligned);
        for (const Isa isa : available_isas()) {
            std::vector<AlignmentEnd> ends(pairs.size());
            ScorePass(with_cheapest_extension(scores), span, isa).run(pairs, ends);
            for (std::size_t i = 0; i < pairs.size(); ++i) {
                const Alignment expected = align_scalar(pairs[i].query, pairs[i].target, scores, span);
                const AlignmentEnd end{expected.score, expected.query_end, expected.target_end};
                const auto again = score_again(aligned[i], pairs[i].query, pairs[i].target, scores);
                different += ends[i] != end || aligned[i] != expected || again != expected.score;
            }
        }
        checked += pairs.size();
    }
    std::size_t by_waves = 0;
    for (std::size_t k = 0; k < 24; ++k) {
        const std::string target = random.bases(600 + random.under(900), k % 4 == 0 ? "AC" : "ACGT");
        std::string query = target.substr(random.under(40));
        for (std::size_t edits = k; edits > 0; --edits) random.edit(query);
        const Span span = k % 2 == 0 ? Span::local : Span::query;
        const Alignment expected = align_scalar(query, target, {}, span);
        different += align(query, target, {}, span) != expected;
        CodedBases coded_query(CodedBases::Side::query), coded_target(CodedBases::Side::target);
        coded_query.assign(query);
        coded_target.assign(target);
        TargetIndex index;
        index.build(coded_target);
        Alignment found;
        if (k % 3 == 0 ? WavefrontAligner<std::int32_t>({}, span).align(coded_query, coded_target, index, found)
                       : WavefrontAligner<std::int16_t>({}, span).align(coded_query, coded_target, index, found)) {
            different += found != expected;
            ++by_waves;
        }
        ++checked;
    }
    different += by_waves < 12;
    std::printf("%zu by wavefronts; ", by_waves);
    for (const Isa isa : available_isas()) std::printf("%s ", name_of(isa).data());
    std::printf("%zu pairs, %zu different\n", checked, different);
    return different == 0 ? 0 : 1;
}
