#include "spillway/pipeline.hpp"

#include "temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

using namespace spillway;
using spillway::test::TemporaryDirectory;

namespace {

constexpr int items = 400;

struct Counts {
    std::atomic<int> encoded{0}, decoded{0};
} counts;

/// Tells when it goes to disk and who reads it back.
struct Tensor {
    int number = 0;
    std::vector<std::uint8_t> values;
};

} // namespace

template <>
struct spillway::codec<Tensor> {
    static void encode(Writer& out, const Tensor& t) {
        ++counts.encoded;
        out(t.number, t.values);
    }
    static Tensor decode(Reader& in) {
        ++counts.decoded;
        const auto number = in.get<int>();
        return {number, in.get<std::vector<std::uint8_t>>()};
    }
    static std::size_t footprint(const Tensor& t) { return t.values.capacity(); }
};

TEST_CASE("while memory is plenty a worker that has nothing else to do reads back what another will need") {
    const TemporaryDirectory directory;
    std::atomic<int> made{0};
    int waited = 0, elsewhere = 0;
    std::vector<int> results;
    Pool pool({.min_threads = 2, .max_threads = 2, .memory = {.memory = 2_MiB, .watch_process = false}});
    auto run = pipeline<int>("ahead")
                   .source(std::views::iota(0, items))
                   .map("make",
                        [&](int number) {
                            ++made;
                            return Tensor{number, std::vector<std::uint8_t>(30000, static_cast<std::uint8_t>(number))};
                        })
                   .map("take",
                        [&](const Tensor& t) {
                            const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
                            const auto wait_for = [&](auto done) {
                                while (!done() && std::chrono::steady_clock::now() < patience)
                                    std::this_thread::yield();
                            };
                            wait_for([&] { return made == items; });
                            // There is room for more, and more are on disk: the other worker, for whom nothing is left
                            // to make, must read one.
                            const int before = counts.decoded;
                            if (waited < 5 && counts.encoded - before > 50 && pool.governor().below_low()) {
                                ++waited;
                                wait_for([&] { return counts.decoded > before; });
                                if (counts.decoded > before) ++elsewhere;
                            }
                            return t.values[0] == static_cast<std::uint8_t>(t.number) ? t.number : -1;
                        })
                   .limit(1)
                   .in_order("collect", [&](int number) { results.push_back(number); });
    Options options;
    options.spill = SpillOptions{.directory = directory.path().string(), .allow_tmpfs = true};
    const Report report = run.run(pool, options);
    REQUIRE(results.size() == items);
    for (int i = 0; i < items; ++i) REQUIRE(results[static_cast<std::size_t>(i)] == i);
    CHECK(report.restored == report.spilled);
    CHECK(elsewhere == waited);
}
