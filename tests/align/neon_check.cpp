// Random pairs, scored and aligned with every instruction set of this machine, against the oracle: without a test
// framework, so that neon.sh can build it for another machine.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "align/isa.hpp"
#include "align/pairs.hpp"
#include "align/scalar.hpp"
#include "align/score_pass.hpp"

int main(int argc, char** argv) {
    using namespace spillway;
    const std::size_t wanted = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
    Pairs random(70);
    std::size_t checked = 0, different = 0;
    while (checked < wanted) {
        std::vector<Pair> texts;
        const std::size_t longest = 20 + random.under(120);
        for (int k = 0; k < 100; ++k) texts.push_back(random.next(longest));
        std::vector<SequencePair> pairs;
        for (const Pair& pair : texts) pairs.push_back({pair.query, pair.target});
        const Scores scores = random.scores();
        const Span span = random.under(2) == 0 ? Span::local : Span::query;
        std::vector<Alignment> aligned(pairs.size());
        align(pairs, scores, span, aligned);
        for (const Isa isa : available_isas()) {
            std::vector<AlignmentEnd> ends(pairs.size());
            ScorePass(scores, span, isa).run(pairs, ends);
            for (std::size_t i = 0; i < pairs.size(); ++i) {
                const Alignment expected = align_scalar(pairs[i].query, pairs[i].target, scores, span);
                const AlignmentEnd end{expected.score, expected.query_end, expected.target_end};
                different += ends[i] != end || aligned[i] != expected;
            }
        }
        checked += pairs.size();
    }
    for (const Isa isa : available_isas()) std::printf("%s ", name_of(isa).data());
    std::printf("%zu pairs, %zu different\n", checked, different);
    return different == 0 ? 0 : 1;
}
