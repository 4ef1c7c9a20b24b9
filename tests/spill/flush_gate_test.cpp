// The gate of a seat's buffer under every interleaving: a reader finds its record, in the buffer or in the file.
#include "interleaving/simulation.hpp"
#include "spill/flush_gate.hpp"

#include <catch2/catch.hpp>

#include <memory>

namespace spillway::interleaving {
namespace {

/// A stream of two records, one byte each; the buffer holds one.
struct Stream {
    FlushGate<SimulatedAtomics> gate;
    SimulatedAtomic<std::uint64_t> in_file{0};
    Plain<int> buffer{1};

    void flush_and_go_on() {
        gate.flushed(in_file, 1);
        if (gate.deserted()) buffer.write(2); // The next record takes the first one's place.
    }

    void read_first() {
        if (!gate.enter(in_file, 0)) return; // In the file.
        expect(buffer.read() == 1, "the buffer was reused under its reader");
        gate.leave();
    }
};

void owner_and_reader(Simulation& simulation) {
    auto stream = std::make_shared<Stream>();
    simulation.thread([=] { stream->flush_and_go_on(); });
    simulation.thread([=] { stream->read_first(); });
}

TEST_CASE("a buffer is not reused under a reader") {
    const Outcome one = explore({.preemptions = 4}, owner_and_reader);
    CHECK(one.failure == "");
    CHECK(one.complete);
    const Outcome two = explore({.preemptions = 3}, [](Simulation& simulation) {
        auto stream = std::make_shared<Stream>();
        simulation.thread([=] { stream->flush_and_go_on(); });
        simulation.thread([=] { stream->read_first(); });
        simulation.thread([=] { stream->read_first(); });
    });
    CHECK(two.failure == "");
    CHECK(two.complete);
}

TEST_CASE("each fence and order of the gate is needed") {
    CHECK(verify_each_order_is_needed({.preemptions = 4}, owner_and_reader,
                                      {"enter", "leave", "flushed", "deserted"}) == "");
}

} // namespace
} // namespace spillway::interleaving
