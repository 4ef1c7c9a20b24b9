// spillway-simulate: a small genome with planted variants, its reads, and the truth.
//
//     spillway-simulate --out demo --depth 30 --seed 7
//
// writes demo/ref.fa, demo/reads.bam, demo/truth.vcf.gz (all with indexes) and demo/regions.bed. Equal options give
// equal bytes. Reads lie where they came from: what a caller makes of them is judged without an aligner's errors.
#include "files.hpp"

#include "spillway/hts.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>

namespace {

struct Options {
    std::string out;
    std::string sample = "SIMULATED";
    std::uint64_t seed = 7;
    bool cram = false;
    simulate::GenomeOptions genome;
    simulate::VariantOptions variants;
    simulate::SequencerOptions sequencer;
};

void add_options(CLI::App& app, Options& options) {
    app.add_option("-o,--out", options.out, "Directory for the files; made if need be")->required();
    app.add_option("--length", options.genome.length, "Bases of the genome")->check(CLI::Range(2'000, 500'000'000));
    app.add_option("--contigs", options.genome.contigs, "Contigs, of equal length")->check(CLI::Range(1, 1'000));
    app.add_option("--repeats", options.genome.repeats_per_kilobase, "Homopolymers and tandem repeats per 1,000 bases")
        ->check(CLI::Range(0.0, 20.0));
    app.add_option("--snv-rate", options.variants.snv_rate, "SNVs per base")->check(CLI::Range(0.0, 0.1));
    app.add_option("--indel-rate", options.variants.indel_rate, "Insertions and deletions per base")
        ->check(CLI::Range(0.0, 0.1));
    app.add_option("--repeat-share", options.variants.repeat_share, "Share of the indels that lie in repeats")
        ->check(CLI::Range(0.0, 1.0));
    app.add_option("--hom-share", options.variants.hom_share, "Share of the variants that both haplotypes have")
        ->check(CLI::Range(0.0, 1.0));
    app.add_option("--multi-share", options.variants.multi_share, "Share of the variants with two alternates")
        ->check(CLI::Range(0.0, 1.0));
    app.add_option("--longest-indel", options.variants.longest, "In bases")->check(CLI::Range(1, 50));
    app.add_option("--depth", options.sequencer.depth, "Mean depth of the reads")->check(CLI::Range(0.0, 10'000.0));
    app.add_option("--read-length", options.sequencer.read_length, "In bases")->check(CLI::Range(30, 500));
    app.add_option("--seed", options.seed, "Equal seeds and options give equal files");
    app.add_option("--sample", options.sample, "Name of the sample");
    app.add_flag("--cram", options.cram, "Write reads.cram instead of reads.bam");
    app.option_defaults()->always_capture_default();
    app.set_version_flag("--version", "spillway-simulate, htslib " + spillway::hts::htslib_version());
}

void run(const Options& options) {
    simulate::Random random(options.seed);
    const std::vector<simulate::Contig> contigs = simulate::make_genome(options.genome, random);
    std::vector<std::vector<simulate::Variant>> variants;
    std::vector<std::vector<simulate::SimulatedRead>> reads;
    std::size_t sites = 0, records = 0;
    for (const simulate::Contig& contig : contigs) {
        variants.push_back(simulate::plant_variants(contig, options.variants, random));
        const std::vector<simulate::Haplotype> haplotypes{{contig, variants.back(), 0}, {contig, variants.back(), 1}};
        reads.push_back(simulate::sequence(haplotypes, static_cast<std::int32_t>(reads.size()), contig.name,
                                           options.sequencer, random));
        sites += variants.back().size();
        records += reads.back().size();
    }
    std::error_code problem;
    std::filesystem::create_directories(options.out, problem);
    if (problem)
        throw spillway::system_error(problem.value(), "making the directory", options.out, spillway::ErrorCode::disk);
    const std::filesystem::path out(options.out);
    const std::string reference = (out / "ref.fa").string();
    const std::string alignments = (out / (options.cram ? "reads.cram" : "reads.bam")).string();
    simulate::write_reference(reference, contigs);
    simulate::write_reads(alignments, reference, contigs, options.sample, reads);
    simulate::write_truth((out / "truth.vcf.gz").string(), contigs, options.sample, variants);
    simulate::write_regions((out / "regions.bed").string(), contigs, options.variants.edge);
    std::cout << alignments << ": " << records << " reads, " << sites << " variants planted in "
              << options.genome.length << " bases\n";
}

} // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app(
        "Makes a small genome with planted variants, its reads, and the truth; equal options give equal files.");
    add_options(app, options);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : spillway::exit_code(spillway::ErrorCode::usage);
    }
    try {
        if (options.genome.length / options.genome.contigs < 2 * options.sequencer.read_length)
            throw spillway::Error(spillway::ErrorCode::usage, "simulating", "--length",
                                  "a contig must hold a pair of reads");
        run(options);
    } catch (const spillway::Error& error) {
        std::cerr << "spillway-simulate: " << error.what() << '\n';
        return spillway::exit_code(error.code());
    } catch (const std::exception& error) {
        std::cerr << "spillway-simulate: " << error.what() << '\n';
        return 1;
    }
    return 0;
}
