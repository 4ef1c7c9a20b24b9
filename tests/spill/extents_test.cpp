// Addresses in the file of long records under every interleaving: no two records share one, and an address that comes
// again is free of what lay there.
#include "interleaving/simulation.hpp"
#include "spill/extents.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <memory>

namespace spillway::interleaving {
namespace {

/// Three extents fill it.
struct File {
    static constexpr std::uint64_t blocks = std::uint64_t{1} << 30U;

    Extents<SimulatedAtomics> extents;
    std::array<Plain<int>, 3> contents{};
    SimulatedAtomics::atomic<int> refused{0};

    std::optional<std::size_t> write() {
        const auto begin = extents.take(blocks);
        if (!begin) {
            refused.fetch_add(1, std::memory_order_relaxed);
            return std::nullopt;
        }
        const std::size_t place = *begin / blocks;
        expect(contents[place].read() == 0, "a record lies on another");
        contents[place].write(7);
        return place;
    }
    void release(std::optional<std::size_t> place) {
        if (!place) return;
        contents[*place].write(0);
        extents.give();
    }
};

/// Two records each; the first is still there when the second is written.
void two_writers(Simulation& simulation) {
    auto file = std::make_shared<File>();
    for (int writer = 0; writer < 2; ++writer) {
        simulation.thread([=] {
            const auto first = file->write();
            const auto second = file->write();
            file->release(first);
            file->release(second);
        });
    }
    simulation.finally([=] {
        expect(file->refused.load(std::memory_order_relaxed) <= 1, "three extents are less than the file has room for");
        expect(file->extents.take(1) == 0U, "the addresses do not start anew when no record is left");
    });
}

/// One after the other; whoever finds the file empty writes where the other's lay.
void two_in_turn(Simulation& simulation) {
    auto file = std::make_shared<File>();
    for (int writer = 0; writer < 2; ++writer) {
        simulation.thread([=] {
            file->release(file->write());
            file->release(file->write());
        });
    }
}

} // namespace

TEST_CASE("no two long records lie in one place, whoever writes and releases them") {
    for (const auto& make : {two_writers, two_in_turn}) {
        const Outcome outcome = explore({.preemptions = 2}, make);
        CHECK(outcome.failure == "");
        CHECK(outcome.complete);
    }
}

TEST_CASE("each order of the extents is needed") {
    CHECK(verify_each_order_is_needed({.preemptions = 2}, two_in_turn, {"take", "give"}) == "");
}

TEST_CASE("extents that do not fit are refused, the last block and all") {
    // Outside a simulation: on the machine's atomics.
    constexpr std::uint64_t all = 0xffffffffU;
    Extents<> extents;
    CHECK_FALSE(extents.take(all + 1).has_value());
    CHECK_FALSE(extents.take(~std::uint64_t{0}).has_value());
    CHECK(extents.take(all - 1) == 0U);
    CHECK_FALSE(extents.take(2).has_value());
    CHECK(extents.take(1) == all - 1);
    CHECK_FALSE(extents.take(1).has_value());
    extents.give();
    CHECK_FALSE(extents.take(1).has_value());
    extents.give();
    CHECK(extents.take(3) == 0U);
    CHECK(extents.take(3) == 3U);
}

} // namespace spillway::interleaving
