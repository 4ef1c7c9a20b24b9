// Several spill directories: seats are spread over them, and what is full or fails is left alone.
#include "scratch.hpp"

#include <catch2/catch.hpp>

#include <cerrno>
#include <map>
#include <set>

using namespace spillway;
using namespace spillway::test;

namespace {

/// Writes to the files of one directory fail, and no others.
class OneBadDirectory : public FileSystem {
public:
    explicit OneBadDirectory(std::string bad) : bad_(std::move(bad)) {}

    std::atomic<int> error{0}; ///< If not 0, they fail with it.
    std::atomic<int> refused{0};

    int open(int directory, const char* path, int flags, unsigned mode) override {
        const int opened = FileSystem::open(directory, path, flags, mode);
        if (path == bad_) directory_ = opened;
        if (opened >= 0 && directory == directory_ && directory >= 0) files_.insert(opened);
        return opened;
    }
    std::int64_t write(int file, std::span<const iovec> pieces, std::uint64_t offset) override {
        if (error != 0 && files_.contains(file)) {
            ++refused;
            return -error;
        }
        return FileSystem::write(file, pieces, offset);
    }

private:
    std::string bad_;
    int directory_ = -1;
    std::set<int> files_;
};

SpillOptions over(const std::vector<const ScratchDirectory*>& directories) {
    SpillOptions options = directories[0]->options();
    for (std::size_t i = 1; i < directories.size(); ++i) options.more_directories.push_back(directories[i]->path());
    return options;
}

} // namespace

TEST_CASE("seats are spread over the directories, and every record comes back from its own") {
    const ScratchDirectory first, second, third;
    SpillStore store(over({&first, &second, &third}), 7, system_files(), small_segments);
    std::map<std::uint32_t, int> seats_of;
    std::vector<Written> written;
    for (unsigned seat = 0; seat < 7; ++seat) {
        for (std::uint64_t i = 0; i < 40; ++i) {
            Written record{{}, bytes_of(seat * 100 + i, i % 5 == 0 ? 80000 : 5000)};
            record.place = write_surely(store, seat, record.bytes);
            CHECK(record.place.disk == seat % 3);
            written.push_back(std::move(record));
        }
        ++seats_of[written.back().place.disk];
    }
    written.push_back({write_surely(store, 1, bytes_of(1, segment_bytes * 2)), bytes_of(1, segment_bytes * 2)});
    CHECK(seats_of == std::map<std::uint32_t, int>{{0, 3}, {1, 2}, {2, 2}});
    CHECK(store.statistics().segments == 7);
    Bytes out;
    for (const Written& record : written) {
        store.read(record.place, out);
        REQUIRE(out == record.bytes);
        store.release(record.place);
    }
    CHECK(store.statistics().bytes_live == 0);
    CHECK((first.empty() && second.empty() && third.empty()));
}

TEST_CASE(
    "a directory whose disk is full or fails is left alone, its gathered records stay, and later it is used again") {
    const int error = GENERATE(ENOSPC, EIO, EDQUOT);
    const ScratchDirectory good, bad;
    const auto files = std::make_shared<OneBadDirectory>(bad.path());
    SpillStore store(over({&good, &bad}), 2, files, small_segments);
    std::vector<Written> written;
    const auto write = [&](std::uint64_t i, std::size_t size) {
        Written record{{}, bytes_of(i, size)};
        record.place = write_surely(store, 1, record.bytes);
        written.push_back(std::move(record));
        return written.back().place.disk;
    };
    for (std::uint64_t i = 0; i < 10; ++i) CHECK(write(i, 5000) == 1); // into the seat's buffer
    files->error = error;
    for (std::uint64_t i = 0; i < 200; ++i) CHECK(write(i, 70000) == 0);
    CHECK(files->refused == 1); // not asked again each time
    CHECK(store.statistics().failed_writes == 0);
    CHECK(store.statistics().last_error == error);
    files->error = 0;
    bool again = false;
    for (std::uint64_t i = 0; i < 400; ++i) again = write(i, 1000) == 1 || again;
    CHECK(again);
    Bytes out;
    for (const Written& record : written) {
        store.read(record.place, out);
        REQUIRE(out == record.bytes);
        store.release(record.place);
    }
}

TEST_CASE("each directory has its own limit; when all are full a record stays, and room given back is found at once") {
    const ScratchDirectory first, second;
    SpillOptions options = over({&first, &second});
    options.disk_limit = 2000000;
    SpillStore store(options, 2, system_files(), small_segments);
    const std::vector<SpillPlace> places = fill_up(store);
    CHECK(places.size() >= 50); // 28 in each
    CHECK(store.statistics().bytes_on_disk <= 2 * options.disk_limit);
    for (int i = 0; i < 300; ++i) CHECK(store.write(1, {}, bytes_of(1, 70000)).error == ENOSPC); // never a lost record
    for (const SpillPlace& place : places) store.release(place);
    for (int i = 0; i < 10; ++i) static_cast<void>(write_surely(store, 0, bytes_of(1, 70000)));
}

TEST_CASE("a further directory that cannot be spilled to is refused as the first is") {
    const ScratchDirectory good;
    SpillOptions options = good.options();
    options.more_directories = {good.path() + "/missing"};
    try {
        const SpillStore store(options, 1);
        FAIL("no Error was thrown");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::usage);
        CHECK(error.where() == good.path() + "/missing");
    }
    options.more_directories.assign(64, good.path());
    CHECK_THROWS_WITH(SpillStore(options, 1), Catch::Contains("more than 64"));
}
