// A pipeline with a routed stage, whose forms turn numbers into scores.
//
//     std::atomic<std::uint64_t> on_device{0};
//     auto run = routed(1000, on_device).map("score", ...).in_order(...);
//     static_cast<void>(run.run({.devices = {small_device()}, .router = eager()}));
#pragma once

#include "router/eager.hpp"
#include "spillway/pipeline.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <ranges>
#include <vector>

namespace spillway::test {

struct Pair {
    std::uint32_t number = 0;
    std::uint32_t score = 0;
    std::vector<std::uint8_t> bases;
};

inline std::uint32_t score_of(std::uint32_t number) {
    return number * 2654435761U;
}

inline void on_cpu(batch<Pair>& pairs) {
    for (Pair& pair : pairs) pair.score = score_of(pair.number);
}

/// Numbers in, scores out, in place; the count of pairs in the first word.
struct OnDevice {
    std::atomic<std::uint64_t>* done;

    [[nodiscard]] std::size_t bytes(const Pair&) const { return 4; }
    [[nodiscard]] std::size_t header_bytes() const { return 4; }
    void pack(batch<Pair>& pairs, Staging& staging) {
        auto count = static_cast<std::uint32_t>(pairs.size());
        std::memcpy(staging.host().data(), &count, 4);
        std::size_t at = 4;
        for (const Pair& pair : pairs) {
            std::memcpy(staging.host().data() + at, &pair.number, 4);
            at += 4;
        }
    }
    void launch(Staging& staging, Stream& stream) {
        std::uint32_t count = 0;
        std::memcpy(&count, staging.host().data(), 4);
        const std::size_t bytes = 4 + 4 * std::size_t{count};
        stream.copy_in(staging, 0, bytes);
        stream.run(count, [memory = static_cast<std::byte*>(staging.device()), count](void*) {
            for (std::uint32_t i = 0; i < count; ++i) {
                std::uint32_t number = 0;
                std::memcpy(&number, memory + 4 + 4 * std::size_t{i}, 4);
                number = score_of(number);
                std::memcpy(memory + 4 + 4 * std::size_t{i}, &number, 4);
            }
        });
        stream.copy_out(staging, 0, bytes);
    }
    void unpack(Staging& staging, batch<Pair>& pairs) {
        std::size_t at = 4;
        for (Pair& pair : pairs) {
            std::memcpy(&pair.score, staging.host().data() + at, 4);
            at += 4;
        }
        *done += pairs.size();
    }
};

/// Up to the routed stage, that included: `count` pairs with a kilobyte each.
inline auto routed(std::uint32_t count, std::atomic<std::uint64_t>& done) {
    return pipeline<std::uint32_t>("routing")
        .source(std::views::iota(std::uint32_t{0}, std::uint32_t{count}))
        .map("make",
             [](std::uint32_t x) {
                 return Pair{x, 0, std::vector<std::uint8_t>(1000, static_cast<std::uint8_t>(x))};
             })
        .route("align", on_cpu, OnDevice{&done}, {.cells = {}, .full = 64});
}

/// With little memory: staging is taken, and cleared, by the share of what there is.
inline std::shared_ptr<Device> small_device() {
    return std::make_shared<HostDevice>(HostDeviceOptions{.memory = 4_MiB});
}

inline std::vector<std::uint32_t> expected(std::uint32_t count) {
    std::vector<std::uint32_t> scores;
    for (std::uint32_t i = 0; i < count; ++i) scores.push_back(score_of(i));
    return scores;
}

} // namespace spillway::test
