// Regions that are cut, closed, drained and cut again, under every interleaving: no page has two holders.
#include "base/countdown.hpp"
#include "base/index_stack.hpp"
#include "interleaving/simulation.hpp"
#include "region/cutter.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <memory>

namespace spillway::interleaving {
namespace {

/// Regions of one or two pages, recycled through a free list, as RegionPool has them. Enough of them that those on
/// their way back are not missed.
struct Regions {
    static constexpr std::uint32_t count = 5, most_pages = 2;

    struct Region {
        Countdown<SimulatedAtomics> references{0};
        SimulatedAtomic<std::uint32_t> link{0};
        std::array<Plain<int>, most_pages> held{Plain<int>{0}, Plain<int>{0}};
    };

    std::uint32_t pages;
    Cutter<SimulatedAtomics> cutter;
    IndexStack<SimulatedAtomics> free;
    std::array<Region, count> regions;

    explicit Regions(std::uint32_t region_pages) : pages(region_pages) {
        for (std::uint32_t index = 0; index != count; ++index) recycle(index);
    }
    void recycle(std::uint32_t index) {
        free.push(
            index, [this](std::uint32_t i) -> auto& { return regions[i].link; });
    }
    void drop(std::uint32_t index, std::uint32_t references) {
        if (regions[index].references.arrive(references)) recycle(index);
    }
    RegionPiece take() {
        const RegionPiece piece = cutter.take(
            1, pages,
            [this] {
                const std::uint32_t index = free.pop([this](std::uint32_t i) -> auto& { return regions[i].link; });
                expect(index != IndexStack<>::none, "a region was lost");
                regions[index].references.begin(open_bias);
                return index;
            },
            [this](std::uint32_t index) { recycle(index); },
            [this](std::uint32_t index, std::uint32_t references) { drop(index, references); });
        Plain<int>& held = regions[piece.region].held[piece.page];
        expect(held.read() == 0, "a page was taken twice");
        held.write(1);
        return piece;
    }
    void give(RegionPiece piece) {
        regions[piece.region].held[piece.page].write(0);
        drop(piece.region, 1);
    }
    void stop() {
        cutter.stop([this](std::uint32_t index, std::uint32_t references) { drop(index, references); });
    }
    /// All regions are back.
    void finish() {
        stop();
        for (std::uint32_t index = 0; index != count; ++index) {
            expect(free.pop([this](std::uint32_t i) -> auto& { return regions[i].link; }) != IndexStack<>::none,
                   "a region did not come back");
        }
    }
};

void two_workers(Simulation& simulation) {
    auto regions = std::make_shared<Regions>(2);
    for (int thread = 0; thread < 2; ++thread) {
        simulation.thread([=] {
            const RegionPiece first = regions->take();
            const RegionPiece second = regions->take();
            regions->give(first);
            regions->give(second);
        });
    }
    simulation.finally([=] { regions->finish(); });
}

/// Regions of a page, so that each piece closes the region before it and regions are soon used again.
void two_workers_in_turn(Simulation& simulation) {
    auto regions = std::make_shared<Regions>(1);
    for (int rounds = 1; rounds < 3; ++rounds) {
        simulation.thread([=] {
            for (int round = 0; round < rounds; ++round) regions->give(regions->take());
        });
    }
    simulation.finally([=] { regions->finish(); });
}

void worker_and_trimmer(Simulation& simulation) {
    auto regions = std::make_shared<Regions>(2);
    simulation.thread([=] {
        regions->give(regions->take());
        regions->give(regions->take());
    });
    simulation.thread([=] { regions->stop(); });
    simulation.finally([=] { regions->finish(); });
}

TEST_CASE("no page has two holders, and every region comes back once") {
    for (const auto& make : {two_workers, worker_and_trimmer}) {
        const Outcome outcome = explore({.preemptions = 1}, make);
        CHECK(outcome.failure == "");
        CHECK(outcome.complete);
    }
}

TEST_CASE("regions go round in random runs of two workers and a trimmer") {
    const Outcome outcome = explore({.random_runs = 10'000, .seed = 17}, [](Simulation& simulation) {
        auto regions = std::make_shared<Regions>(2);
        for (int thread = 0; thread < 2; ++thread) {
            simulation.thread([=] {
                for (int round = 0; round < 3; ++round) regions->give(regions->take());
            });
        }
        simulation.thread([=] { regions->stop(); });
        simulation.finally([=] { regions->finish(); });
    });
    CHECK(outcome.failure == "");
}

TEST_CASE("counting a region down needs its orders") {
    CHECK(verify_each_order_is_needed({.preemptions = 1}, two_workers_in_turn, {"arrive"}) == "");
}

} // namespace
} // namespace spillway::interleaving
