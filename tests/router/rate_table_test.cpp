#include "router/rate_table.hpp"

#include <catch2/catch.hpp>

#include <thread>
#include <vector>

using namespace spillway;
using std::chrono::nanoseconds;

namespace {

void record(RateTable& table, int times, std::size_t cells, std::int64_t ns) {
    for (int i = 0; i < times; ++i) table.record(cells, nanoseconds(ns));
}

} // namespace

TEST_CASE("nothing is expected of a table without samples") {
    RateTable table;
    CHECK_FALSE(table.expected(1));
    CHECK_FALSE(table.trusted(1));
    CHECK(table.rates().empty());
    CHECK(table.next_size() == 0);
    table.record(0, nanoseconds(5));
    CHECK_FALSE(table.expected(1));
}

TEST_CASE("a size is trusted from ten samples on") {
    RateTable table;
    record(table, 9, 1000, 4000);
    CHECK_FALSE(table.trusted(1000));
    record(table, 1, 600, 2400); // same power of two: 512 to 1023
    CHECK(table.trusted(1000));
    CHECK(table.trusted(512));
    CHECK_FALSE(table.trusted(1024));
    CHECK(*table.expected(1000) == Approx(4000));
}

TEST_CASE("the first samples count alike, but a much cheaper one voids what a cold start cost") {
    RateTable table;
    table.record(1024, nanoseconds(10240));
    table.record(1024, nanoseconds(12288));
    CHECK(*table.expected(1024) == Approx(11264));
    RateTable cold;
    cold.record(1024, nanoseconds(1'000'000));
    cold.record(1024, nanoseconds(10240));
    CHECK(*cold.expected(1024) == Approx(10240));
}

TEST_CASE("a trusted average moves by a sixteenth of the difference, and an outlier counts as one and a half") {
    RateTable table;
    record(table, 10, 1024, 1024 * 100);
    table.record(1024, nanoseconds(1024 * 132));
    CHECK(*table.expected(1024) == Approx(1024 * 102.0)); // 100 + 32 / 16
    RateTable dear;
    record(dear, 10, 1024, 1024 * 100);
    dear.record(1024, nanoseconds(1024 * 100'000));
    CHECK(*dear.expected(1024) == Approx(1024 * (100 + 50.0 / 16)));
    RateTable cheap;
    record(cheap, 10, 1024, 1024 * 90);
    cheap.record(1024, nanoseconds(1));
    CHECK(*cheap.expected(1024) == Approx(1024 * (90 - 30.0 / 16))); // clamped to 60
}

TEST_CASE("a size without samples goes by the nearest that has some, the larger first") {
    RateTable table;
    record(table, 10, 1 << 10, 10 << 10);
    record(table, 1, 1 << 14, 4 << 14);
    CHECK(*table.expected(1 << 9) == Approx(10 << 9));
    CHECK(*table.expected(1 << 11) == Approx(10 << 11));
    CHECK(*table.expected(1 << 12) == Approx(4 << 12));
    CHECK(*table.expected(1 << 20) == Approx(4 << 20));
    CHECK(*table.expected(SIZE_MAX) == Approx(4 * static_cast<double>(SIZE_MAX)));
    CHECK(table.next_size() == 1 << 16);
}

TEST_CASE("a batch that the clock cannot see is not free") {
    RateTable table;
    table.record(1024, nanoseconds(0));
    CHECK(*table.expected(1024) == Approx(1));
}

TEST_CASE("no sample is lost when many threads record at once") {
    RateTable table;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { record(table, 5000, 64, 640); });
    for (std::thread& thread : threads) thread.join();
    REQUIRE(table.rates().size() == 1);
    CHECK(table.rates()[0].log2_cells == 6);
    CHECK(table.rates()[0].samples == 20000);
    CHECK(table.rates()[0].nanoseconds_a_cell == Approx(10));
}
