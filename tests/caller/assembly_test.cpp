#include "assembly.hpp"

#include <catch2/catch.hpp>

#include <random>

using namespace caller;

namespace {

std::string random_bases(std::mt19937_64& random, std::size_t size) {
    std::string bases(size, 'A');
    for (char& base : bases) base = "ACGT"[random() % 4];
    return bases;
}

/// Reads of `sequence` every third base, some with one wrong base.
struct Reads {
    std::vector<std::string> bases;
    std::vector<std::uint8_t> qualities = std::vector<std::uint8_t>(100, 35);

    void add(std::mt19937_64& random, const std::string& sequence) {
        for (std::size_t at = 0; at + 100 <= sequence.size(); at += 3) {
            bases.push_back(sequence.substr(at, 100));
            if (random() % 3 == 0) bases.back()[random() % 100] = "ACGT"[random() % 4];
        }
    }
    [[nodiscard]] std::vector<AssemblyRead> views() const {
        std::vector<AssemblyRead> views;
        for (const auto& read : bases) views.push_back({read, qualities});
        return views;
    }
};

} // namespace

TEST_CASE("assembly finds large insertions, deletions and close variants, and nothing where there is nothing") {
    std::mt19937_64 random(41);
    for (int round = 0; round < 30; ++round) {
        const std::string contig = random_bases(random, 600);
        std::string variant = contig;
        switch (round % 4) {
        case 0:
            variant.insert(300, random_bases(random, 60));
            break;
        case 1:
            variant.erase(280, 45);
            break;
        case 2:
            variant.insert(303, random_bases(random, 10));
            variant.insert(300, random_bases(random, 23));
            break;
        default:
            break;
        }
        Reads reads;
        reads.add(random, contig);
        reads.add(random, variant);
        const auto expected = variant.substr(230, variant.size() - 460);
        const auto paths = assemble(contig.substr(230, 140), reads.views());
        if (round % 4 == 3) {
            CHECK(paths.empty());
        } else {
            REQUIRE_FALSE(paths.empty());
            CHECK(paths[0] == expected);
        }
        auto shuffled = reads.views();
        std::ranges::shuffle(shuffled, random);
        CHECK(assemble(contig.substr(230, 140), shuffled) == paths);
    }
}

TEST_CASE("a reference that repeats itself is not assembled, nor one shorter than two k-mers, nor from bad bases") {
    std::mt19937_64 random(42);
    std::string repeat;
    for (int i = 0; i < 40; ++i) repeat += "GATA";
    Reads reads;
    reads.add(random, repeat + random_bases(random, 100));
    CHECK(assemble(repeat, reads.views()).empty());
    CHECK(assemble("ACGTTGCA", reads.views()).empty());
    CHECK(assemble("", {}).empty());

    const std::string contig = random_bases(random, 600);
    std::string variant = contig;
    variant.insert(300, random_bases(random, 40));
    Reads poor;
    poor.qualities.assign(100, 5);
    poor.add(random, variant);
    CHECK(assemble(contig.substr(230, 140), poor.views()).empty());
}
