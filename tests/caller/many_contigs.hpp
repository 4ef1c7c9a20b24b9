// Many contigs, each a span of its own, and more calls than the output's buffer holds.
//
//     const ManyContigs inputs;
//     const Called called = call(inputs.directory, inputs.options(inputs.cram));
//     for (const std::uint64_t memory : inputs.budgets(options)) ...
#pragma once

#include "called.hpp"

#include "hts/sam_builder.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace spillway::test {

struct ManyContigs {
    explicit ManyContigs(int contigs = 40, std::int64_t size = 2400) {
        Genome genome;
        for (int i = 0; i < contigs; ++i)
            genome.random("c" + std::to_string(i), static_cast<std::size_t>(size), 81 + static_cast<std::uint64_t>(i));
        SamBuilder sam(genome);
        sam.read_group("rg1", "S1");
        for (int i = 0; i < contigs; ++i) {
            const std::string contig = "c" + std::to_string(i);
            std::vector<Variant> variants;
            for (std::int64_t at = 150; at < size - 100; at += 70) {
                variants.push_back(
                    {contig, at, std::string(1, genome.at(contig, at)), std::string(1, genome.other(contig, at))});
            }
            sam.cover(contig, {.from = 1, .to = size, .step = 6}, {variants, {}});
        }
        fasta = genome.write(directory);
        bam = sam.bam(directory, "in.bam");
        cram = sam.cram(directory, "in.cram", fasta);
    }
    [[nodiscard]] caller::CallerOptions options(const std::string& alignments) const {
        return {.alignments = alignments, .reference = fasta, .temporary_directories = {scratch.path()}};
    }

    /// Bytes to try: from about what a run takes where it has all it wants, down to the least that it accepts. What a
    /// process holds beside candidates is the allocator's business: somewhere between they make the difference.
    [[nodiscard]] std::vector<std::uint64_t> budgets(caller::CallerOptions options) const {
        const std::uint64_t least = least_memory(directory, options);
        options.memory = 0;
        const std::uint64_t most = call(directory, options).report.pipeline.memory_peak;
        // Where the process has let go of memory before, that is no more than the least.
        std::vector<std::uint64_t> all;
        for (std::uint64_t above = std::max(most, least + 500'000) - least; above > 60'000; above -= above / 5)
            all.push_back(least + above);
        all.push_back(least);
        return all;
    }

    TemporaryDirectory directory, scratch;
    std::string fasta, bam, cram;
};

} // namespace spillway::test
