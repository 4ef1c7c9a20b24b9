// A device that several use, under every interleaving: a lost one is reset when nobody is inside, by one alone.
#include "interleaving/simulation.hpp"
#include "router/device_use.hpp"

#include <catch2/catch.hpp>

#include <memory>

namespace spillway::interleaving {
namespace {

using Use = detail::DeviceUse<SimulatedAtomics>;

struct SharedDevice {
    Use::Word word{0};
    Plain<int> contents{0}; ///< Written by a reset; read by those inside.
    SimulatedAtomics::atomic<int> inside{0};

    /// One attempt to get in. False: refused.
    bool use(bool loses) {
        Use mine(word);
        switch (mine.enter()) {
        case Use::Entry::refused:
            return false;
        case Use::Entry::to_reset:
            expect(inside.load(std::memory_order_relaxed) == 0, "a device was reset under somebody");
            contents.write(contents.read() + 1);
            mine.reset(true);
            break;
        case Use::Entry::in:
            break;
        }
        inside.fetch_add(1, std::memory_order_relaxed);
        static_cast<void>(contents.read());
        if (loses) mine.lose();
        inside.fetch_sub(1, std::memory_order_relaxed);
        mine.leave();
        return true;
    }
};

void one_loses_what_two_use(Simulation& simulation) {
    auto device = std::make_shared<SharedDevice>();
    simulation.thread([=] {
        static_cast<void>(device->use(true));
        static_cast<void>(device->use(false));
    });
    simulation.thread([=] {
        static_cast<void>(device->use(false));
        static_cast<void>(device->use(false));
    });
    simulation.finally([=] {
        expect(device->use(false), "a device that everybody has left takes nobody in");
        expect(device->contents.read() == 1, "a loss is one reset");
    });
}

TEST_CASE("a lost device is reset by one user when all have left, and those after it see what the reset made") {
    const Outcome outcome = explore({.preemptions = 2}, one_loses_what_two_use);
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

TEST_CASE("each order of the device's users is needed") {
    const std::vector<std::string> functions{"enter", "reset", "leave"};
    CHECK(verify_each_order_is_needed({.preemptions = 2}, one_loses_what_two_use, functions) == "");
}

TEST_CASE("a device that cannot be reset takes nobody in, and is tried again") {
    const Outcome outcome = explore({.preemptions = 3}, [](Simulation& simulation) {
        auto device = std::make_shared<SharedDevice>();
        const auto fail_to_reset = [=] {
            Use mine(device->word);
            switch (mine.enter()) {
            case Use::Entry::to_reset:
                mine.reset(false);
                break;
            case Use::Entry::in:
                mine.lose();
                mine.leave();
                break;
            case Use::Entry::refused:
                break;
            }
        };
        simulation.thread(fail_to_reset);
        simulation.thread(fail_to_reset);
        simulation.finally([=] { expect(device->use(false), "the device is not tried again"); });
    });
    CHECK(outcome.failure == "");
    CHECK(outcome.complete);
}

} // namespace
} // namespace spillway::interleaving
