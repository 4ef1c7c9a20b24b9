// Ours: three maps and an ordered sink, as a user would write them, with default options.
#include "baselines/contender.hpp"

#include <spillway/pipeline.hpp>

#include <ranges>

namespace bench {

void spillway_pipeline(const Load& load, Sink& sink) {
    auto scheduling = spillway::pipeline<std::uint64_t>("scheduling")
                          .source(std::views::iota(std::uint64_t{0}, load.candidates))
                          .map("make", [&](std::uint64_t ordinal) { return load.make(ordinal); })
                          .map("align", [&](Candidate& c) { c = load.align(c); })
                          .map("call", [&](Candidate& c) { c = load.call(c); })
                          .in_order("write", [&](const Candidate& c) { sink(c); });
    sink.futex_calls = scheduling.run({.threads = load.threads}).futex_calls;
}

} // namespace bench
