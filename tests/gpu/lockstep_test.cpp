// All kernel source, in lockstep on the host, against the oracle.
#include "gpu/fit.hpp"
#include "gpu/kernels.hpp"
#include "gpu/tasks.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spillway {
namespace {

using gpu::Fit;
using gpu::Tiling;

constexpr std::array<Span, 2> spans{Span::local, Span::query};

/// A piece of the target with an edit or two, `size` bases long.
std::string read_of(Pairs& random, const std::string& target, std::size_t size) {
    std::string read = target.substr(0, std::min(size, target.size()));
    for (std::size_t edits = random.under(3); edits > 0; --edits) random.edit(read);
    while (read.size() < size) read += random.bases(1, "ACGT");
    read.resize(size);
    return read;
}

TEST_CASE("random pairs of random scores are aligned as the oracle does") {
    Pairs random(1);
    std::size_t done = 0, on_device = 0;
    for (std::size_t round = 0; done < RANDOM_PAIRS; ++round) {
        CAPTURE(round);
        const Scores scores = random.scores();
        const Span span = spans[round % 2];
        // Mostly short, since the oracle's cells are what this costs; one in eight as long as reads are.
        const std::size_t longest = random.under(8) == 0 ? 300 : 20 + random.under(60);
        Tasks tasks;
        for (std::size_t count = 1 + random.under(40); count > 0; --count) tasks.add_random(random, longest);
        tasks.check(scores, span, round % 8 < 2); // a quarter of each span: that form costs twice as much
        done += tasks.pairs();
        if (Fit(scores, span).of(10, 10)) on_device += tasks.pairs();
    }
    CHECK(on_device > done / 10 * 9); // else what was checked is the host's own
}

TEST_CASE("at both sides of every tile's edge pairs are aligned as the oracle does") {
    Pairs random(2);
    std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
    const Scores narrow{};
    // In 16 bits it holds short queries only.
    const Scores wide{.match = 60, .mismatch = -61, .unknown = -31, .gap_open = 60, .gap_extend = 7};
    for (const Scores& scores : {narrow, wide}) {
        for (const Span span : spans) {
            const Fit fit(scores, span);
            for (const gpu::Shape& shape : gpu::shapes) {
                for (std::uint32_t threads = 1; threads <= gpu::warp_size; ++threads) {
                    const std::size_t edge = std::size_t{threads} * shape.columns;
                    Tasks tasks;
                    const std::string target = random.bases(edge < 200 ? edge + 40 : 60, "ACGT");
                    std::vector<std::string> queries;
                    for (const std::size_t size : {edge - 1, edge, edge + 1}) {
                        queries.push_back(read_of(random, target, size));
                        const auto tiling = fit.of(size, target.size());
                        if (tiling) seen.insert({tiling->shape, tiling->threads});
                    }
                    tasks.add(target, queries);
                    tasks.check(scores, span);
                }
            }
        }
    }
    for (std::uint32_t shape = 0; shape < gpu::shape_count; ++shape) {
        CAPTURE(shape);
        const auto of_shape = [&](const auto& tiling) { return tiling.first == shape; };
        CHECK(std::count_if(seen.begin(), seen.end(), of_shape) >= 3);
    }
    CHECK(std::any_of(seen.begin(), seen.end(), [](const auto& tiling) { return tiling.second == 2; }));
    CHECK(std::any_of(seen.begin(), seen.end(), [](const auto& tiling) { return tiling.second == 32; }));
}

TEST_CASE("targets of every length from 1 on end where the oracle ends them") {
    Pairs random(3);
    for (const Span span : spans) {
        for (std::size_t size = 1; size <= 80; ++size) {
            Tasks tasks;
            const std::string target = random.bases(size, size % 3 == 0 ? "AC" : "ACGT");
            tasks.add(target, {read_of(random, target, 45), read_of(random, target, 9), target, "N"});
            // Tiles whose packs have targets of very different lengths.
            tasks.add(random.bases(100 + random.under(100), "ACGT"), {random.bases(45, "ACGT"), random.bases(9, "AC")});
            tasks.check({}, span);
        }
    }
}

TEST_CASE("scores at the border of 16 bits, and past it, are right") {
    for (const Span span : spans) {
        for (const int match : {1, 2, 7, 31, 63, 100}) {
            const Scores scores{.match = match, .mismatch = -1, .unknown = -1, .gap_open = 20, .gap_extend = 1};
            const Fit fit(scores, span);
            std::size_t packed = 0;
            for (std::size_t size = 1; size <= gpu::longest_query; ++size) {
                const auto tiling = fit.of(size, size + 3);
                REQUIRE(tiling);
                if (gpu::shapes[tiling->shape].packed) packed = size;
            }
            CAPTURE(match, packed);
            Tasks tasks;
            for (const std::size_t size : {packed - 1, packed, packed + 1, gpu::longest_query}) {
                if (size > gpu::longest_query) continue;
                const std::string read(size, 'A'); // all of it matches: the highest score there is
                std::string worst(size, 'C');
                tasks.add(read + "CCC", {read, worst, read});
                tasks.add("C" + read + "A", {read});
            }
            tasks.check(scores, span);
        }
    }
}

TEST_CASE("scores lower than 16 bits hold are right") {
    // Of the whole query against nothing like it, with the dearest gaps the table takes.
    const Scores scores{.match = 1, .mismatch = -60, .unknown = -60, .gap_open = 120, .gap_extend = 60};
    Tasks tasks;
    for (const std::size_t size : {1U, 20U, 150U, 480U, 500U, 640U, 1000U, 1024U}) {
        tasks.add(std::string(30, 'C'), {std::string(size, 'A'), std::string(size, 'C'), std::string(size, 'N')});
    }
    tasks.check(scores, Span::query);
    tasks.check(scores, Span::local);
}

TEST_CASE("a long target is aligned to its last row, and one that is too long by the host") {
    Pairs random(4);
    for (const Span span : spans) {
        for (const std::size_t size : {gpu::longest_target - 1, gpu::longest_target, gpu::longest_target + 1}) {
            const std::string target = random.bases(size, "ACGT");
            Tasks tasks;
            tasks.add(target, {target.substr(size - 30), target.substr(0, 30), target.substr(size / 2, 30)});
            tasks.check({}, span);
            CHECK(Fit({}, span).of(30, size).has_value() == (size <= gpu::longest_target));
        }
    }
}

TEST_CASE("of equal scores the first target end and then the first query end are found, in all threads") {
    Pairs random(5);
    for (std::size_t round = 0; round < 400; ++round) {
        const std::string unit = random.bases(1 + random.under(30), random.under(2) == 0 ? "AC" : "ACGT");
        std::string target, read;
        for (std::size_t times = 2 + random.under(6); times > 0; --times) target += unit;
        for (std::size_t times = 1 + random.under(6); times > 0; --times)
            read += unit + (random.under(2) == 0 ? "" : "TT");
        Tasks tasks;
        tasks.add(target, {read, unit, unit + unit, std::string(40, 'A')});
        tasks.check(round % 2 == 0 ? Scores{} : random.scores(), Span::local);
        tasks.check(round % 2 == 0 ? Scores{} : random.scores(), Span::query);
    }
}

TEST_CASE("batches of none, one and any odd count of pairs are aligned") {
    Pairs random(6);
    for (const Span span : spans) {
        Tasks none;
        none.check({}, span);
        none.add("ACGT", {});
        none.add("", {});
        none.check({}, span);
        for (std::size_t count = 1; count <= 70; ++count) {
            Tasks tasks;
            const std::string target = random.bases(50, "ACGT");
            std::vector<std::string> queries;
            for (std::size_t i = 0; i < count; ++i) queries.push_back(read_of(random, target, 30));
            tasks.add(target, queries);
            tasks.check({}, span);
        }
    }
}

TEST_CASE("empty queries and targets, N alone and lower case are aligned as the oracle does") {
    for (const Span span : spans) {
        Tasks tasks;
        tasks.add("", {"", "A", "acgt"});
        tasks.add("ACGT", {"", "N", "n", "acgt", "AcGt", "----", "ACNGT"});
        tasks.add("NNNN", {"N", "ACGT", "NNNNNN", ""});
        tasks.add("acgtnACGT", {"ACGTNACGT", "gtnac"});
        tasks.check({}, span);
        tasks.check({.match = 4, .mismatch = -6, .unknown = 0, .gap_open = 8, .gap_extend = 2}, span);
    }
}

TEST_CASE("scores that the device's tables do not hold are aligned by the host") {
    const Scores high{.match = 300, .mismatch = -500, .unknown = -700, .gap_open = 901, .gap_extend = 20};
    const Scores divisible{.match = 300, .mismatch = -500, .unknown = -700, .gap_open = 900, .gap_extend = 100};
    for (const Span span : spans) {
        CHECK_FALSE(Fit(high, span).of(100, 100));
        CHECK(Fit(divisible, span).of(100, 100)); // 3, -5, -7, 9, 1
        Pairs random(7);
        Tasks tasks;
        for (int i = 0; i < 50; ++i) tasks.add_random(random, 80);
        tasks.check(high, span);
        tasks.check(divisible, span);
    }
}

TEST_CASE("staging that holds a batch exactly is enough, a byte less is refused") {
    Pairs random(8);
    const DeviceAligner aligner({}, Span::local);
    HostDevice device({.asynchronous = false});
    Tasks tasks;
    // Of each pair a pack and a tile of its own: the most that it may take.
    for (std::size_t i = 0; i < 40; ++i) tasks.add(random.bases(64, "ACGT"), {random.bases(1 + 16 * i, "ACGT")});
    const std::vector<AlignmentTask> all = tasks.tasks();
    const std::size_t most = tasks.bytes();
    const auto enough = device.make_staging(most);
    CHECK_NOTHROW(aligner.pack(all, *enough));
    std::size_t least = most; // what it takes in truth
    for (bool fits = true; fits; --least) {
        const auto staging = device.make_staging(least - 1);
        try {
            aligner.pack(all, *staging);
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::usage);
            fits = false;
            ++least;
        }
    }
    CHECK(least <= most);
    CHECK(least + 6 * 64 + 40 * 64 > most); // and the promise is not idle
}

TEST_CASE("a haplotype that several tasks share is sent once") {
    const DeviceAligner aligner({}, Span::local);
    HostDevice device({.asynchronous = false});
    const std::string target(5000, 'A');
    const std::vector<std::string_view> queries{"AAAA", "AAC"};
    std::vector<Alignment> found(4);
    const std::vector<AlignmentTask> twice{{target, queries, std::span(found).first(2)},
                                           {target, queries, std::span(found).last(2)}};
    const auto staging = device.make_staging(7000); // of 10,000 that both would take
    const auto stream = device.make_stream();
    aligner.pack(twice, *staging);
    aligner.launch(*staging, *stream);
    stream->synchronise();
    aligner.unpack(*staging, twice);
    CHECK(found[0] == align("AAAA", target, {}, Span::local));
    CHECK(found[3] == align("AAC", target, {}, Span::local));
}

TEST_CASE("tasks without room for what is found, and lengths that align refuses, are refused") {
    const DeviceAligner aligner({}, Span::local);
    HostDevice device({.asynchronous = false});
    const auto staging = device.make_staging(1 << 20);
    const std::vector<std::string_view> queries{"A", "C"};
    std::vector<Alignment> found(1);
    const std::vector<AlignmentTask> tasks{{"ACGT", queries, found}};
    CHECK_THROWS_AS(aligner.pack(tasks, *staging), Error);
    const std::string endless(20000, 'A');
    const std::vector<std::string_view> long_query{endless};
    const std::vector<AlignmentTask> too_long{{endless, long_query, found}};
    CHECK_THROWS_AS(aligner.pack(too_long, *staging), Error);
    CHECK_THROWS_AS(DeviceAligner({.match = 0}, Span::local), Error);
}

TEST_CASE("reads of 100, 150 and 250 bases leave few columns and threads idle") {
    for (const Span span : spans) {
        const Fit fit({}, span);
        for (const auto& [size, least] : {std::pair<std::size_t, double>{100, 0.9}, {150, 0.9}, {250, 0.9}}) {
            const auto tiling = fit.of(size, 400);
            REQUIRE(tiling);
            const gpu::Shape& shape = gpu::shapes[tiling->shape];
            CHECK(shape.packed);
            const double columns = static_cast<double>(gpu::warp_size) * shape.columns;
            CHECK(static_cast<double>(size * (gpu::warp_size / tiling->threads)) / columns > least);
        }
    }
}

} // namespace
} // namespace spillway
