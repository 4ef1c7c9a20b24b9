// Small genomes and alignment files that read like the biology.
//
//     TemporaryDirectory directory;
//     Genome genome;
//     genome.random("c1", 1000, 7);                                   // unrepetitive A, C, G, T; always the same
//     SamBuilder sam(genome);
//     sam.read_group("rg1", "S1");
//     sam.read({.name = "r1", .contig = "c1", .position = 401, .cigar = "100M", .snvs = {{500, 'C'}}});
//     sam.cover("c1", {.from = 300, .to = 700}, {{{"c1", 500, "T", "C"}}, {}});   // two haplotypes, one has the SNV
//     std::string fasta = genome.write(directory), bam = sam.bam(directory, "in.bam");   // with their indexes
//
// Positions are 1-based, as in SAM and VCF.
#pragma once

#include "temporary_directory.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace spillway::test {

/// As a VCF has it.
struct Variant {
    std::string contig;
    std::int64_t position = 0;
    std::string reference, alternate;
};

/// Contigs with their bases.
class Genome {
public:
    struct Contig {
        std::string name, bases;
    };

    Genome& add(std::string name, std::string bases);
    /// Random bases in which no 12-mer occurs twice.
    Genome& random(std::string name, std::size_t length, std::uint64_t seed);

    [[nodiscard]] const std::vector<Contig>& contigs() const noexcept { return contigs_; }
    [[nodiscard]] const std::string& bases(const std::string& contig) const;
    /// The reference base at a position; the bases of [from, to].
    [[nodiscard]] char at(const std::string& contig, std::int64_t position) const;
    [[nodiscard]] std::string slice(const std::string& contig, std::int64_t from, std::int64_t to) const;
    /// Another base than the one at the position: an SNV's.
    [[nodiscard]] char other(const std::string& contig, std::int64_t position) const;

    /// An SNV at `from` and every `step` bases after it, as far as `to`.
    [[nodiscard]] std::vector<Variant> snvs(const std::string& contig, std::int64_t from, std::int64_t to,
                                            std::int64_t step) const;

    /// Writes NAME (60 bases a line) and NAME.fai; the FASTA's path.
    std::string write(const TemporaryDirectory& directory, const std::string& name = "ref.fa") const;

private:
    std::vector<Contig> contigs_;
};

/// One read. Its bases are the reference's along the CIGAR, changed by the SNVs; inserted and clipped ones are
/// `filling`.
struct ReadSpec {
    std::string name;
    std::string contig;
    std::int64_t position = 0;
    std::string cigar = "100M";
    std::vector<std::pair<std::int64_t, char>> snvs = {}; ///< Position on the reference and the read's base there.
    std::string bases = {};                               ///< SEQ as it is, where given; "*" too.
    std::string qualities = {};                           ///< QUAL as it is, where given; "*" too.
    char quality = 'I';                                   ///< Of every base otherwise: Q40.
    char filling = 'A';
    int flags = 0;
    int mapping_quality = 60;
    std::string read_group = "rg1"; ///< Empty: no RG tag.
    std::string mate_contig = "*";  ///< RNEXT.
    std::int64_t mate_position = 0; ///< PNEXT.
};

/// Where and how densely cover() lays reads.
struct Coverage {
    std::int64_t from = 1, to = 1; ///< Reads lie wholly in it.
    std::int64_t length = 100;     ///< Of a read.
    std::int64_t step = 3;         ///< Between the begins of reads of one haplotype; strands alternate.
    char quality = 'I';
    std::string read_group = "rg1";
};

class SamBuilder {
public:
    explicit SamBuilder(const Genome& genome) : genome_(genome) {}

    SamBuilder& read_group(std::string id, std::string sample);
    /// What @HD SO says; "coordinate" unless told. Records are sorted by place all the same unless keep_order() is
    /// called.
    SamBuilder& sort_order(std::string order);
    /// Records stay in the order in which they were added: a file that is not sorted.
    SamBuilder& keep_order();
    /// Header lines that come as they are.
    SamBuilder& header_line(std::string line);

    SamBuilder& read(const ReadSpec& spec);
    /// Reads along each haplotype, a haplotype being its variants (sorted, of this contig, not overlapping), with the
    /// CIGAR that its variants give. Names tell haplotype and ordinal: "h1.17".
    SamBuilder& cover(const std::string& contig, const Coverage& coverage,
                      const std::vector<std::vector<Variant>>& haplotypes);

    [[nodiscard]] std::string text() const;
    /// Written with their index, except where the records are not sorted. The path.
    std::string sam(const TemporaryDirectory& directory, const std::string& name) const;
    std::string bam(const TemporaryDirectory& directory, const std::string& name) const;
    /// `reads_in_slice`: 0 is what htslib takes.
    std::string cram(const TemporaryDirectory& directory, const std::string& name, const std::string& fasta,
                     int reads_in_slice = 0) const;

private:
    struct Line {
        std::size_t contig;
        std::int64_t position;
        std::string text;
    };
    void add(const std::string& contig, std::int64_t position, std::string text);

    const Genome& genome_;
    std::vector<std::string> header_lines_;
    std::string order_ = "coordinate";
    bool sorted_ = true;
    std::vector<Line> lines_;
};

/// Copies SAM text into a BAM or CRAM file, with an index unless told otherwise: what samtools view and index do.
void convert_sam(const std::string& sam, const std::string& target, const std::string& fasta, bool index,
                 int reads_in_slice = 0);

} // namespace spillway::test
