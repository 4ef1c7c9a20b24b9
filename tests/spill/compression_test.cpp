// Compressed records come back, and whether to compress follows what the disk and LZ4 are measured to take.
#include "scratch.hpp"

#include <catch2/catch.hpp>

using namespace spillway;
using namespace spillway::test;
using namespace std::chrono_literals;

namespace {

/// Half of it is the other half again.
Bytes repeated(std::mt19937_64& random, std::size_t size) {
    Bytes bytes = random_bytes(random, size);
    std::copy(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size / 2),
              bytes.begin() + static_cast<std::ptrdiff_t>(size / 2));
    return bytes;
}

SegmentShape compressing() {
    SegmentShape shape = small_segments;
    shape.compression = Compression::Choice::always;
    return shape;
}

constexpr std::uint64_t mib = std::uint64_t{1} << 20U;

/// As if that much had been written and read at so many nanoseconds a byte.
void measure(Compression& compression, std::int64_t nanoseconds) {
    for (int i = 0; i < 64; ++i) {
        compression.written(mib, std::chrono::nanoseconds(nanoseconds * static_cast<std::int64_t>(mib)));
        compression.read(mib, std::chrono::nanoseconds(nanoseconds * static_cast<std::int64_t>(mib)));
    }
}

/// Of a thousand records.
int compressed(Compression& compression) {
    int count = 0;
    for (int i = 0; i < 1000; ++i) count += compression.wanted() ? 1 : 0;
    return count;
}

} // namespace

TEST_CASE("compressed records of every size come back, from buffers, segments and the oversize file") {
    const ScratchDirectory scratch;
    SpillStore store(scratch.options(), 2, system_files(), compressing());
    std::mt19937_64 random(8); // NOLINT: a fixed seed is wanted
    std::vector<Written> written;
    for (const std::size_t size :
         {0UL, 1UL, 2UL, 13UL, 64UL, 1000UL, 65000UL, 130000UL, 150000UL, 900000UL, 2100000UL, 3000000UL, 5000000UL}) {
        for (const bool shrinks : {true, false}) {
            Written record{{}, shrinks ? repeated(random, size) : random_bytes(random, size)};
            record.place = write_surely(store, static_cast<unsigned>(size % 2), record.bytes);
            CHECK(record.place.length <= size);
            written.push_back(std::move(record));
        }
    }
    const Bytes zeros(6000000);
    written.push_back({write_surely(store, 0, zeros), zeros});
    CHECK(written.back().place.length < 30000);
    Bytes out;
    for (const Written& record : written) {
        store.read(record.place, out);
        CHECK(out == record.bytes);
    }
    const SpillStatistics statistics = store.statistics();
    CHECK(statistics.bytes_read == statistics.bytes_written);
    CHECK(statistics.bytes_stored < statistics.bytes_written);
    for (const Written& record : written) store.release(record.place);
    CHECK(store.statistics().bytes_live == 0);
}

TEST_CASE("what does not get shorter is stored as it is") {
    const ScratchDirectory scratch;
    SpillStore store(scratch.options(), 1, system_files(), compressing());
    std::mt19937_64 random(9); // NOLINT: a fixed seed is wanted
    for (const std::size_t size : {0UL, 1UL, 5UL, 500UL, 50000UL, 500000UL}) {
        const Bytes bytes = random_bytes(random, size);
        CHECK(write_surely(store, 0, bytes).length == size);
    }
}

TEST_CASE("a block that is cut, longer than its length or of another length does not decompress") {
    std::mt19937_64 random(10); // NOLINT: a fixed seed is wanted
    const Bytes bytes = repeated(random, 4000);
    Compression compression(Compression::Choice::always);
    Bytes room;
    const std::span<const std::byte> block = compression.compress(bytes, room);
    REQUIRE(!block.empty());
    Bytes raw(bytes.size());
    REQUIRE(decompress(block, raw));
    CHECK(raw == bytes);
    for (std::size_t length = 0; length < block.size(); ++length) {
        if (decompress(block.first(length), raw)) FAIL("cut at " << length);
    }
    Bytes longer(bytes.size() + 1), shorter(bytes.size() - 1);
    CHECK_FALSE(decompress(block, longer));
    CHECK_FALSE(decompress(block, shorter));
}

TEST_CASE("a fast disk is not made to wait for compressing, a slow one is, and the border has two sides") {
    std::mt19937_64 random(11); // NOLINT: a fixed seed is wanted
    const Bytes bytes = repeated(random, 100000);
    Bytes room;
    Compression fast(Compression::Choice::measured);
    CHECK(compressed(fast) == 0); // nothing is known yet: as a fast disk
    measure(fast, 0);
    CHECK(compressed(fast) == 0);
    // 50 MB/s: 40 ns for each byte to and fro, half of which compressing saves.
    Compression slow(Compression::Choice::measured);
    measure(slow, 20);
    CHECK(compressed(slow) == 1000);
    for (int i = 0; i < 6; ++i) measure(slow, 0); // what was long ago fades
    CHECK(compressed(slow) == 0);
    // Taken for granted until measured: 2.5 ns for compressing and back, a third saved. So it begins where the disk
    // takes 2.5 / 0.8 x 3 = 9.4 ns, and ends where it takes 7.6.
    Compression between(Compression::Choice::measured);
    measure(between, 4);
    CHECK(compressed(between) <= 1000 / 64 + 1); // trials
    measure(between, 5);
    CHECK(compressed(between) == 1000);
    measure(between, 4);
    CHECK(compressed(between) == 1000);
    measure(between, 3);
    CHECK(compressed(between) <= 1000 / 64 + 1);
}

TEST_CASE("what does not shrink is soon not compressed any more, however slow the disk") {
    std::mt19937_64 random(12); // NOLINT: a fixed seed is wanted
    const Bytes bytes = random_bytes(random, 1 << 20U);
    Bytes room;
    Compression compression(Compression::Choice::measured);
    measure(compression, 100);
    REQUIRE(compression.wanted());
    for (int i = 0; i < 8; ++i) CHECK(compression.compress(bytes, room).empty());
    CHECK(compressed(compression) <= 1000 / 64 + 1);
}
