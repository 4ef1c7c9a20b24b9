// spillway-joined: alleles that the first of several samples shows and none of the others does.
//
//     spillway-joined -f ref.fa child.bam mother.bam father.bam       new variants of a child
//     spillway-joined -f ref.fa tumour.bam normal.bam                 somatic ones
//
// The source gives regions; each worker holds a stream per sample and reads a region from all of them. Substitutions
// only: what it shows is how inputs are joined.
#include "inputs.hpp"
#include "pileup.hpp"

#include "spillway/pipeline.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

namespace {

using spillway::hts::Interval;
using Streams = std::vector<spillway::hts::ReadStream>;

struct Options {
    std::string reference;
    std::vector<std::string> alignments;
    std::string regions;
    double min_share = 0.2; ///< Of the first sample's templates, that show the allele.
    std::size_t threads = 0;
};

constexpr std::uint32_t min_templates = 3;      ///< Of the first sample, that show the allele.
constexpr std::uint32_t min_depth = 8;          ///< Of every other sample: with less its silence says nothing.
constexpr std::int64_t region_length = 200'000; ///< Bounds what a worker holds: 16 bytes a base and sample.

/// A position at which the first sample shows an allele that the reference has not.
struct Site {
    std::int32_t contig;
    std::int64_t position; ///< 0-based.
    char reference;
    std::vector<joined::Depths> depths; ///< By sample.
};

spillway::generator<Site> sites_of(const Interval region, Streams& streams, const joined::Inputs& inputs) {
    std::vector<std::vector<joined::Depths>> depths; // By sample.
    for (std::size_t sample = 0; sample < streams.size(); ++sample)
        depths.push_back(joined::pile_up(streams[sample], inputs.of_sample(sample, region)));
    const auto bases = inputs.bases(region.contig);
    for (std::size_t i = 0; i < depths.front().size(); ++i) {
        const std::int64_t position = region.begin + static_cast<std::int64_t>(i);
        const char reference = (*bases)[static_cast<std::size_t>(position)];
        const std::size_t same = joined::alleles.find(reference);
        if (same == std::string_view::npos || depths.front()[i].total() == depths.front()[i].of[same]) continue;
        Site site{region.contig, position, reference, {}};
        for (const auto& sample : depths) site.depths.push_back(sample[i]);
        co_yield std::move(site);
    }
}

/// A line for each allele that the first sample has and no other; none: the site is left out.
std::optional<std::string> compare(const Site& site, const joined::Inputs& inputs, double min_share) {
    std::string lines;
    const joined::Depths& first = site.depths.front();
    for (std::size_t allele = 0; allele < joined::alleles.size(); ++allele) {
        const bool own = joined::alleles[allele] != site.reference && first.of[allele] >= min_templates &&
                         first.of[allele] >= min_share * first.total() &&
                         std::all_of(site.depths.begin() + 1, site.depths.end(), [&](const joined::Depths& other) {
                             return other.of[allele] == 0 && other.total() >= min_depth;
                         });
        if (!own) continue;
        lines += inputs.contigs()[static_cast<std::size_t>(site.contig)].name + '\t' +
                 std::to_string(site.position + 1) + '\t' + site.reference + '\t' + joined::alleles[allele];
        for (const joined::Depths& sample : site.depths)
            lines += '\t' + std::to_string(sample.of[allele]) + '/' + std::to_string(sample.total());
        lines += '\n';
    }
    if (lines.empty()) return std::nullopt;
    return lines;
}

void run(const Options& options) {
    const joined::Inputs inputs(options.reference, options.alignments);
    const std::vector<Interval> wanted = options.regions.empty()
                                             ? spillway::hts::whole(inputs.contigs())
                                             : spillway::hts::parse_regions(options.regions, inputs.contigs());
    std::vector<Interval> regions;
    for (const Interval& interval : wanted)
        for (std::int64_t begin = interval.begin; begin < interval.end; begin += region_length)
            regions.push_back({interval.contig, begin, std::min(begin + region_length, interval.end)});

    std::string header = "#contig\tposition\treference\tallele";
    for (const std::string& sample : inputs.samples()) header += '\t' + sample;
    std::puts(header.c_str());
    auto joining = spillway::pipeline<Interval>("joining")
                       .source(regions)
                       .fan_out("sites", [&](const Interval& region,
                                             Streams& streams) { return sites_of(region, streams, inputs); })
                       .local([&] { return inputs.open(); })
                       .map("compare", [&](const Site& site) { return compare(site, inputs, options.min_share); })
                       .in_order("print", [](const std::string& lines) { std::fputs(lines.c_str(), stdout); });
    static_cast<void>(joining.run({.threads = options.threads}));
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
        throw spillway::system_error(errno, "writing", "standard output", spillway::ErrorCode::disk);
}

} // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app("Prints the substitutions that the first of several samples shows and none of the others does, with "
                 "the templates that show them of all templates in each sample.",
                 "spillway-joined");
    app.add_option("alignments", options.alignments,
                   "BAM or CRAM of each sample, with index: child mother father, or tumour normal")
        ->required()
        ->expected(2, 64);
    app.add_option("-f,--reference", options.reference, "FASTA with its index, plain or bgzipped")->required();
    app.add_option("-r,--regions", options.regions, "Look only here: chr1,chr2:1000-2000");
    app.add_option("--min-share", options.min_share, "Share of the first sample's templates that must show the allele")
        ->check(CLI::Range(0.0, 1.0))
        ->capture_default_str();
    app.add_option("-t,--threads", options.threads, "Threads; 0: what the machine allows")->check(CLI::Range(0, 4096));
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : spillway::exit_code(spillway::ErrorCode::usage);
    }
    try {
        run(options);
        return 0;
    } catch (const spillway::Error& error) {
        std::cerr << "spillway-joined: " << error.what() << '\n';
        return spillway::exit_code(error.code());
    } catch (const std::exception& error) {
        std::cerr << "spillway-joined: " << error.what() << '\n';
        return spillway::exit_code(spillway::ErrorCode::runtime);
    }
}
