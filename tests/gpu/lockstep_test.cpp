// All kernel source, in lockstep on the host, against the oracle.
#include "align/pairs.hpp"
#include "align/scalar.hpp"
#include "gpu/fit.hpp"
#include "gpu/kernels.hpp"
#include "spillway/gpu.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace spillway {
namespace {

constexpr std::array spans{Span::local, Span::query};

/// Takes all tasks through a device at once.
void through(Device& device, const DeviceAligner& aligner, std::span<const AlignmentTask> tasks) {
    std::size_t bytes = aligner.header_bytes();
    for (const AlignmentTask& task : tasks) bytes += aligner.bytes(task.target, task.queries);
    const auto staging = device.make_staging(bytes);
    const auto stream = device.make_stream();
    aligner.pack(tasks, *staging);
    aligner.launch(*staging, *stream);
    stream->synchronise();
    aligner.unpack(*staging, tasks);
}

/// Targets, their queries, and what the device found.
struct Tasks {
    void add(std::string target, std::vector<std::string> queries) {
        targets.push_back(std::move(target));
        texts.push_back(std::move(queries));
    }
    void run(const Scores& scores, Span span, Device& device) {
        std::vector<AlignmentTask> tasks;
        views.assign(targets.size(), {});
        found.assign(targets.size(), {});
        for (std::size_t t = 0; t < targets.size(); ++t) {
            views[t].assign(texts[t].begin(), texts[t].end());
            found[t].resize(texts[t].size());
            tasks.push_back({targets[t], views[t], found[t]});
        }
        through(device, DeviceAligner(scores, span), tasks);
    }
    /// Runs them, and compares each with the oracle.
    void check(const Scores& scores, Span span) {
        HostDevice device({.asynchronous = false});
        run(scores, span, device);
        for (std::size_t t = 0; t < targets.size(); ++t) {
            for (std::size_t q = 0; q < texts[t].size(); ++q) {
                const Alignment expected = align_scalar(texts[t][q], targets[t], scores, span);
                if (found[t][q] == expected) continue;
                CAPTURE(targets[t], texts[t][q], span, found[t][q].score, expected.score);
                CAPTURE(found[t][q].target_end, expected.target_end, found[t][q].query_end, expected.query_end);
                CAPTURE(found[t][q].target_begin, expected.target_begin, to_string(found[t][q].cigar), to_string(expected.cigar));
                REQUIRE(found[t][q] == expected);
            }
        }
    }
    std::vector<std::string> targets;
    std::vector<std::vector<std::string>> texts;
    std::vector<std::vector<std::string_view>> views;
    std::vector<std::vector<Alignment>> found;
};

TEST_CASE("first") {
    for (const Span span : spans) {
        Tasks t;
        t.add("GGACGTAGG", {"ACGTTA"});
        t.add("TTACGTTTACGT", {"ACGT", "GTTT", "CCC"});
        t.check({}, span);
    }
    Pairs random(1);
    for (std::size_t round = 0; round < 300; ++round) {
        CAPTURE(round);
        Tasks tasks;
        for (std::size_t i = 0; i < 8; ++i) {
            const spillway::Pair pair = random.next(300);
            std::vector<std::string> queries{pair.query};
            for (std::size_t k = random.under(6); k > 0; --k) queries.push_back(random.next(300).query);
            tasks.add(pair.target, queries);
        }
        tasks.check(random.scores(), spans[round % 2]);
    }
}

} // namespace
} // namespace spillway
