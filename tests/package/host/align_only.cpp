// spillway::align stands without the core.
#include <spillway/align.hpp>

#include <cstdio>

int main() {
    const spillway::Alignment found =
        spillway::align("CCACGTACGT", "GGACGTACGTTT", spillway::Scores{}, spillway::Span::local);
    std::printf("%d %d-%d %s\n", found.score, found.target_begin, found.target_end,
                spillway::to_string(found.cigar).c_str());
}
