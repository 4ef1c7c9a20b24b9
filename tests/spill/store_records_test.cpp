// What is written comes back, from wherever it lies; what is damaged does not.
#include "scratch.hpp"

#include <catch2/catch.hpp>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <thread>

#include <sys/stat.h>
#include <unistd.h>

using namespace spillway;
using namespace spillway::test;

TEST_CASE("records of every size come back as they were written, in any order, from any seat") {
    ScratchDirectory scratch;
    SpillStore store(scratch.options(), 3, system_files(), small_segments);
    std::mt19937_64 random(5); // NOLINT: a fixed seed is wanted
    std::deque<Written> live;
    Bytes out;
    std::uint64_t live_bytes = 0;
    for (int step = 0; step != 2000; ++step) {
        const std::uint64_t kind = random() % 100;
        std::size_t size = random() % 2000;
        if (kind < 5) size = 60000 + random() % 12000; // About the border of what is gathered.
        if (kind == 99) size = 900000 + random() % 200000;
        if (kind == 50) size = 0;
        Written written{{}, random_bytes(random, size)};
        written.place = write_surely(store, static_cast<unsigned>(random() % 3), written.bytes);
        live_bytes += size;
        live.push_back(std::move(written));
        while (live.size() > 200 || (!live.empty() && random() % 3 == 0)) {
            const std::size_t victim = random() % live.size();
            store.read(live[victim].place, out);
            REQUIRE(out == live[victim].bytes);
            store.release(live[victim].place);
            live_bytes -= live[victim].bytes.size();
            live.erase(live.begin() + static_cast<std::ptrdiff_t>(victim));
        }
        REQUIRE(store.statistics().bytes_live == live_bytes);
    }
    CHECK(scratch.empty());
    CHECK(store.statistics().records_written == 2000);
    CHECK(store.statistics().failed_writes == 0);
    for (const Written& written : live) store.release(written.place);
    CHECK(store.statistics().bytes_live == 0);
}

TEST_CASE("a drained segment goes back to the disk and is used again") {
    ScratchDirectory scratch;
    SpillStore store(scratch.options(), 1, system_files(), small_segments);
    constexpr std::size_t size = 70000;
    std::deque<std::pair<SpillPlace, std::uint64_t>> live;
    Bytes out;
    for (std::uint64_t i = 0; i != 200; ++i) {
        live.emplace_back(write_surely(store, 0, bytes_of(i, size)), i);
        if (live.size() == 20) {
            store.read(live.front().first, out);
            REQUIRE(out == bytes_of(live.front().second, size));
            store.release(live.front().first);
            live.pop_front();
        }
    }
    // 20 records span at most three segments of 14.
    CHECK(store.statistics().segments == 3);
    CHECK(store.statistics().segments_reused >= 3);
    CHECK(store.statistics().bytes_on_disk <= 3 * segment_bytes);
    for (const auto& [place, seed] : live) {
        store.read(place, out);
        REQUIRE(out == bytes_of(seed, size));
        store.release(place);
    }
    // Only the open segment is left.
    CHECK(store.statistics().bytes_on_disk <= segment_bytes);
}

TEST_CASE("blocks of drained segments are the disk's again") {
    ScratchDirectory scratch;
    const auto files = std::make_shared<FaultyFiles>();
    SpillStore store(scratch.options(), 1, files, small_segments);
    std::vector<SpillPlace> places;
    for (std::uint64_t i = 0; i != 140; ++i) places.push_back(write_surely(store, 0, bytes_of(i, 70000)));
    const auto blocks = [&] {
        std::uint64_t bytes = 0;
        for (const int file : files->opened) {
            struct stat status {};
            if (::fstat(file, &status) == 0 && S_ISREG(status.st_mode)) bytes += std::uint64_t(status.st_blocks) * 512;
        }
        return bytes;
    };
    CHECK(blocks() > 135 * 70000U);
    for (const SpillPlace& place : places) store.release(place);
    CHECK(blocks() <= segment_bytes);
}

namespace {

SegmentShape keeping(std::uint64_t bytes) {
    SegmentShape shape = small_segments;
    shape.kept = bytes;
    return shape;
}

} // namespace

TEST_CASE("some drained segments keep their blocks, and are written again before any other") {
    ScratchDirectory scratch;
    SpillStore store(scratch.options(), 1, system_files(), keeping(3 * segment_bytes));
    Bytes out;
    for (int round = 0; round != 3; ++round) {
        std::vector<SpillPlace> places;
        for (std::uint64_t i = 0; i != 140; ++i) places.push_back(write_surely(store, 0, bytes_of(i, 70000)));
        CHECK(store.statistics().segments == 10); // of 14 records each
        for (std::uint64_t i = 0; i != places.size(); ++i) {
            store.read(places[i], out);
            REQUIRE(out == bytes_of(i, 70000));
            store.release(places[i]);
        }
        CHECK(store.statistics().bytes_live == 0);
        // Three are kept, and one is open.
        CHECK(store.statistics().bytes_on_disk > 3 * 14 * 70000U);
        CHECK(store.statistics().bytes_on_disk <= 4 * segment_bytes);
    }
}

TEST_CASE("at the disk limit, and on a full disk, what drained segments keep makes room") {
    ScratchDirectory scratch;
    SpillOptions options = scratch.options();
    options.disk_limit = 8 * segment_bytes;
    const auto files = std::make_shared<FaultyFiles>();
    SpillStore store(options, 2, files, keeping(segment_bytes));
    std::vector<SpillPlace> places;
    for (std::uint64_t i = 0; i != 15; ++i) places.push_back(write_surely(store, 0, bytes_of(i, 70000)));
    for (const SpillPlace& place : places) store.release(place);
    const std::uint64_t kept = 14 * 70000U;
    REQUIRE(store.statistics().bytes_on_disk > kept);

    SECTION("a long record takes it at the limit") {
        const SpillPlace place = write_surely(store, 1, bytes_of(9, 7 * segment_bytes + segment_bytes / 2));
        CHECK(store.statistics().bytes_on_disk <= options.disk_limit);
        Bytes out;
        store.read(place, out);
        CHECK(out == bytes_of(9, 7 * segment_bytes + segment_bytes / 2));
        store.release(place);
        for (SpillPlace& again : places) again = write_surely(store, 0, bytes_of(7, 70000));
        for (const SpillPlace& again : places) store.release(again);
        CHECK(store.statistics().bytes_on_disk > kept); // as before
    }
    SECTION("a record is written again when the disk was full") {
        const int error = GENERATE(ENOSPC, EDQUOT);
        const std::size_t size = GENERATE(std::size_t{70000}, 2 * segment_bytes);
        files->fault = {.error = error};
        files->fail_call = 0;
        const SpillPlace place = write_surely(store, 0, bytes_of(9, size));
        CHECK(store.statistics().bytes_on_disk < kept + size);
        Bytes out;
        store.read(place, out);
        CHECK(out == bytes_of(9, size));
        files->fail_call = 0; // nothing is left to make room with
        CHECK(store.write(0, {}, bytes_of(1, size)).error == error);
    }
}

TEST_CASE("seats keep to the disk limit together, also with what none of them has written yet") {
    ScratchDirectory scratch;
    SpillOptions options = scratch.options();
    options.disk_limit = 300'000;
    constexpr unsigned seats = 8;
    SpillStore store(options, seats, system_files(), small_segments);
    std::vector<SpillPlace> places;
    std::vector<unsigned> refused(seats);
    for (int round = 0; round != 1000; ++round) {
        for (unsigned seat = 0; seat != seats; ++seat) {
            const SpillResult result = store.write(seat, {}, bytes_of(places.size(), 1000));
            if (result)
                places.push_back(result.place);
            else
                REQUIRE(result.error == ENOSPC);
            if (!result) ++refused[seat];
        }
    }
    CHECK(store.statistics().bytes_on_disk <= options.disk_limit);
    CHECK(places.size() * 1000 <= options.disk_limit);
    CHECK(places.size() * 1100 > options.disk_limit - seats * (segment_header_bytes + 1100));
    CHECK(std::all_of(refused.begin(), refused.end(), [](unsigned times) { return times > 0; }));
    Bytes out;
    for (std::size_t i = 0; i != places.size(); ++i) {
        store.read(places[i], out);
        REQUIRE(out == bytes_of(i, 1000));
        store.release(places[i]);
    }
}

TEST_CASE("of a segment that is written again what the shorter use leaves behind goes back to the disk") {
    ScratchDirectory scratch;
    SpillStore store(scratch.options(), 1, system_files(), keeping(segment_bytes));
    for (int round = 0; round != 3; ++round) {
        std::vector<SpillPlace> places;
        for (std::uint64_t i = 0; i != 15; ++i) places.push_back(write_surely(store, 0, bytes_of(i, 70000)));
        for (const SpillPlace& place : places) store.release(place);
        CHECK(store.statistics().bytes_on_disk > 14 * 70000U); // one is kept, and one is open
        // The open one takes two of these, the kept one after it one, which ends far before the last use did.
        places.clear();
        for (std::uint64_t i = 0; i != 3; ++i) places.push_back(write_surely(store, 0, bytes_of(i, 400000)));
        places.push_back(write_surely(store, 0, bytes_of(9, 900000)));
        const std::uint64_t live = store.statistics().bytes_live;
        CHECK(store.statistics().bytes_on_disk <= live + 3 * 70000U + segment_bytes / 8);
        Bytes out;
        store.read(places.back(), out);
        CHECK(out == bytes_of(9, 900000));
        for (const SpillPlace& place : places) store.release(place);
    }
}

TEST_CASE("a record longer than a segment gets an extent of its own and gives it back") {
    ScratchDirectory scratch;
    SpillStore store(scratch.options(), 2, system_files(), small_segments);
    const std::size_t size = segment_bytes + 12345;
    const Bytes bytes = bytes_of(7, size);
    for (int round = 0; round != 2; ++round) {
        const SpillPlace first = write_surely(store, 0, bytes);
        const SpillPlace second = write_surely(store, 1, bytes_of(8, size));
        CHECK(store.statistics().bytes_on_disk >= 2 * size);
        Bytes out;
        store.read(first, out);
        CHECK(out == bytes);
        store.release(first);
        store.read(second, out);
        CHECK(out == bytes_of(8, size));
        store.release(second);
        CHECK(store.statistics().bytes_on_disk == 0);
    }
    // The longest record that a segment takes, and one byte more.
    const std::size_t longest = segment_bytes - segment_header_bytes - sizeof(StoredHeader);
    const SpillPlace fits = write_surely(store, 0, bytes_of(1, longest));
    const SpillPlace exceeds = write_surely(store, 0, bytes_of(2, longest + 1));
    CHECK(fits.segment != exceeds.segment);
    CHECK(exceeds.segment == ~std::uint32_t{0});
    Bytes out;
    store.read(fits, out);
    CHECK(out == bytes_of(1, longest));
    store.read(exceeds, out);
    CHECK(out == bytes_of(2, longest + 1));
}

TEST_CASE("the bytes on disk are those of the written format") {
    ScratchDirectory scratch;
    const auto files = std::make_shared<FaultyFiles>();
    SpillStore store(scratch.options(), 1, files, usual_segments);
    const Bytes payload = bytes_of(3, 100001);
    const SpillPlace place = write_surely(store, 0, payload);
    int data_file = -1; // The first opened is the directory, the second the file of segment 0.
    REQUIRE(files->opened.size() == 2);
    data_file = files->opened[1];
    Bytes file(4096 + 48 + 100008);
    REQUIRE(::pread(data_file, file.data(), file.size(), 0) == 4096 + 48 + 100001 + 7);

    const auto word = [&](std::size_t offset) {
        std::uint64_t value = 0;
        std::memcpy(&value, &file[offset], 8);
        return value;
    };
    CHECK(std::memcmp(file.data(), "SPILLSEG", 8) == 0);
    CHECK(word(8) == (std::uint64_t{0x01020304} << 32U | 2));
    CHECK(word(40) == 0);
    CHECK(word(48) == 67108864);
    CHECK(word(56) == XXH3_64bits(file.data(), 56));
    CHECK(std::all_of(file.begin() + 64, file.begin() + 4096, [](std::byte byte) { return byte == std::byte{0}; }));
    const std::uint64_t salt = word(32);
    CHECK(place.offset == 4096 / 8);
    for (std::size_t i = 0; i != 4; ++i) CHECK(word(4096 + 8 * i) == i + 1);
    CHECK(word(4096 + 32) == (std::uint64_t{100001} << 32U | 100001)); // stored and raw
    Bytes header(file.begin() + 4096, file.begin() + 4096 + 48);
    std::memset(&header[40], 0, 8);
    CHECK(word(4096 + 40) ==
          XXH3_64bits_withSeed(payload.data(), payload.size(), XXH3_64bits_withSeed(header.data(), 48, salt)));
    CHECK(place.check == (word(4096 + 40) & 0xffffffffU));
    CHECK(std::memcmp(&file[4096 + 48], payload.data(), payload.size()) == 0);
}

TEST_CASE("a flipped bit anywhere in a record is found, in the buffer's records after they reach the disk too") {
    ScratchDirectory scratch;
    const auto files = std::make_shared<FaultyFiles>();
    SpillStore store(scratch.options(), 1, files, usual_segments);
    const SpillPlace small = write_surely(store, 0, bytes_of(1, 333));
    const SpillPlace large = write_surely(store, 0, bytes_of(2, 100000)); // Takes the small one with it to the file.
    const int file = files->opened.at(1);
    Bytes out;
    std::mt19937_64 random(2); // NOLINT: a fixed seed is wanted
    for (const auto& [place, length] : {std::pair(small, std::size_t{333}), std::pair(large, std::size_t{100000})}) {
        for (std::size_t i = 0; i != 48 * 8 + 200; ++i) {
            const std::size_t bit = i < 48 * 8 ? i : 48 * 8 + random() % (length * 8);
            const off_t at = off_t{place.offset} * 8 + static_cast<off_t>(bit / 8);
            unsigned char byte = 0;
            REQUIRE(::pread(file, &byte, 1, at) == 1);
            const auto flipped = static_cast<unsigned char>(byte ^ 1U << bit % 8);
            REQUIRE(::pwrite(file, &flipped, 1, at) == 1);
            CHECK(read_failure(store, place).find("restoring a spilled candidate: " + scratch.path()) == 0);
            REQUIRE(::pwrite(file, &byte, 1, at) == 1);
        }
        CHECK(read_failure(store, place).empty());
    }
}

TEST_CASE("a file cut short is found") {
    ScratchDirectory scratch;
    const auto files = std::make_shared<FaultyFiles>();
    SpillStore store(scratch.options(), 1, files, usual_segments);
    const SpillPlace place = write_surely(store, 0, bytes_of(2, 100000));
    REQUIRE(::ftruncate(files->opened.at(1), 4096 + 48 + 99999) == 0);
    CHECK(read_failure(store, place).find("the file ends before the record does") != std::string::npos);
}

TEST_CASE("a place out of date, of another store or out of range is an error") {
    ScratchDirectory scratch;
    SpillStore store(scratch.options(), 1);
    const SpillPlace place = write_surely(store, 0, bytes_of(1, 70000));
    SpillPlace wrong = place;
    wrong.check ^= 1U;
    CHECK(read_failure(store, wrong).find("another record lies in its place") != std::string::npos);
    wrong = place;
    wrong.length -= 1;
    CHECK(!read_failure(store, wrong).empty());
    wrong = place;
    wrong.offset += 1;
    CHECK(!read_failure(store, wrong).empty());
    wrong = place;
    wrong.segment = 1;
    CHECK(read_failure(store, wrong).find("there is no such place") != std::string::npos);
    wrong = place;
    wrong.length = ~std::uint32_t{0};
    CHECK(read_failure(store, wrong).find("there is no such place") != std::string::npos);
    SpillStore other(scratch.options(), 1);
    static_cast<void>(write_surely(other, 0, bytes_of(1, 70000)));
    CHECK(!read_failure(other, place).empty());
}

TEST_CASE("seats write while others read and release what they wrote") {
    ScratchDirectory scratch;
    constexpr unsigned seats = 3;
    constexpr std::uint64_t records = 2000;
    SpillStore store(scratch.options(), seats, system_files(), small_segments);
    struct Box {
        std::atomic<bool> full{false};
        SpillPlace place;
        std::uint64_t seed = 0;
        std::size_t size = 0;
    };
    // Each seat writes into its row of boxes; the next seat's thread empties them, a few behind, so that reads meet
    // records in the buffer, on the way out of it, and on disk.
    std::vector<std::vector<Box>> rows(seats);
    for (auto& row : rows) row = std::vector<Box>(records);
    std::atomic<std::uint64_t> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned seat = 0; seat != seats; ++seat) {
        threads.emplace_back([&, seat] {
            std::mt19937_64 random(seat); // NOLINT: a fixed seed is wanted
            Bytes out;
            std::uint64_t read = 0;
            auto& mine = rows[seat];
            auto& others = rows[(seat + 1) % seats];
            for (std::uint64_t i = 0; i != records || read != records;) {
                if (i != records) {
                    Box& box = mine[i];
                    box.seed = seat * records + i;
                    box.size = random() % 50 == 0 ? 70000 : random() % 20000;
                    const SpillResult result = store.write(seat, {i, 0, 0, 0}, bytes_of(box.seed, box.size));
                    if (!result) ++wrong;
                    box.place = result.place;
                    box.full.store(true, std::memory_order_release);
                    ++i;
                }
                while (read != records && others[read].full.load(std::memory_order_acquire) &&
                       (i == records || random() % 4 != 0)) {
                    Box& box = others[read++];
                    store.read(box.place, out);
                    if (out != bytes_of(box.seed, box.size)) ++wrong;
                    store.release(box.place);
                }
                if (i == records) std::this_thread::yield();
            }
        });
    }
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(store.statistics().bytes_live == 0);
    CHECK(store.statistics().records_read == seats * records);
}
