#include "options.hpp"

#include "inputs.hpp"

#include "spillway/governor.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>

namespace caller {

namespace {

/// The exit code of a wrong command line.
constexpr int usage_error = 2;

std::string version_text() {
    return "spillway-call " SPILLWAY_VERSION "\nUsing htslib " + spillway::hts::htslib_version();
}

/// Why it is no size; empty where it is one.
std::string refused_size(const std::string& text) {
    try {
        static_cast<void>(spillway::parse_bytes(text));
        return "";
    } catch (const spillway::Error& error) {
        return error.where() + ": " + error.detail();
    }
}

} // namespace

CommandLine parse(int argc, const char* const* argv) {
    CallerOptions options;
    CLI::App app("Calls the small germline variants of one diploid sample.", "spillway-call");
    app.set_version_flag("--version", version_text());
    app.add_option("alignments", options.alignments, "BAM, CRAM or SAM, sorted by position; - is standard input")
        ->required();
    app.add_option("-f,--reference", options.reference, "FASTA with its index, plain or bgzipped")->required();
    app.add_option("-r,--regions", options.regions, "Call only here: chr1,chr2:1000-2000 (by POS; both ends included)")
        ->allow_extra_args(false);
    app.add_option("-R,--regions-file", options.regions_file, "Call only in the intervals of this BED file (by POS)");
    app.add_option("-o,--output", options.output, "Output; .vcf.gz and .bcf choose the format; - is standard output");
    std::string format;
    app.add_option("-O,--output-type", format, "z: bgzipped VCF, b: BCF, v: VCF")
        ->check(CLI::IsMember({"z", "b", "v"}));
    app.add_option("-s,--sample-name", options.sample_name,
                   "Sample to call where the input has several; else its name in the output");
    app.add_flag("--skip-missing-contigs", options.skip_missing_contigs,
                 "Leave out reads on contigs that the FASTA lacks, with one warning");
    std::string profile = "auto";
    app.add_option("--profile", profile,
                   "How the sample was sequenced: auto (as the header tells), wgs, wes, pacbio, ont, hybrid or rnaseq; "
                   "sets the sizes that a run begins with, not what is called")
        ->check([](const std::string& name) {
            return name == "auto" || spillway::hts::profile_named(name) ? "" : "no profile: " + name;
        });
    app.add_option("--region-length", options.region_length,
                   "Bases of the reference that one task decodes (default: by the profile), at least " +
                       std::to_string(shortest_span) + ": shorter ones would decode most reads twice")
        ->check(CLI::Range(std::int64_t{100}, std::int64_t{1} << 31));
    app.add_option("-t,--threads", options.threads,
                   "Threads in all, decoding and writing included; 0: what the machine allows")
        ->check(CLI::Range(0, 4096));
    std::string memory;
    app.add_option("--memory", memory,
                   "Memory to use, such as 2G; candidates beyond it go to disk (default: what the machine allows)")
        ->check(refused_size);
    std::string gpu;
    app.add_option("--gpu", gpu,
                   "off, auto: one where it is there and pays (default), required: end where there is none")
        ->check(CLI::IsMember({"off", "auto", "required"}));
    auto* const tmp_dir =
        app.add_option(
               "--tmp-dir", options.temporary_directories,
               "Directory for candidates that go to disk; nothing is left there (a kill on NFS may leave .nfs files); "
               "several times for several disks")
            ->allow_extra_args(false);
    std::string tmp_limit;
    app.add_option("--tmp-limit", tmp_limit,
                   "Most that they may take of each --tmp-dir, such as 50G (default: 90% of what is free at the start)")
        ->check(refused_size)
        ->needs(tmp_dir);
    app.add_option("--resume", options.resume_directory,
                   "Directory that keeps what is finished: the same command after a kill goes on from there");
    app.add_flag("--progress", options.progress,
                 "Tell twice a second how far it is, also where standard error is no terminal");
    app.add_option("-v,--verbosity", options.verbosity, "0: errors only, 1: warnings, 2: a report at the end")
        ->check(CLI::Range(0, 2));
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& done) { // --help and --version
        return {std::nullopt, app.exit(done)};
    } catch (const CLI::ParseError& error) {
        std::cerr << "spillway-call: " << error.what() << " (see --help)\n";
        return {std::nullopt, usage_error};
    }
    if (format == "z") options.format = spillway::hts::VcfFormat::bgzip;
    if (format == "b") options.format = spillway::hts::VcfFormat::bcf;
    if (format == "v") options.format = spillway::hts::VcfFormat::text;
    options.profile = spillway::hts::profile_named(profile);
    if (options.region_length > 0) options.region_length = std::max(options.region_length, shortest_span);
    if (gpu == "off") options.gpu = spillway::Gpu::off;
    if (gpu == "required") options.gpu = spillway::Gpu::required;
    if (!memory.empty()) options.memory = spillway::parse_bytes(memory);
    if (!tmp_limit.empty()) options.temporary_limit = spillway::parse_bytes(tmp_limit);
    return {options, 0};
}

} // namespace caller
