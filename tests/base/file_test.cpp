#include "base/checked.hpp"
#include "base/file.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>

using namespace spillway;

namespace {

/// A file in memory, whose calls do as much as a test's random numbers say, and are interrupted now and then.
class StutteringFile : public FileSystem {
public:
    std::string content;
    std::mt19937 random{4}; // NOLINT: a fixed seed is wanted
    bool stuck = false;     ///< Every call does nothing.

    std::int64_t write(int, std::span<const iovec> pieces, std::uint64_t offset) override {
        return some(pieces, [&](void* bytes, std::size_t count) {
            content.resize(std::max(content.size(), offset + count));
            std::memcpy(&content[offset], bytes, count);
            offset += count;
        });
    }
    std::int64_t read(int, std::span<const iovec> pieces, std::uint64_t offset) override {
        if (offset >= content.size()) return 0;
        std::size_t left = content.size() - offset;
        return some(pieces, [&](void* bytes, std::size_t& count) {
            count = std::min(count, left);
            std::memcpy(bytes, &content[offset], count);
            offset += count;
            left -= count;
        });
    }

private:
    template <typename Copy>
    std::int64_t some(std::span<const iovec> pieces, Copy copy) {
        if (stuck) return 0;
        if (random() % 4 == 0) return -EINTR;
        std::size_t budget = 1 + random() % 20;
        std::int64_t done = 0;
        for (const iovec& piece : pieces) {
            std::size_t count = std::min(piece.iov_len, budget);
            if (count == 0) continue;
            copy(piece.iov_base, count);
            budget -= count;
            done += static_cast<std::int64_t>(count);
        }
        return done;
    }
};

} // namespace

TEST_CASE("all bytes are written and read whatever the interruptions and short calls") {
    std::mt19937 random(8); // NOLINT: a fixed seed is wanted
    for (std::uint64_t round = 0; round != 300; ++round) {
        StutteringFile file;
        std::vector<std::string> parts(random() % 6);
        std::string whole(round % 7, '\0');
        for (auto& part : parts) {
            part.resize(random() % 3 == 0 ? 0 : random() % 60);
            for (auto& byte : part) byte = static_cast<char>(random());
            whole += part;
        }
        std::vector<iovec> pieces;
        for (auto& part : parts) pieces.push_back({part.data(), part.size()});
        REQUIRE(write_all(file, 0, pieces, round % 7) == 0);
        if (whole.size() != round % 7) REQUIRE(file.content == whole);

        std::vector<std::string> back;
        for (const auto& part : parts) back.emplace_back(part.size(), '?');
        pieces.clear();
        for (auto& part : back) pieces.push_back({part.data(), part.size()});
        REQUIRE(read_all(file, 0, pieces, round % 7) == 0);
        REQUIRE(back == parts);
    }
}

TEST_CASE("a file that ends early and a disk that takes nothing are errors, not endless loops") {
    StutteringFile file;
    file.content = "12345";
    std::string buffer(6, '\0');
    std::vector<iovec> pieces{{buffer.data(), buffer.size()}};
    CHECK(read_all(file, 0, pieces, 0) == ENODATA);
    file.stuck = true;
    pieces = {{buffer.data(), buffer.size()}};
    CHECK(write_all(file, 0, pieces, 0) == EIO);
    pieces.clear();
    CHECK(write_all(file, 0, pieces, 0) == 0);
}

TEST_CASE("a handle closes its file once, also when moved") {
    class Counting : public FileSystem {
    public:
        int closed = 0;
        void close(int) noexcept override { ++closed; }
    } files;
    {
        FileHandle first(files, 3);
        FileHandle second(std::move(first));
        CHECK(first.descriptor() == -1); // NOLINT(bugprone-use-after-move): what is left is defined
        FileHandle third;
        third = std::move(second);
        CHECK(third.descriptor() == 3);
        FileHandle none(files, -ENOENT);
    }
    CHECK(files.closed == 1);
    FileHandle taken(files, 4);
    CHECK(taken.take() == 4);
    CHECK(files.closed == 1);
}

TEST_CASE("a text file is read as far as the buffer goes, and a missing one is empty") {
    std::vector<char> buffer(100);
    CHECK(read_text("/proc/self/status", buffer).substr(0, 5) == "Name:");
    CHECK(read_text("/proc/self/status", buffer).size() == 100);
    CHECK(read_text("/nonexistent", buffer).empty());
    CHECK(read_text("/proc", buffer).empty());
}

TEST_CASE("sums, products and roundings that do not fit are no value") {
    constexpr auto largest = std::numeric_limits<std::uint64_t>::max();
    CHECK(checked_add<std::uint64_t>(largest - 1, 1) == largest);
    CHECK_FALSE(checked_add<std::uint64_t>(largest, 1));
    CHECK_FALSE(checked_add<std::int8_t>(100, 28));
    CHECK(checked_multiply<std::uint32_t>(65535, 65537) == 4294967295U);
    CHECK_FALSE(checked_multiply<std::uint32_t>(65536, 65536));
    CHECK(checked_round_up<std::uint64_t>(4097, 4096) == 8192U);
    CHECK(checked_round_up<std::uint64_t>(0, 8) == 0U);
    CHECK_FALSE(checked_round_up<std::uint64_t>(largest, 8));
}
