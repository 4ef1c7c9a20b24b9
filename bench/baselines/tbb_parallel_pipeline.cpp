// oneTBB's parallel_pipeline: a serial source, three parallel filters, an ordered sink. Its best form: tokens are
// pointers, which it passes without allocating, into a ring as long as the tokens that may be alive.
#include "contender.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

#include <vector>

namespace bench {

void tbb_parallel_pipeline(const Load& load, Sink& sink) {
    namespace tbb = oneapi::tbb;
    const std::size_t tokens = std::size_t{16} * load.threads; // 4 to 64 a thread measured alike.
    std::vector<Candidate> ring(tokens);
    std::uint64_t next = 0;
    const auto source = [&](tbb::flow_control& control) -> Candidate* {
        if (next == load.candidates) {
            control.stop();
            return nullptr;
        }
        // The sink is in order, so the token of ordinal - tokens has left its place.
        Candidate& c = ring[next % tokens];
        c.ordinal = next++;
        return &c;
    };
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, load.threads);
    tbb::task_arena arena(static_cast<int>(load.threads));
    arena.execute([&] {
        tbb::parallel_pipeline(
            tokens,
            tbb::make_filter<void, Candidate*>(tbb::filter_mode::serial_in_order, source) &
                tbb::make_filter<Candidate*, Candidate*>(tbb::filter_mode::parallel,
                                                         [&](Candidate* c) { return *c = load.make(c->ordinal), c; }) &
                tbb::make_filter<Candidate*, Candidate*>(tbb::filter_mode::parallel,
                                                         [&](Candidate* c) { return *c = load.align(*c), c; }) &
                tbb::make_filter<Candidate*, Candidate*>(tbb::filter_mode::parallel,
                                                         [&](Candidate* c) { return *c = load.call(*c), c; }) &
                tbb::make_filter<Candidate*, void>(tbb::filter_mode::serial_in_order, [&](Candidate* c) { sink(*c); }));
    });
}

} // namespace bench
