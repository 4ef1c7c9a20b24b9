// The floor: no scheduling at all. One thread in a loop; and the loop split beforehand into one equal range for each
// thread, which only works when all candidates cost the same and their number is known.
#include "contender.hpp"

#include <thread>
#include <vector>

namespace bench {

void bare_loop(const Load& load, Sink& sink) {
    for (std::uint64_t i = 0; i < load.candidates; ++i) sink(load.call(load.align(load.make(i))));
}

void bare_split(const Load& load, Sink& sink) {
    std::vector<Candidate> done(load.candidates);
    const auto range = [&](std::uint64_t part) { return load.candidates * part / load.threads; };
    const auto work = [&](std::uint64_t part) {
        for (std::uint64_t i = range(part); i < range(part + 1); ++i) done[i] = load.call(load.align(load.make(i)));
    };
    std::vector<std::thread> threads;
    for (unsigned part = 1; part < load.threads; ++part) threads.emplace_back(work, part);
    work(0);
    for (std::thread& thread : threads) thread.join();
    for (const Candidate& c : done) sink(c);
}

} // namespace bench
