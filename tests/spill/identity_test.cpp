#include "spillway/journal.hpp"
#include "temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

using namespace spillway;
using namespace spillway::test;

TEST_CASE("a file is told from itself as it was, by either end, its length and its times, and from none by a name") {
    const TemporaryDirectory directory;
    const std::string path = directory.file("in.bam"), other = directory.file("other.bam");
    const auto write = [](const std::string& to, const std::string& bytes) {
        std::ofstream(to, std::ios::binary) << bytes;
    };
    const auto digest_of = [](const std::string& identity) { return identity.substr(identity.find("digest ")); };
    const std::string bytes(std::size_t{3} << 20U, 'x');
    write(path, bytes);
    const std::string first = identity_of(path);
    CHECK(identity_of(path) == first);
    CHECK(first.find("3145728 bytes, changed at ") == 0);
    for (const std::size_t at : {std::size_t{0}, (std::size_t{1} << 20U) - 1, bytes.size() - 1}) {
        std::string changed = bytes;
        changed[at] = 'y';
        write(other, changed);
        CHECK(digest_of(identity_of(other)) != digest_of(first));
    }
    write(other, bytes);
    CHECK(digest_of(identity_of(other)) == digest_of(first));
    CHECK(identity_of(other) != first);
    write(other, "");
    CHECK(identity_of(other).find("0 bytes, ") == 0);
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) - std::chrono::hours(1));
    CHECK(identity_of(path) != first);
    CHECK_THROWS_WITH(identity_of(directory.file("none.bam")), Catch::Contains("none.bam: No such file"));
}
