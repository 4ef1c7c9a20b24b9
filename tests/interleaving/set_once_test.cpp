// What is set once, under every interleaving: all use the first one's, and see what it was made of.
#include "base/set_once.hpp"
#include "interleaving/simulation.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <memory>

namespace spillway::interleaving {
namespace {

/// A file that whoever needs it opens if nobody has, as the spill's.
struct Files {
    SetOnce<int, -1, SimulatedAtomics> descriptor;
    std::array<Plain<int>, 3> opened{};
    std::array<SimulatedAtomics::atomic<int>, 3> users{};

    void use(int fresh) {
        int file = descriptor.get();
        if (file < 0) {
            opened[static_cast<std::size_t>(fresh)].write(1);
            file = descriptor.set(fresh);
            if (file != fresh) opened[static_cast<std::size_t>(fresh)].write(0);
        }
        expect(opened[static_cast<std::size_t>(file)].read() == 1, "a file is used that is not open");
        users[static_cast<std::size_t>(file)].fetch_add(1, std::memory_order_relaxed);
    }
};

void three_open(Simulation& simulation) {
    auto files = std::make_shared<Files>();
    for (int user = 0; user < 3; ++user) simulation.thread([=] { files->use(user); });
    simulation.finally([=] {
        int open = 0;
        for (const auto& file : files->opened) open += file.read();
        expect(open == 1, "not one file is open in the end");
        const int kept = files->descriptor.get();
        expect(files->users[static_cast<std::size_t>(kept)].load(std::memory_order_relaxed) == 3,
               "somebody used another file");
    });
}

} // namespace

TEST_CASE("of several that set it one wins, and all use that one's") {
    const Outcome outcome = explore({.preemptions = 3}, three_open);
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("each order of setting once is needed") {
    CHECK(verify_each_order_is_needed({.preemptions = 3}, three_open, {"get", "set"}) == "");
}

} // namespace spillway::interleaving
