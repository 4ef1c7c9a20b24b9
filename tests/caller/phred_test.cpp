#include "phred.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <random>

using namespace caller;

namespace {

double probability(Phred value) {
    return std::pow(10.0, -static_cast<double>(value) / (10.0 * static_cast<double>(phred_unit)));
}

Phred phred_of(double p) {
    return std::llround(-10.0 * static_cast<double>(phred_unit) * std::log10(p));
}

} // namespace

TEST_CASE("either() adds probabilities to within one unit of libm") {
    std::mt19937_64 random(1);
    for (int i = 0; i < 20'000; ++i) {
        const auto a = static_cast<Phred>(random() % 6400), b = static_cast<Phred>(random() % 6400);
        const Phred exact = phred_of(probability(a) + probability(b));
        REQUIRE(std::abs(either(a, b) - exact) <= 1);
        REQUIRE(either(a, b) == either(b, a));
    }
    CHECK(either(impossible, 640) == 640);
    CHECK(either(0, 0) == -half);
}

TEST_CASE("ratios and correct bases agree with libm") {
    for (const auto& [part, whole] : {std::pair{1, 2}, {1, 1}, {200, 20'000}, {19'800, 20'000}, {3, 7}}) {
        CHECK(std::abs(from_ratio(part, whole) - phred_of(double(part) / whole)) <= 1);
    }
    CHECK(from_ratio(0, 5) == impossible);
    for (int q = 2; q < 94; ++q) {
        const Phred exact = phred_of(1 - std::pow(10.0, -q / 10.0));
        CHECK(std::abs(detail::correct[static_cast<std::size_t>(q)] - exact) <= 1);
    }
}
