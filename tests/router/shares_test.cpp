// Who does how much, while the workers have all they can do and the device is fast.
#include "spillway/device.hpp"
#include "spillway/pipeline.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <ranges>
#include <string>

using namespace spillway;

namespace {

using Clock = std::chrono::steady_clock;

struct Block {
    std::uint32_t number = 0;
    std::uint32_t result = 0;
    bool on_device = false;
};

constexpr std::uint32_t blocks = 6000;
constexpr std::size_t cells_a_block = 1000, bytes_a_block = 1024;

constexpr std::uint32_t result_of(std::uint32_t number) {
    return number * 2654435761U;
}

/// A worker's core is busy for half a millisecond with each block.
void spinning(batch<Block>& batch) {
    for (Block& block : batch) {
        for (const auto end = Clock::now() + std::chrono::microseconds(500); Clock::now() < end;) {
        }
        block.result = result_of(block.number);
    }
}

// The header of a batch is how many blocks it has.
struct OnDevice {
    [[nodiscard]] std::size_t header_bytes() const { return bytes_a_block; }
    [[nodiscard]] std::size_t bytes(const Block&) const { return bytes_a_block; }

    void pack(batch<Block>& batch, Staging& staging) {
        std::uint32_t count = 0;
        for (const Block& block : batch) {
            ++count;
            std::memcpy(staging.host().data() + count * bytes_a_block, &block.number, sizeof block.number);
        }
        std::memcpy(staging.host().data(), &count, sizeof count);
    }
    void launch(Staging& staging, Stream& stream) {
        std::uint32_t count = 0;
        std::memcpy(&count, staging.host().data(), sizeof count);
        const std::size_t bytes = (count + std::size_t{1}) * bytes_a_block;
        stream.copy_in(staging, 0, bytes);
        stream.run(count * cells_a_block, [count, at = static_cast<std::byte*>(staging.device())](void*) {
            for (std::size_t i = 1; i <= count; ++i) {
                std::uint32_t number = 0;
                std::memcpy(&number, at + i * bytes_a_block, sizeof number);
                number = result_of(number);
                std::memcpy(at + i * bytes_a_block, &number, sizeof number);
            }
        });
        stream.copy_out(staging, 0, bytes);
    }
    void unpack(Staging& staging, batch<Block>& batch) {
        const std::byte* at = staging.host().data();
        for (Block& block : batch) {
            at += bytes_a_block;
            std::memcpy(&block.result, at, sizeof block.result);
            block.on_device = true;
        }
    }
};

constexpr std::size_t slices = 10;

/// Blocks that the device did, of each slice of the queue.
std::array<std::size_t, slices> shares() {
    std::array<std::size_t, slices> on_device{};
    std::uint32_t wrong = 0;
    auto run = pipeline<std::uint32_t>("sharing")
                   .source(std::views::iota(std::uint32_t{0}, blocks))
                   .map("make", [](std::uint32_t number) { return Block{number}; })
                   .route("work", spinning, OnDevice{},
                          {.cells = [](const Block&) { return cells_a_block; }, .full = 20 * cells_a_block})
                   .in_order("collect", [&](const Block& block) {
                       on_device.at(block.number / (blocks / slices)) += block.on_device ? 1U : 0U;
                       wrong += block.result != result_of(block.number) ? 1U : 0U;
                   });
    // Five times as fast as both workers, with staging for a small part of the queue.
    const auto device =
        std::make_shared<HostDevice>(HostDeviceOptions{.memory = 64 * bytes_a_block * 6, .cells_per_second = 2e7});
    static_cast<void>(run.run({.threads = 2, .devices = {device}}));
    CHECK(wrong == 0);
    return on_device;
}

} // namespace

TEST_CASE("with workers that have all they can do, a fast device and a long queue neither side starves") {
    constexpr int most_runs = 30; // how much each gets is up to the load of the machine
    std::size_t on_device = 0, on_cpu = 0;
    for (int run = 0; run < most_runs && (on_device == 0 || on_cpu == 0); ++run) {
        std::string text;
        for (const std::size_t of_slice : shares()) {
            text += " " + std::to_string(of_slice * 100 / (blocks / slices)) + "%";
            on_device += of_slice;
            on_cpu += blocks / slices - of_slice;
        }
        std::cout << "the device's share of each tenth of the queue:" << text << "\n";
    }
    CHECK(on_device > 0);
    CHECK(on_cpu > 0);
}
