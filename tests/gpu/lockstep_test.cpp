// All kernel source, in lockstep on the host, against the oracle.
#include "align/forms.hpp"
#include "align/isa.hpp"
#include "gpu/fit.hpp"
#include "gpu/kernels.hpp"
#include "gpu/tasks.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <tuple>
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

/// What the pairs of a round are. Mostly short, since the oracle's cells are what they cost; of 32 rounds four are as
/// long as reads are, two have coarse scores and up to 1,000 bases, and two gaps so dear that 16 bits do not hold them.
struct Round {
    Scores scores;
    std::size_t longest, most_tasks;
};

Round round_of(std::size_t number, Pairs& random) {
    constexpr Scores dear{.match = 30, .mismatch = -40, .unknown = -31, .gap_open = 48, .gap_extend = 48};
    switch (number % 32 / 2) {
    case 1:
        return {coarse, 1000, 3};
    case 2:
        return {dear, 400, 6};
    case 5:
    case 9:
        return {random.scores(), 300, 40};
    default:
        return {random.scores(), 20 + random.under(60), 40};
    }
}

/// A quarter of all of them, so that no test takes minutes.
void check_random_pairs(std::uint64_t seed) {
    Pairs random(seed);
    std::size_t done = 0, on_device = 0;
    std::array<std::array<std::size_t, gpu::shape_count>, 2> by_shape{}, one_by_one{};
    for (std::size_t round = 0; done < RANDOM_PAIRS / 4; ++round) {
        CAPTURE(round);
        const Span span = spans[round % 2];
        const auto [scores, longest, most_tasks] = round_of(round, random);
        Tasks tasks;
        for (std::size_t count = 1 + random.under(most_tasks); count > 0; --count) tasks.add_random(random, longest);
        // A fifth of each span, of every kind of round: that form costs twice as much.
        const bool both = round % 10 < 2;
        tasks.check(scores, span, both);
        done += tasks.pairs();
        const Fit fit(scores, span);
        tasks.count(fit, by_shape[round % 2]);
        if (both) tasks.count(fit, one_by_one[round % 2]);
        if (fit.of(10, 10)) on_device += tasks.pairs();
    }
    CHECK(on_device > done / 10 * 9); // else what was checked is the host's own
    for (std::size_t span = 0; span < 2; ++span) {
        for (std::size_t shape = 0; shape < gpu::shape_count; ++shape) {
            CAPTURE(span, shape);
            CHECK(by_shape[span][shape] >= RANDOM_PAIRS / 4 / 2000);
            CHECK(one_by_one[span][shape] >= RANDOM_PAIRS / 4 / 10000);
        }
    }
}

TEST_CASE("random pairs of random scores are aligned as the oracle does, in each kernel (1 of 4)") {
    check_random_pairs(1);
}

TEST_CASE("random pairs of random scores are aligned as the oracle does, in each kernel (2 of 4)") {
    check_random_pairs(101);
}

TEST_CASE("random pairs of random scores are aligned as the oracle does, in each kernel (3 of 4)") {
    check_random_pairs(102);
}

TEST_CASE("random pairs of random scores are aligned as the oracle does, in each kernel (4 of 4)") {
    check_random_pairs(103);
}

TEST_CASE("at both ends of every tiling there is pairs are aligned as the oracle does") {
    // Gaps so dear that a query alignment to a target of some length takes 32 bits, however short the query is.
    constexpr Scores steep{.match = 7, .mismatch = -40, .unknown = -31, .gap_open = 60, .gap_extend = 60};
    Pairs random(2);
    std::set<std::tuple<Span, std::uint32_t, std::uint32_t>> seen;
    using Scheme = std::pair<Scores, Span>;
    for (const auto& [scores, span] :
         {Scheme{{}, Span::local}, Scheme{{}, Span::query}, Scheme{coarse, Span::local}, Scheme{steep, Span::query}}) {
        const bool needs_length = scores.match == steep.match;
        const Fit fit(scores, span);
        const auto target_size = [=](std::size_t size) {
            if (needs_length && size < 360) return 420 - size;
            return size < 200 ? size + 40 : 60;
        };
        const auto tiling_of = [&](std::size_t size) { return fit.of(size, target_size(size)); };
        for (std::size_t size = 1; size <= gpu::longest_query; ++size) {
            const auto tiling = tiling_of(size);
            REQUIRE(tiling);
            const bool last = size == gpu::longest_query || tiling_of(size + 1) != tiling;
            if (!last && size > 1 && tiling_of(size - 1) == tiling) continue;
            seen.insert({span, tiling->shape, tiling->threads});
            Tasks tasks;
            const std::string target = random.bases(target_size(size), "ACGT");
            // Two that may share a pack, and one beside them.
            tasks.add(target, {read_of(random, target, size), read_of(random, target, size),
                               read_of(random, target, last ? size + 1 : size - 1)});
            tasks.check(scores, span);
        }
    }
    for (const Span span : spans) {
        for (std::uint32_t shape = 0; shape < gpu::shape_count; ++shape) {
            CAPTURE(span == Span::local, shape);
            const auto of_shape = [&](const auto& tiling) {
                return std::get<0>(tiling) == span && std::get<1>(tiling) == shape;
            };
            CHECK(std::count_if(seen.begin(), seen.end(), of_shape) >= 3);
        }
        const auto wide = gpu::shape_count - 1;
        REQUIRE_FALSE(gpu::shapes[wide].packed);
        for (std::uint32_t threads = 2; threads <= gpu::warp_size; ++threads) {
            CAPTURE(span == Span::local, threads);
            CHECK(seen.count({span, wide, threads}) == 1);
        }
    }
}

TEST_CASE("targets of every length from 1 on end where the oracle ends them, with every instruction set") {
    Pairs random(3);
    for (const Span span : spans) {
        for (std::size_t size = 1; size <= 80; ++size) {
            Tasks tasks;
            const std::string target = random.bases(size, size % 3 == 0 ? "AC" : "ACGT");
            tasks.add(target, {read_of(random, target, 45), read_of(random, target, 9), target, "N"});
            // Tiles whose packs have targets of very different lengths.
            tasks.add(random.bases(100 + random.under(100), "ACGT"), {random.bases(45, "ACGT"), random.bases(9, "AC")});
            for (const Isa isa : available_isas()) { // of what the host does from score and end on
                const ForcedIsa forced(isa);
                tasks.check({}, span, isa == available_isas().front());
            }
        }
    }
}

TEST_CASE("an instruction set that this machine lacks is refused by a device form, too") {
    const std::vector<Isa> available = available_isas();
    const auto lacks = [&](Isa isa) { return std::find(available.begin(), available.end(), isa) == available.end(); };
    const ForcedIsa forced(lacks(Isa::neon) ? Isa::neon : Isa::avx2);
    HostDevice device({.asynchronous = false});
    Tasks tasks;
    tasks.add("ACGT", {"ACG"});
    CHECK_THROWS_WITH(tasks.align_on(device, {}, Span::local), Catch::Contains("SPILLWAY_ISA"));
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
    const Scores unbounded{.gap_extend = 0}, reopened{.gap_open = 1, .gap_extend = 3};
    for (const Span span : spans) {
        CHECK_FALSE(Fit(high, span).of(100, 100));
        CHECK(Fit(divisible, span).of(100, 100)); // 3, -5, -7, 9, 1
        CHECK_FALSE(Fit(unbounded, span).of(100, 100));
        Pairs random(7);
        Tasks tasks;
        for (int i = 0; i < 50; ++i) tasks.add_random(random, 80);
        tasks.check(high, span);
        tasks.check(divisible, span);
        tasks.check(unbounded, span);
        tasks.check(reopened, span);
    }
}

TEST_CASE("staging that holds a batch exactly is enough, for a byte less and for a pair more it is refused") {
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

    const auto staging = device.make_staging(least);
    const auto stream = device.make_stream();
    aligner.pack(all, *staging);
    aligner.launch(*staging, *stream);
    stream->synchronise();
    aligner.unpack(*staging, all);
    for (const AlignmentTask& task : all) {
        const std::string_view query = task.queries[0];
        require_equal(task.found[0], align_scalar(query, task.target, {}, Span::local), query, task.target, {},
                      Span::local);
    }
    std::vector<AlignmentTask> one_more = all;
    const std::vector<std::string_view> smallest{"A"};
    std::vector<Alignment> found(1);
    one_more.push_back({all.back().target, smallest, found});
    try {
        aligner.pack(one_more, *staging);
        FAIL("a pair more than the staging holds was packed");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::usage);
    }
}

TEST_CASE("what a device gives that no pair can have is a failure of its work") {
    HostDevice device({.asynchronous = false});
    for (const Span span : spans) {
        const DeviceAligner aligner({}, span);
        Tasks tasks;
        tasks.add("ACGTACGTAC", {"ACGTA", "CGTCC", "GTACGTACGT"});
        tasks.add("GGGTTT", {"GGGTTTA"});
        const std::vector<AlignmentTask> all = tasks.tasks();
        const auto staging = device.make_staging(tasks.bytes());
        const auto stream = device.make_stream();
        aligner.pack(all, *staging);
        aligner.launch(*staging, *stream);
        stream->synchronise();
        const gpu::Layout& layout = gpu::Layout::of(staging->host());
        auto* const ends = reinterpret_cast<gpu::End*>(staging->host().data() + layout.ends_at);
        const auto refused = [&](std::size_t pair, std::int32_t gpu::End::*member, std::int32_t value) {
            CAPTURE(pair, value);
            const std::int32_t right = std::exchange(ends[pair].*member, value);
            try {
                aligner.unpack(*staging, all);
                FAIL_CHECK("it was taken");
            } catch (const DeviceError& error) {
                CHECK(error.fault() == DeviceFault::launch_failed);
            }
            ends[pair].*member = right;
        };
        for (const std::size_t pair : {0U, 3U}) {
            // A match is 2, reduced; 16 bits that overflow come to less than the least there can be.
            const std::int32_t size = pair == 0 ? 5 : 6;
            refused(pair, &gpu::End::score, 2 * size + 1);
            refused(pair, &gpu::End::score, -32768);
            if (span == Span::local) refused(pair, &gpu::End::score, -1);
            refused(pair, &gpu::End::query_end, 11);
            refused(pair, &gpu::End::query_end, -1);
            refused(pair, &gpu::End::target_end, 11);
            refused(pair, &gpu::End::target_end, -1);
            refused(pair, &gpu::End::target_begin, -2);
            refused(pair, &gpu::End::target_begin, 12);
        }
        aligner.unpack(*staging, all);
        CHECK(all[0].found[0] == align_scalar("ACGTA", all[0].target, {}, span));
    }
}

TEST_CASE("a haplotype that several tasks share is sent once, whatever lies between them") {
    const DeviceAligner aligner({}, Span::local);
    HostDevice device({.asynchronous = false});
    const std::string first(5000, 'A'), second(1000, 'C');
    const std::vector<std::string_view> queries{"AAAA", "AAC", "CCC"};
    // The last: begins where the first does, and is another one.
    const std::vector<std::string_view> targets{first, first,  second,
                                                first, second, std::string_view(first).substr(0, 3)};
    std::vector<std::vector<Alignment>> found(targets.size(), std::vector<Alignment>(queries.size()));
    std::vector<AlignmentTask> tasks;
    for (std::size_t t = 0; t < targets.size(); ++t) tasks.push_back({targets[t], queries, found[t]});
    const auto staging = device.make_staging(8500); // of 17,000 that all would take
    const auto stream = device.make_stream();
    aligner.pack(tasks, *staging);
    aligner.launch(*staging, *stream);
    stream->synchronise();
    aligner.unpack(*staging, tasks);
    for (std::size_t t = 0; t < targets.size(); ++t) {
        for (std::size_t q = 0; q < queries.size(); ++q) {
            CAPTURE(t, q);
            CHECK(found[t][q] == align_scalar(queries[q], targets[t], {}, Span::local));
        }
    }
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
