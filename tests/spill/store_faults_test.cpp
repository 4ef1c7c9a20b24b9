// Disks that are full, failing or limited.
#include "scratch.hpp"

#include <catch2/catch.hpp>

#include <cerrno>
#include <memory>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace spillway;
using namespace spillway::test;

TEST_CASE("whichever call fails, and however, a write succeeds or keeps nothing, and what was written stays readable") {
    struct Fault {
        const char* name;
        int error;
    };
    for (const Fault fault : {Fault{"ENOSPC", ENOSPC}, Fault{"EIO", EIO}, Fault{"EINTR", EINTR}, Fault{"half", 0}}) {
        for (long k = 0;; ++k) {
            INFO(fault.name << " at call " << k);
            ScratchDirectory scratch;
            const auto files = std::make_shared<FaultyFiles>();
            files->fail_call = k;
            files->fault.error = fault.error;
            std::vector<Written> written;
            Bytes out;
            std::unique_ptr<SpillStore> store;
            try {
                store = std::make_unique<SpillStore>(scratch.options(), 2, files, small_segments);
            } catch (const Error& error) {
                CHECK(fault.error != EINTR);
                CHECK(error.code() == ErrorCode::disk);
                CHECK(scratch.empty());
                continue;
            }
            const auto read_back = [&](const Written& record) {
                try {
                    store->read(record.place, out);
                } catch (const Error& error) {
                    CHECK(fault.error != EINTR);
                    CHECK(fault.error != 0);
                    CHECK(error.code() == ErrorCode::disk);
                    store->read(record.place, out); // Only the one call failed.
                }
                REQUIRE(out == record.bytes);
            };
            std::uint64_t failures = 0;
            for (std::uint64_t i = 0; i != 20; ++i) {
                // Some gathered, some not, and enough for a few rounds of writing back.
                Written record{{}, bytes_of(i, i % 8 == 7 ? 270000 : (i % 3) * 30000 + 1000)};
                const SpillResult result = store->write(static_cast<unsigned>(i % 2), {i, 0, 0, 0}, record.bytes);
                if (result) {
                    record.place = result.place;
                    written.push_back(std::move(record));
                    if (i % 4 == 0) read_back(written.back());
                } else {
                    CHECK(result.error == fault.error);
                    CHECK(fault.error != EINTR);
                    ++failures;
                }
            }
            CHECK(failures <= 1);
            CHECK(store->statistics().failed_writes == failures);
            for (const Written& record : written) read_back(record);
            const std::uint64_t live = store->statistics().bytes_live;
            std::uint64_t expected = 0;
            for (const Written& record : written) expected += record.bytes.size();
            CHECK(live == expected);
            for (const Written& record : written) store->release(record.place);
            CHECK(scratch.empty());
            if (files->fail_call >= 0) break; // It was never reached: all have been.
        }
    }
}

TEST_CASE("a disk that is full for a while refuses records, keeps the gathered ones, and then goes on") {
    ScratchDirectory scratch;
    const auto files = std::make_shared<FaultyFiles>();
    SpillStore store(scratch.options(), 1, files);
    std::vector<Written> gathered;
    for (std::uint64_t i = 0; i != 10; ++i) {
        Written record{{}, bytes_of(i, 50000)};
        record.place = write_surely(store, 0, record.bytes);
        gathered.push_back(std::move(record));
    }
    files->fail_writes = ENOSPC;
    for (int i = 0; i != 5; ++i) CHECK(store.write(0, {}, bytes_of(99, 200000)).error == ENOSPC);
    CHECK(store.statistics().failed_writes == 5);
    CHECK(store.statistics().last_error == ENOSPC);
    Bytes out;
    for (const Written& record : gathered) {
        store.read(record.place, out);
        CHECK(out == record.bytes);
    }
    files->fail_writes = 0;
    const SpillPlace place = write_surely(store, 0, bytes_of(99, 200000));
    store.read(place, out);
    CHECK(out == bytes_of(99, 200000));
    for (const Written& record : gathered) {
        store.read(record.place, out);
        CHECK(out == record.bytes);
    }
}

TEST_CASE("the disk limit holds and room given back counts") {
    ScratchDirectory scratch;
    SpillOptions options = scratch.options();
    options.disk_limit = 3000000;
    SpillStore store(options, 1, system_files(), small_segments);
    const std::vector<SpillPlace> places = fill_up(store);
    CHECK(places.size() >= 40);
    CHECK(store.statistics().bytes_on_disk <= options.disk_limit);
    CHECK(store.write(0, {}, bytes_of(1, 2900000)).error == ENOSPC);
    for (const SpillPlace& place : places) store.release(place);
    static_cast<void>(write_surely(store, 0, bytes_of(1, 70000)));
}

TEST_CASE("without a limit of the user's, nine tenths of what is free at the start are used, and no more") {
    const ScratchDirectory scratch;
    const auto files = std::make_shared<FaultyFiles>();
    files->free_bytes = 4000000;
    SpillStore store(scratch.options(), 1, files, small_segments);
    const std::vector<SpillPlace> places = fill_up(store);
    CHECK(store.statistics().bytes_on_disk <= 3600000);
    CHECK(store.statistics().bytes_on_disk > 3600000 - 2 * 70056);
    CHECK(places.size() >= 45);
}

TEST_CASE("a file size limit refuses records and kills nobody") {
    ScratchDirectory scratch;
    const pid_t child = ::fork();
    if (child == 0) {
        rlimit limit{};
        limit.rlim_cur = limit.rlim_max = 1000000;
        bool right = ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
        SpillStore store(scratch.options(), 1);
        int error = 0;
        for (int i = 0; i != 20 && error == 0; ++i) error = store.write(0, {}, bytes_of(1, 100000)).error;
        right = right && error == EFBIG && store.statistics().records_written >= 8;
        ::_exit(right ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}
