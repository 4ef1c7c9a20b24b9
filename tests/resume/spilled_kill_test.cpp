// The caller killed and refused anywhere while its candidates lie on the disk: the same VCF in the end, or a clear error,
// and nothing left behind.
#include "caller_runs.hpp"
#include "hts/sam_builder.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <memory>

using namespace spillway::test;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr long kill_points = 2, fault_points = 1; // They take ten times as long.
#else
constexpr long kill_points = 10, fault_points = 4;
#endif

/// Sixteen contigs, each a span of its own, with an SNV each 70 bases: the output's buffer does not hold all calls.
struct ManyCalls : Sample {
    ManyCalls() {
        constexpr std::int64_t size = 2400;
        Genome genome;
        for (std::uint64_t i = 0; i < 16; ++i) genome.random("c" + std::to_string(i), size, 81 + i);
        SamBuilder sam(genome);
        sam.read_group("rg1", "S1");
        for (const Genome::Contig& contig : genome.contigs()) {
            sam.cover(contig.name, {.from = 1, .to = size, .step = 6},
                      {genome.snvs(contig.name, 150, size - 101, 70), {}});
        }
        alignments = sam.bam(directory, "in.bam");
        fasta = genome.write(directory);
        slow_output = true;
    }
};

/// Bytes: the least that a run accepts; what names it is the error for less.
std::uint64_t least_memory(Sample& sample) {
    sample.memory = "1";
    const Run run(sample);
    const Outcome outcome = run_to_end(run.recovery());
    const std::string before = "allow at least ";
    const std::size_t at = outcome.err.find(before);
    INFO(outcome.err);
    REQUIRE(outcome.status == 2);
    REQUIRE(at != std::string::npos);
    return std::stoull(outcome.err.substr(at + before.size()));
}

/// One for all tests: a run that spills, with the VCF of one that has all the memory it wants.
const Undisturbed& spilling() {
    static ManyCalls sample;
    static const std::unique_ptr<const Undisturbed> one = [] {
        const std::uint64_t least = least_memory(sample);
        sample.memory = "1G";
        const Undisturbed in_memory(sample);
        REQUIRE(in_memory.counts.spilled == 0);
        // What a process holds beside candidates is the allocator's business: with less it runs ahead less far.
        constexpr std::array<std::uint64_t, 6> budgets = {600'000, 1'000'000, 2'000'000, 4'000'000, 8'000'000, 300'000};
        for (std::size_t attempt = 0; attempt < 10 * budgets.size(); ++attempt) {
            const std::uint64_t above = budgets[attempt % budgets.size()];
            sample.memory = std::to_string(least + above);
            auto tried = std::make_unique<const Undisturbed>(sample);
            REQUIRE(tried->vcf == in_memory.vcf);
            REQUIRE(tried->index == in_memory.index);
            if (tried->counts.spilled > 20) return tried;
        }
        FAIL("nothing was spilled");
        return std::unique_ptr<const Undisturbed>();
    }();
    return *one;
}

/// Of calls, how many were on files of spilled candidates, which have no name or lose it at once.
long on_spilled(const std::vector<std::string>& calls) {
    return std::count_if(calls.begin(), calls.end(), [](const std::string& call) {
        return call.find("/tmp/#") != std::string::npos || call.find("/tmp/.spillway-") != std::string::npos;
    });
}

/// At so many calls, spread over all of a run, and at more until enough of them were on spilled candidates: how many
/// calls a run makes is up to how far it runs ahead. `first`: another gives other calls.
template <typename Try>
void at_calls(long points, std::size_t first, Try try_at) {
    const long calls = spilling().counts.calls;
    long met = 0;
    for (long i = 0; i < points || met < points / 4 + 1; ++i) {
        REQUIRE(i < 10 * points + 20);
        met += on_spilled(try_at((i * calls / points + (static_cast<long>(first) + i / points) * 7) % calls));
    }
}

void kill_at_calls(long points) {
    std::mt19937_64 random(61); // NOLINT: a fixed seed is wanted
    for (const bool after : {false, true})
        at_calls(points, after ? 1 : 0, [&](long k) { return kill_twice(spilling(), k, after, random); });
}

/// Every second call for good: of `first` 0 and 1 each where the other has it once.
void fail_at_calls(long points, std::size_t first) {
    for (std::size_t i = 0; i < faults().size(); ++i) {
        std::size_t turn = first + i;
        at_calls(points, i, [&](long k) { return fail(spilling(), faults()[i], k, ++turn % 2 != 0); });
    }
}

} // namespace

TEST_CASE("killed at any call of a run that spills, and again while it recovers, the caller ends with the same VCF") {
    kill_at_calls(kill_points);
}

TEST_CASE("whichever call of a caller that spills fails, the VCF is the same, or the exit code is the design's") {
    fail_at_calls(fault_points, 0);
}

TEST_CASE("killed at each call of a run that spills, and whichever call fails", "[.long]") {
    kill_at_calls(spilling().counts.calls);
    for (const std::size_t first : {0U, 1U}) fail_at_calls(spilling().counts.calls, first);
}
