// The fuzzer's entry without libFuzzer: inputs that follow from a seed, half of them changed from the one before.
#include <catch2/catch.hpp>

#include <cstdint>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

TEST_CASE("the readers of journals, segments and codecs stand 200,000 inputs that nobody wrote") {
    std::mt19937_64 random(61); // NOLINT: a fixed seed is wanted
    std::vector<std::uint8_t> input;
    for (int round = 0; round < 200'000; ++round) {
        if (random() % 2 == 0) {
            input.resize(random() % 300);
            // Mostly small numbers: lengths and kinds that mean something.
            for (std::uint8_t& byte : input)
                byte = static_cast<std::uint8_t>(random() % 3 == 0 ? random() : random() % 4);
        } else if (!input.empty()) {
            input[random() % input.size()] = static_cast<std::uint8_t>(random());
        }
        REQUIRE(LLVMFuzzerTestOneInput(input.data(), input.size()) == 0);
    }
}
