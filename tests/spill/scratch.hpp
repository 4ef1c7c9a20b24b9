// What the tests of the spill store share: a directory, bytes, and records that are written and read.
#pragma once

#include "faulty_files.hpp"
#include "spill/segment.hpp"
#include "spill/store.hpp"
#include "spillway/error.hpp"
#include "temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

namespace spillway::test {

/// A directory to spill to.
class ScratchDirectory : public TemporaryDirectory {
public:
    [[nodiscard]] std::string path() const { return TemporaryDirectory::path().string(); }
    [[nodiscard]] bool empty() const { return std::filesystem::is_empty(path()); }
    [[nodiscard]] SpillOptions options() const {
        SpillOptions options;
        options.directory = path();
        options.allow_tmpfs = true; // Wherever the tests' temporary directory lies.
        return options;
    }
};

using Bytes = std::vector<std::byte>;

/// Everything happens as with the usual shape, after fewer bytes. Nothing is compressed, so that lengths are what they
/// are.
inline constexpr SegmentShape small_segments{.bytes = std::uint64_t{1} << 20U,
                                             .writeback = std::uint64_t{128} << 10U,
                                             .buffer = std::uint64_t{96} << 10U,
                                             .kept = 0,
                                             .compression = Compression::Choice::never};
inline constexpr std::uint64_t segment_bytes = small_segments.bytes;
inline constexpr SegmentShape usual_segments{.compression = Compression::Choice::never};

inline Bytes random_bytes(std::mt19937_64& random, std::size_t size) {
    Bytes bytes(size);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
}

/// Bytes that follow from a number, for tests that would need too much memory to keep what they wrote.
inline Bytes bytes_of(std::uint64_t seed, std::size_t size) {
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

inline SpillPlace write_surely(SpillStore& store, unsigned seat, const Bytes& bytes) {
    const SpillResult result = store.write(seat, {1, 2, 3, 4}, bytes);
    REQUIRE(result.error == 0);
    return result.place;
}

/// Writes records of 70,000 bytes until the disk limit refuses one; those that it took.
inline std::vector<SpillPlace> fill_up(SpillStore& store) {
    std::vector<SpillPlace> places;
    for (;;) {
        const SpillResult result = store.write(0, {}, bytes_of(1, 70000));
        if (!result) {
            CHECK(result.error == ENOSPC);
            return places;
        }
        places.push_back(result.place);
        REQUIRE(places.size() < 100);
    }
}

inline std::string read_failure(SpillStore& store, const SpillPlace& place) {
    Bytes out;
    try {
        store.read(place, out);
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::disk);
        return error.what();
    }
    return {};
}

} // namespace spillway::test
