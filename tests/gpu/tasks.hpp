// Targets with their queries, taken through a device and held to the oracle.
//
//     Tasks tasks;
//     tasks.add("GGACGTAGG", {"ACGTTA"});
//     tasks.check({}, Span::local);          // REQUIREs what align_scalar gives, for each pair
#pragma once

#include "align/pairs.hpp"
#include "align/scalar.hpp"
#include "gpu/fit.hpp"
#include "gpu/packing.hpp"
#include "spillway/gpu.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway {

/// Tells what a pair was where it differs from what it should be.
inline void require_equal(const Alignment& found, const Alignment& expected, std::string_view query,
                          std::string_view target, const Scores& scores, Span span) {
    if (found == expected) return;
    const auto text = [](const Alignment& a) {
        return std::to_string(a.score) + " q" + std::to_string(a.query_begin) + "-" + std::to_string(a.query_end) +
               " t" + std::to_string(a.target_begin) + "-" + std::to_string(a.target_end) + " " + to_string(a.cigar);
    };
    const bool local = span == Span::local;
    CAPTURE(query, target, local, scores.match, scores.mismatch, scores.unknown, scores.gap_open, scores.gap_extend);
    REQUIRE(text(found) == text(expected));
}

/// So high that 16 bits hold short pairs only: the others go to the kernels of 32 bits.
inline constexpr Scores coarse{.match = 60, .mismatch = -61, .unknown = -31, .gap_open = 60, .gap_extend = 7};

class Tasks {
public:
    void add(std::string target, std::vector<std::string> queries) {
        targets_.push_back(std::move(target));
        queries_.push_back(std::move(queries));
    }
    /// A target of up to `longest` bases and up to eight queries: pieces of it with errors, or nothing of the kind.
    void add_random(Pairs& random, std::size_t longest) {
        const Pair pair = random.next(longest);
        std::vector<std::string> queries{pair.query};
        while (queries.size() < 8 && random.under(6) != 0) {
            const std::size_t begin = random.under(pair.target.size() + 1);
            std::string query = random.under(4) == 0 ? random.next(longest).query
                                                     : pair.target.substr(begin, 1 + random.under(longest));
            for (std::size_t edits = random.under(4); edits > 0; --edits) random.edit(query);
            queries.push_back(std::move(query));
        }
        add(pair.target, std::move(queries));
    }

    [[nodiscard]] std::size_t pairs() const {
        std::size_t sum = 0;
        for (const auto& queries : queries_) sum += queries.size();
        return sum;
    }
    [[nodiscard]] const std::vector<std::string>& targets() const { return targets_; }
    [[nodiscard]] const std::vector<std::vector<Alignment>>& found() const { return found_; }

    /// With room for what is found. They look into this object.
    [[nodiscard]] std::vector<AlignmentTask> tasks() {
        std::vector<AlignmentTask> tasks;
        views_.assign(targets_.size(), {});
        found_.assign(targets_.size(), {});
        for (std::size_t t = 0; t < targets_.size(); ++t) {
            views_[t].assign(queries_[t].begin(), queries_[t].end());
            found_[t].resize(views_[t].size());
            tasks.push_back({targets_[t], views_[t], found_[t]});
        }
        return tasks;
    }

    /// Through a device's staging, all at once.
    void align_on(Device& device, const Scores& scores, Span span) {
        const DeviceAligner aligner(scores, span);
        const std::vector<AlignmentTask> all = tasks();
        const auto staging = device.make_staging(bytes());
        const auto stream = device.make_stream();
        aligner.pack(all, *staging);
        aligner.launch(*staging, *stream);
        stream->synchronise();
        aligner.unpack(*staging, all);
    }

    /// As align_on() the host, with packs swept in the form that devices without 16-bit instructions have.
    void align_one_by_one(const Scores& scores, Span span) {
        HostDevice device({.asynchronous = false});
        const DeviceAligner aligner(scores, span);
        const std::vector<AlignmentTask> all = tasks();
        const auto staging = device.make_staging(bytes());
        aligner.pack(all, *staging);
        const gpu::Launch launch = gpu::Layout::of(staging->host()).at(staging->host().data());
        gpu::run_in_lockstep(launch, gpu::PackForm::one_by_one);
        aligner.unpack(*staging, all);
    }

    /// In both forms, or only in that of sm_90 and later.
    void check(const Scores& scores, Span span, bool both = true) {
        HostDevice device({.asynchronous = false});
        check_on(device, scores, span);
        if (!both) return;
        align_one_by_one(scores, span);
        check_found(scores, span);
    }
    void check_on(Device& device, const Scores& scores, Span span) {
        expect(scores, span);
        align_on(device, scores, span);
        check_found(scores, span);
    }

    /// Adds the pairs of each shape that the device takes.
    void count(const gpu::Fit& fit, std::array<std::size_t, gpu::shape_count>& by_shape) const {
        for (std::size_t t = 0; t < targets_.size(); ++t) {
            for (const std::string& query : queries_[t]) {
                if (const auto tiling = fit.of(query.size(), targets_[t].size())) ++by_shape[tiling->shape];
            }
        }
    }

    /// That they are promised to fit in.
    [[nodiscard]] std::size_t bytes() const {
        std::size_t sum = DeviceAligner::header_bytes();
        for (const std::string& target : targets_) sum += DeviceAligner::target_bytes(target.size());
        for (const auto& queries : queries_) {
            for (const std::string& query : queries) sum += DeviceAligner::query_bytes(query.size());
        }
        return sum;
    }

private:
    void expect(const Scores& scores, Span span) {
        expected_.assign(targets_.size(), {});
        for (std::size_t t = 0; t < targets_.size(); ++t) {
            for (const std::string& query : queries_[t]) {
                expected_[t].push_back(align_scalar(query, targets_[t], scores, span));
            }
        }
    }
    void check_found(const Scores& scores, Span span) const {
        for (std::size_t t = 0; t < targets_.size(); ++t) {
            for (std::size_t q = 0; q < queries_[t].size(); ++q) {
                require_equal(found_[t][q], expected_[t][q], queries_[t][q], targets_[t], scores, span);
            }
        }
    }

    std::vector<std::string> targets_;
    std::vector<std::vector<std::string>> queries_;
    std::vector<std::vector<std::string_view>> views_;
    std::vector<std::vector<Alignment>> found_, expected_;
};

} // namespace spillway
