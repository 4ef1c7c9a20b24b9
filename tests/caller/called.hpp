// Runs the caller on built inputs and reads back what it wrote.
//
//     const auto called = call(directory, {.alignments = sam.bam(directory, "in.bam"), .reference =
//     genome.write(directory)}); CHECK(texts(called.records) == std::vector<std::string>{"c1:500 T>C 0/1"});
#pragma once

#include "temporary_directory.hpp"

#include "calling.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace spillway::test {

struct CalledRecord {
    std::string contig;
    std::int64_t position = 0; ///< POS.
    std::string reference, alternates, filter;
    double quality = 0;
    std::map<std::string, std::string> format;
};

struct Called {
    std::string text; ///< Of the VCF, header included.
    std::string body; ///< Without the header.
    std::string sample;
    std::vector<CalledRecord> records;
    std::vector<std::string> warnings;
    caller::RunReport report;
};

/// Output goes into the directory, as plain text.
[[nodiscard]] Called call(const TemporaryDirectory& directory, caller::CallerOptions options,
                          caller::RunOptions how = {});

/// Bytes: the least memory that the run accepts; what names it is the error for less.
[[nodiscard]] std::uint64_t least_memory(const TemporaryDirectory& directory, caller::CallerOptions options);

/// "c1:500 T>C 0/1", in order.
[[nodiscard]] std::vector<std::string> texts(const std::vector<CalledRecord>& records);

} // namespace spillway::test
