// What every contender of bench/scheduler.cpp is given and must do: pass candidates through three stages, in parallel,
// and hand them to a sink in the order of their ordinals.
//
//     void run_on_something(const Load& load, Sink& sink) {
//         for (std::uint64_t i = 0; i < load.candidates; ++i) sink(load.call(load.align(load.make(i))));
//     }
//
// A contender is tuned to its best form, and owns its threads: what it costs to start and stop them is part of its
// time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bench {

/// A small value, so that the cost measured is that of scheduling it and not of copying it.
struct Candidate {
    std::uint64_t ordinal = 0;
    std::uint64_t value = 0;
};

/// A bijective scramble (the finaliser of MurmurHash3): a stage that the compiler can neither drop nor fuse.
[[nodiscard]] inline std::uint64_t scramble(std::uint64_t value) noexcept {
    value ^= value >> 33U;
    value *= 0xff51afd7ed558ccdULL;
    return value ^ value >> 33U;
}

/// The work of a run. Its three stages are equal: one scramble, and `turns` turns of a calibrated spin. They keep no
/// state.
struct Load {
    std::uint64_t candidates = 0;
    unsigned threads = 1;
    std::uint64_t turns = 0; ///< Of each stage.

    [[nodiscard]] Candidate make(std::uint64_t ordinal) const noexcept {
        return {ordinal, spin(scramble(ordinal + 1))};
    }
    [[nodiscard]] Candidate align(Candidate c) const noexcept { return {c.ordinal, spin(scramble(c.value))}; }
    [[nodiscard]] Candidate call(Candidate c) const noexcept { return {c.ordinal, spin(scramble(c.value))}; }

    [[nodiscard]] std::uint64_t spin(std::uint64_t value) const noexcept {
        return turns == 0 ? value : turned(value, turns);
    }
    /// One loop for all contenders: inlined, each copy would be as fast as its place in the code lets it be.
    [[nodiscard, gnu::noinline]] static std::uint64_t turned(std::uint64_t value, std::uint64_t turns) noexcept {
        for (std::uint64_t turn = 0; turn < turns; ++turn) asm volatile("" : "+r"(value)::);
        return value;
    }
};

/// The end of the pipeline: takes one candidate at a time, in order, and notices when it is not so.
class Sink {
public:
    void operator()(const Candidate& c) noexcept {
        in_order_ = in_order_ && c.ordinal == count_ && c.value == scramble(scramble(scramble(count_ + 1)));
        ++count_;
    }

    /// Whether exactly the candidates of the load came, each once, in order, with the value that the stages give.
    [[nodiscard]] bool complete(const Load& load) const noexcept { return in_order_ && count_ == load.candidates; }

    std::uint64_t futex_calls = 0; ///< Sleeps and wake-ups, where the contender counts them.

private:
    std::uint64_t count_ = 0;
    bool in_order_ = true;
};

// The contenders, each in the file of its name. Those of oneTBB are there only where the build found it.
void bare_loop(const Load& load, Sink& sink);
void bare_split(const Load& load, Sink& sink);
void mutex_pool(const Load& load, Sink& sink);
void spillway_pipeline(const Load& load, Sink& sink);
void shard_pipeline(const Load& load, Sink& sink);
void tbb_parallel_pipeline(const Load& load, Sink& sink);
void tbb_flow_graph(const Load& load, Sink& sink);

} // namespace bench
