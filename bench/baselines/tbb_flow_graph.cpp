// oneTBB's flow graph: an input node, a limiter that bounds how many candidates are alive, three parallel function
// nodes, a sequencer and a serial sink. Its best form: all but the first function node are lightweight, that is, run
// where their input was made instead of as a task of their own.
#include "contender.hpp"

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

namespace bench {

void tbb_flow_graph(const Load& load, Sink& sink) {
    namespace tbb = oneapi::tbb;
    namespace flow = oneapi::tbb::flow;
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, load.threads);
    tbb::task_arena arena(static_cast<int>(load.threads));
    arena.execute([&] {
        flow::graph graph;
        std::uint64_t next = 0;
        flow::input_node<std::uint64_t> source(graph, [&](oneapi::tbb::flow_control& control) -> std::uint64_t {
            if (next == load.candidates) {
                control.stop();
                return 0;
            }
            return next++;
        });
        flow::limiter_node<std::uint64_t> limiter(graph, std::size_t{256} * load.threads);
        flow::function_node<std::uint64_t, Candidate> make(graph, flow::unlimited,
                                                           [&](std::uint64_t i) { return load.make(i); });
        flow::function_node<Candidate, Candidate, flow::lightweight> align(
            graph, flow::unlimited, [&](const Candidate& c) noexcept { return load.align(c); });
        flow::function_node<Candidate, Candidate, flow::lightweight> call(
            graph, flow::unlimited, [&](const Candidate& c) noexcept { return load.call(c); });
        flow::sequencer_node<Candidate> order(graph, [](const Candidate& c) { return std::size_t{c.ordinal}; });
        flow::function_node<Candidate, flow::continue_msg> write(graph, flow::serial, [&](const Candidate& c) {
            sink(c);
            return flow::continue_msg();
        });
        flow::make_edge(source, limiter);
        flow::make_edge(limiter, make);
        flow::make_edge(make, align);
        flow::make_edge(align, call);
        flow::make_edge(call, order);
        flow::make_edge(order, write);
        flow::make_edge(write, limiter.decrementer());
        source.activate();
        graph.wait_for_all();
    });
}

} // namespace bench
