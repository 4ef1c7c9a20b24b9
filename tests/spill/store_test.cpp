#include "spill/store.hpp"

#include "faulty_files.hpp"
#include "spill/record.hpp"
#include "spillway/error.hpp"

#include <catch2/catch.hpp>
#include <xxhash.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <filesystem>
#include <random>
#include <string>
#include <thread>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace spillway;
using spillway::test::FaultyFiles;

namespace {

/// A directory of its own for a test, gone with it.
class ScratchDirectory {
public:
    ScratchDirectory() {
        std::string pattern = (std::filesystem::temp_directory_path() / "spillway-test-XXXXXX").string();
        REQUIRE(::mkdtemp(pattern.data()) != nullptr);
        path_ = pattern;
    }
    ~ScratchDirectory() { std::filesystem::remove_all(path_); }
    ScratchDirectory(const ScratchDirectory&) = delete;
    ScratchDirectory& operator=(const ScratchDirectory&) = delete;

    [[nodiscard]] std::string path() const { return path_.string(); }
    [[nodiscard]] bool empty() const { return std::filesystem::is_empty(path_); }
    [[nodiscard]] SpillOptions options() const {
        SpillOptions options;
        options.directory = path();
        options.allow_tmpfs = true; // Wherever the tests' temporary directory lies.
        return options;
    }

private:
    std::filesystem::path path_;
};

using Bytes = std::vector<std::byte>;

/// Everything happens as with the usual shape, after fewer bytes.
constexpr SegmentShape small_segments{std::uint64_t{1} << 20U, std::uint64_t{128} << 10U, std::uint64_t{96} << 10U};
constexpr std::uint64_t segment_bytes = small_segments.bytes;

Bytes random_bytes(std::mt19937_64& random, std::size_t size) {
    Bytes bytes(size);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
}

/// Bytes that follow from a number, for tests that would need too much memory to keep what they wrote.
Bytes bytes_of(std::uint64_t seed, std::size_t size) {
    Bytes bytes(size);
    for (std::size_t i = 0; i < size; i += 8) {
        const std::uint64_t word = (seed + i) * 0x9e3779b97f4a7c15ULL;
        std::memcpy(&bytes[i], &word, std::min<std::size_t>(8, size - i));
    }
    return bytes;
}

struct Written {
    SpillPlace place;
    Bytes bytes;
};

SpillPlace write_surely(SpillStore& store, unsigned seat, const Bytes& bytes) {
    const SpillResult result = store.write(seat, {1, 2, 3, 4}, bytes);
    REQUIRE(result.error == 0);
    return result.place;
}

std::string read_failure(SpillStore& store, const SpillPlace& place) {
    Bytes out;
    try {
        store.read(place, out);
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::disk);
        return error.what();
    }
    return {};
}

} // namespace

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
    const std::size_t longest = segment_bytes - segment_header_bytes - sizeof(RecordHeader);
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
    SpillStore store(scratch.options(), 1, files);
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
    CHECK(word(8) == (std::uint64_t{0x01020304} << 32U | 1));
    CHECK(word(40) == 0);
    CHECK(word(48) == 67108864);
    CHECK(word(56) == XXH3_64bits(file.data(), 56));
    CHECK(std::all_of(file.begin() + 64, file.begin() + 4096, [](std::byte byte) { return byte == std::byte{0}; }));
    const std::uint64_t salt = word(32);
    CHECK(place.offset == 4096 / 8);
    for (std::size_t i = 0; i != 4; ++i) CHECK(word(4096 + 8 * i) == i + 1);
    CHECK((word(4096 + 32) & 0xffffffffU) == 100001);
    CHECK(word(4096 + 40) == XXH3_64bits(payload.data(), payload.size()));
    Bytes header(file.begin() + 4096, file.begin() + 4096 + 48);
    std::memset(&header[36], 0, 4);
    CHECK((word(4096 + 32) >> 32U) == (XXH3_64bits_withSeed(header.data(), 48, salt) & 0xffffffffU));
    CHECK(std::memcmp(&file[4096 + 48], payload.data(), payload.size()) == 0);
}

TEST_CASE("a flipped bit anywhere in a record is found, in the buffer's records after they reach the disk too") {
    ScratchDirectory scratch;
    const auto files = std::make_shared<FaultyFiles>();
    SpillStore store(scratch.options(), 1, files);
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
    SpillStore store(scratch.options(), 1, files);
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
    std::vector<SpillPlace> places;
    for (;;) {
        const SpillResult result = store.write(0, {}, bytes_of(1, 70000));
        if (!result) {
            CHECK(result.error == ENOSPC);
            break;
        }
        places.push_back(result.place);
        REQUIRE(places.size() < 100);
    }
    CHECK(places.size() >= 40);
    CHECK(store.statistics().bytes_on_disk <= options.disk_limit);
    CHECK(store.write(0, {}, bytes_of(1, 2900000)).error == ENOSPC);
    for (const SpillPlace& place : places) store.release(place);
    static_cast<void>(write_surely(store, 0, bytes_of(1, 70000)));
}

TEST_CASE("a disk without nameless files has its files unlinked at once") {
    ScratchDirectory scratch;
    const auto files = std::make_shared<FaultyFiles>();
    files->no_nameless = true;
    SpillStore store(scratch.options(), 2, files);
    const SpillPlace place = write_surely(store, 1, bytes_of(1, 100000));
    CHECK(scratch.empty());
    struct stat status {};
    REQUIRE(::fstat(files->opened.at(1), &status) == 0);
    CHECK((status.st_mode & 0777U) == 0600);
    CHECK(status.st_nlink == 0);
    Bytes out;
    store.read(place, out);
    CHECK(out == bytes_of(1, 100000));
}

TEST_CASE("a directory that cannot be spilled to is refused with its name and a reason") {
    ScratchDirectory scratch;
    const auto failure = [](const SpillOptions& options, const std::shared_ptr<FileSystem>& files = system_files()) {
        try {
            SpillStore store(options, 1, files);
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::usage);
            return std::string(error.what());
        }
        return std::string();
    };
    SpillOptions options = scratch.options();
    options.directory = scratch.path() + "/missing";
    CHECK(failure(options) ==
          "opening the spill directory: " + options.directory + ": it does not exist: make it or name another");
    options.directory = "";
    CHECK(failure(options) == "opening the spill directory: no directory was named");
    options.directory = "/dev/null";
    CHECK(failure(options) == "opening the spill directory: /dev/null: it is not a directory");

    const auto in_memory = std::make_shared<FaultyFiles>();
    in_memory->filesystem_type = TMPFS_MAGIC;
    options = scratch.options();
    options.allow_tmpfs = false;
    CHECK(failure(options, in_memory).find("it lies in memory (tmpfs)") != std::string::npos);
    options.allow_tmpfs = true;
    CHECK(failure(options, in_memory).empty());

    const auto forbidden = std::make_shared<FaultyFiles>();
    forbidden->no_nameless = true;
    forbidden->fail_call = 3; // The directory opens, is looked at and swept; the file in it does not open.
    forbidden->fault.error = EACCES;
    CHECK(failure(options, forbidden).find("it may not be written") != std::string::npos);
}

TEST_CASE("a few descriptors do for any number of seats and segments") {
    ScratchDirectory scratch;
    const pid_t child = ::fork();
    if (child == 0) {
        rlimit limit{};
        limit.rlim_cur = limit.rlim_max = 24;
        bool right = ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
        SpillStore store(scratch.options(), 40);
        std::vector<SpillPlace> places;
        for (unsigned seat = 0; seat != 40; ++seat) {
            const SpillResult result = store.write(seat, {}, bytes_of(seat, 70000));
            right = right && result;
            places.push_back(result.place);
        }
        Bytes out;
        for (unsigned seat = 0; right && seat != 40; ++seat) {
            store.read(places[seat], out);
            right = out == bytes_of(seat, 70000);
        }
        right = right && store.statistics().segments == 40;
        ::_exit(right ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
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

TEST_CASE("kill -9 leaves nothing in the directory") {
    ScratchDirectory scratch;
    for (const bool nameless : {true, false}) {
        std::array<int, 2> pipe{};
        REQUIRE(::pipe(pipe.data()) == 0);
        const pid_t child = ::fork();
        if (child == 0) {
            const auto files = std::make_shared<FaultyFiles>();
            files->no_nameless = !nameless;
            SpillStore store(scratch.options(), 4, files);
            for (std::uint64_t i = 0;; ++i) {
                if (!store.write(static_cast<unsigned>(i % 4), {i, 0, 0, 0}, bytes_of(i, 200000))) ::_exit(1);
                if (i == 100 && ::write(pipe[1], "x", 1) != 1) ::_exit(1);
                if (i >= 100) ::pause();
            }
        }
        ::close(pipe[1]);
        char ready = 0;
        CHECK(::read(pipe[0], &ready, 1) == 1);
        ::close(pipe[0]);
        CHECK(scratch.empty());
        ::kill(child, SIGKILL);
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status));
        CHECK(scratch.empty());
    }
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
