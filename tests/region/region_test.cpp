#include "spillway/error.hpp"
#include "spillway/region.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace spillway;

namespace {

constexpr std::size_t kibibyte = 1024;
constexpr std::size_t mebibyte = kibibyte * 1024;

RegionOptions small_regions(unsigned cutters = 1) {
    RegionOptions options;
    options.region_bytes = 64 * kibibyte;
    options.cutters = cutters;
    return options;
}

bool aligned(const void* pointer, std::size_t alignment) {
    return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

} // namespace

TEST_CASE("pieces of one pool never overlap and are page-aligned, whatever their sizes") {
    RegionPool pool(small_regions(2));
    std::mt19937_64 random(3); // NOLINT: a fixed seed is wanted
    struct Held {
        RegionPiece piece;
        std::size_t bytes;
    };
    std::map<std::byte*, Held> held;
    for (int step = 0; step != 20000; ++step) {
        if (held.size() < 60 && random() % 2 == 0) {
            const std::size_t bytes = (1 + random() % (random() % 20 == 0 ? 40 : 6)) * RegionPool::page_bytes;
            const RegionPiece piece = pool.take(bytes, static_cast<unsigned>(random() % 4));
            std::byte* const begin = pool.address(piece);
            REQUIRE(aligned(begin, RegionPool::page_bytes));
            const auto after = held.lower_bound(begin);
            REQUIRE((after == held.end() || begin + bytes <= after->first));
            REQUIRE((after == held.begin() || std::prev(after)->first + std::prev(after)->second.bytes <= begin));
            begin[0] = begin[bytes - 1] = std::byte{1};
            held.emplace(begin, Held{piece, bytes});
        } else if (!held.empty()) {
            auto victim = held.begin();
            std::advance(victim, static_cast<std::ptrdiff_t>(random() % held.size()));
            pool.give(victim->second.piece);
            held.erase(victim);
        }
    }
    for (const auto& [begin, one] : held) pool.give(one.piece);
    pool.trim(0);
    CHECK(pool.committed() == 0);
    CHECK(pool.idle() == 0);
}

TEST_CASE("a region is recycled without going back to the kernel, and goes back when trimmed") {
    std::int64_t told = 0;
    RegionOptions options = small_regions();
    options.on_commit = [&](std::int64_t change) { told += change; };
    RegionPool pool(options);
    CHECK(pool.committed() == 0);
    for (int round = 0; round != 50; ++round) {
        Slab slab(pool);
        for (int i = 0; i != 10; ++i) static_cast<void>(slab.allocate(20 * kibibyte));
        CHECK(slab.bytes() >= 200 * kibibyte);
    }
    // 250 KiB are in use at once; the region being cut is the one that may be half used.
    CHECK(pool.committed() <= 6 * 64 * kibibyte);
    CHECK(told == static_cast<std::int64_t>(pool.committed()));
    const std::size_t idle = pool.idle();
    CHECK(idle >= 3 * 64 * kibibyte);
    CHECK(pool.trim(128 * kibibyte) == idle - 128 * kibibyte);
    CHECK(pool.idle() == 128 * kibibyte);
    pool.trim(0);
    CHECK(pool.committed() == 0);
    CHECK(told == 0);
}

TEST_CASE("trimming leaves regions in use alone") {
    RegionPool pool(small_regions());
    Slab slab(pool);
    auto* const bytes = static_cast<char*>(slab.allocate(10000));
    std::memset(bytes, 7, 10000);
    pool.trim(0);
    CHECK(bytes[9999] == 7);
    CHECK(pool.committed() == 64 * kibibyte);
    slab.release();
    CHECK(pool.idle() == 64 * kibibyte); // Closed by the trim, so that its last piece freed it.
    pool.trim(0);
    CHECK(pool.committed() == 0);
}

TEST_CASE("allocations of a slab are aligned and do not overlap") {
    RegionPool pool;
    Slab slab(pool, 5);
    std::mt19937_64 random(9); // NOLINT: a fixed seed is wanted
    std::map<std::byte*, std::size_t> held;
    for (int i = 0; i != 3000; ++i) {
        const std::size_t alignment = std::size_t{1} << random() % (random() % 50 == 0 ? 15 : 7);
        std::size_t bytes = random() % 200;
        if (random() % 40 == 0) bytes = random() % (300 * kibibyte);
        auto* const begin = static_cast<std::byte*>(slab.allocate(bytes, alignment));
        REQUIRE(aligned(begin, alignment));
        std::memset(begin, i, bytes);
        bytes = std::max<std::size_t>(bytes, 1);
        const auto after = held.lower_bound(begin);
        REQUIRE((after == held.end() || begin + bytes <= after->first));
        REQUIRE((after == held.begin() || std::prev(after)->first + std::prev(after)->second <= begin));
        held.emplace(begin, bytes);
    }
    CHECK(slab.bytes() <= pool.committed());
    slab.release();
    CHECK(slab.bytes() == 0);
}

TEST_CASE("a small candidate takes one page") {
    RegionPool pool;
    Slab slab(pool);
    CHECK(slab.bytes() == 0);
    for (int i = 0; i != 100; ++i) static_cast<void>(slab.allocate(32));
    CHECK(slab.bytes() == RegionPool::page_bytes);
}

TEST_CASE("the newest allocation can be undone") {
    RegionPool pool;
    Slab slab(pool);
    static_cast<void>(slab.allocate(100, 8));
    void* const first = slab.allocate(1000, 8);
    slab.deallocate(first, 1000, 8);
    CHECK(slab.allocate(500, 8) == first);
}

TEST_CASE("a vector that grows to many MiB does not leave its former selves behind") {
    RegionPool pool;
    Slab slab(pool);
    std::pmr::vector<std::uint64_t> numbers(&slab);
    for (std::uint64_t i = 0; i != 2000000; ++i) numbers.push_back(i);
    for (std::uint64_t i = 0; i != 2000000; ++i) REQUIRE(numbers[i] == i);
    const std::size_t capacity = numbers.capacity() * sizeof(std::uint64_t);
    CHECK(slab.bytes() >= capacity);
    CHECK(slab.bytes() < capacity + 512 * kibibyte);
    numbers = std::pmr::vector<std::uint64_t>(&slab);
    CHECK(slab.bytes() < 512 * kibibyte);
}

TEST_CASE("allocations beyond a region have a mapping of their own, which goes when they do") {
    RegionPool pool;
    Slab slab(pool);
    auto* const bytes = static_cast<char*>(slab.allocate(50 * mebibyte, 64));
    std::memset(bytes, 1, 50 * mebibyte);
    CHECK(pool.committed() >= 50 * mebibyte);
    slab.release();
    CHECK(pool.committed() <= 2 * mebibyte);
    CHECK_THROWS_AS(slab.allocate(~std::size_t{0} - 10), std::bad_alloc);
    CHECK_THROWS_AS(slab.allocate(std::size_t{1} << 60U), std::bad_alloc);
    static_cast<void>(slab.allocate(100)); // Still fit for use.
}

TEST_CASE("a slab carries ordinary pmr containers and is used again after release") {
    RegionPool pool;
    Slab slab(pool);
    for (int round = 0; round != 3; ++round) {
        std::pmr::map<int, std::pmr::string> names(&slab);
        for (int i = 0; i != 1000; ++i)
            names[i] = "a haplotype's name, too long for a small buffer " + std::to_string(i);
        CHECK(names.at(999).get_allocator().resource() == &slab);
        CHECK(names.at(998) == "a haplotype's name, too long for a small buffer 998");
        names.clear();
        slab.release();
    }
    CHECK(pool.committed() <= 4 * mebibyte);
}

TEST_CASE("options out of range are a usage error") {
    for (auto change :
         {+[](RegionOptions& o) { o.region_bytes = 100000; }, +[](RegionOptions& o) { o.region_bytes = 0; },
          +[](RegionOptions& o) { o.region_bytes = 32768; }, +[](RegionOptions& o) { o.cutters = 0; },
          +[](RegionOptions& o) { o.region_bytes = std::size_t{1} << 28U; },
          +[](RegionOptions& o) { o.cutters = 1025; }}) {
        RegionOptions options;
        change(options);
        try {
            const RegionPool pool(options);
            FAIL("accepted");
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::usage);
        }
    }
    RegionOptions largest;
    largest.region_bytes = 128 * mebibyte;
    RegionPool pool(largest);
    // Page and piece numbers reach their largest: every page of a region a piece of its own.
    std::vector<RegionPiece> pieces;
    for (std::size_t i = 0; i != 128 * mebibyte / RegionPool::page_bytes; ++i) {
        pieces.push_back(pool.take(RegionPool::page_bytes, 0));
        REQUIRE(pieces.back().page == i);
        REQUIRE(pieces.back().region == pieces.front().region);
    }
    pieces.push_back(pool.take(RegionPool::page_bytes, 0));
    CHECK(pieces.back().region != pieces.front().region);
    for (const RegionPiece piece : pieces) pool.give(piece);
    CHECK(pool.idle() == 128 * mebibyte);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("memory that cannot be had is bad_alloc, and the pool goes on") {
    const pid_t child = ::fork();
    if (child == 0) {
        RegionPool pool;
        Slab slab(pool);
        rlimit limit{};
        limit.rlim_cur = limit.rlim_max = 512 * mebibyte;
        bool right = ::setrlimit(RLIMIT_AS, &limit) == 0;
        bool refused = false;
        for (int i = 0; i != 1000 && !refused; ++i) {
            try {
                static_cast<void>(slab.allocate(mebibyte));
            } catch (const std::bad_alloc&) {
                refused = true;
            }
        }
        slab.release();
        right = right && refused && slab.allocate(mebibyte) != nullptr;
        ::_exit(right ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}
#endif

TEST_CASE("slabs filled by some threads and released by others never share memory") {
    RegionPool pool(small_regions(2));
    constexpr int threads = 4;
    constexpr int rounds = 1500;
    struct Payload {
        explicit Payload(RegionPool& pool, unsigned seat) : slab(pool, seat) {}
        Slab slab;
        std::vector<std::pair<std::uint32_t*, std::size_t>> blocks;
        std::uint32_t mark = 0;
    };
    std::vector<std::atomic<Payload*>> boxes(16);
    std::atomic<int> wrong{0};
    std::vector<std::thread> workers;
    for (int thread = 0; thread != threads; ++thread) {
        workers.emplace_back([&, thread] {
            std::mt19937 random(static_cast<unsigned>(thread)); // NOLINT: a fixed seed is wanted
            for (int round = 0; round != rounds; ++round) {
                auto payload = std::make_unique<Payload>(pool, static_cast<unsigned>(thread));
                payload->mark = static_cast<std::uint32_t>(thread * rounds + round);
                for (auto blocks = 1 + random() % 6; blocks != 0; --blocks) {
                    const std::size_t count = 1 + random() % (random() % 8 == 0 ? 30000 : 1000);
                    auto* const numbers = static_cast<std::uint32_t*>(payload->slab.allocate(count * 4, 4));
                    std::fill_n(numbers, count, payload->mark);
                    payload->blocks.emplace_back(numbers, count);
                }
                // Into a box, from which another thread takes and checks it.
                const std::unique_ptr<Payload> other(
                    boxes[random() % boxes.size()].exchange(payload.release(), std::memory_order_acq_rel));
                if (other) {
                    for (const auto& [numbers, count] : other->blocks) {
                        if (std::count(numbers, numbers + count, other->mark) != static_cast<std::ptrdiff_t>(count))
                            ++wrong;
                    }
                }
                if (round % 64 == 0) pool.trim(round % 128 == 0 ? 0 : 256 * kibibyte);
            }
        });
    }
    for (auto& worker : workers) worker.join();
    for (auto& box : boxes) delete box.load();
    CHECK(wrong == 0);
    pool.trim(0);
    CHECK(pool.committed() == 0);
}
