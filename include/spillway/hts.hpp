// Reads, reference and VCF over htslib, for callers on a pool of threads. htslib itself does not appear in this header.
//
//     auto reads = hts::AlignmentFile::open("in.bam", "ref.fa");       // shared by all workers, immutable
//     hts::Reference reference("ref.fa");
//     for (const hts::Interval& span : hts::decode_spans(*reads, hts::whole(reads->contigs()))) {   // one task each
//         hts::ReadStream stream(reads, {});                             // one a worker, reused for its spans
//         stream.seek(span);
//         while (auto block = stream.next())                             // shared_ptr<const ReadBlock>
//             for (const hts::Read& read : block->reads()) use(read, block);
//     }
//     hts::VcfWriter vcf({.path = "calls.vcf.gz", .contigs = reads->contigs(), .sample = "NA12878"});
//     vcf.write(record);
//     vcf.commit();                                                      // without this no file appears
//
// What is shared: an AlignmentFile (header, BAM index, CRAM reference) and a Reference, both immutable in use and safe
// from any thread. What is not: a ReadStream and a VcfWriter, one thread at a time each.
//
// Open descriptors: an AlignmentFile 1 (3 for CRAM), each ReadStream 1 (while it is opened 2), a Reference 1, a
// VcfWriter 1.
//
// htslib writes its own messages to stderr; nothing here changes a global of it or the environment. CRAM is decoded
// with the given FASTA alone: see AlignmentFile::open.
#pragma once

#include "spillway/error.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway {
class FileSystem; ///< The calls that files are made of: lib/base/file.hpp.
}

namespace spillway::hts {

/// htslib's version as loaded at run time: "1.16".
[[nodiscard]] std::string htslib_version();

// ---------------------------------------------------------------------------------------------------------- intervals

/// A half-open interval of a contig, 0-based.
struct Interval {
    std::int32_t contig = -1; ///< Index into the alignment header's contigs.
    std::int64_t begin = 0;
    std::int64_t end = 0;

    friend bool operator==(const Interval&, const Interval&) = default;
};

/// One @SQ line of the header.
struct Contig {
    std::string name = {};
    std::int64_t length = 0; ///< In bases; may be 0.
    std::string md5 = {};    ///< M5 in lower case; empty where the header has none.
};

/// Every contig from end to end; contigs of length 0 are left out.
[[nodiscard]] std::vector<Interval> whole(std::span<const Contig> contigs);

/// Sorts by contig and begin, drops empty intervals, and joins those that overlap or touch.
[[nodiscard]] std::vector<Interval> merged(std::vector<Interval> intervals);

/// Intervals of a list as samtools writes them: "chr1", "chr1:1,000-2,000", "chr1:1000" (to the end), "chr1:-500",
/// joined by commas; 1-based, both ends included. A name that itself holds colons or commas is resolved against
/// `contigs`, in braces if need be ("{HLA:1}:5-9"). Ends past the contig are cut off. Merged. Throws Error(usage) on
/// what it cannot read.
[[nodiscard]] std::vector<Interval> parse_regions(std::string_view text, std::span<const Contig> contigs);

/// The intervals of a BED file, plain or gzipped: header, browser, track and comment lines and zero-width intervals are
/// skipped, ends past the contig cut off. Merged; an empty file gives no intervals. Throws Error(input) naming file and
/// line.
[[nodiscard]] std::vector<Interval> read_bed(const std::string& path, std::span<const Contig> contigs);

// ---------------------------------------------------------------------------------------------------------- alignments

enum class SortOrder { unknown, unsorted, queryname, coordinate };

/// One @RG line: which sample its reads belong to.
struct ReadGroup {
    std::string id;
    std::string sample; ///< SM; empty where missing.
};

/// A BAM, CRAM or SAM file, plain or bgzipped, or standard input ("-"): its header and index, parsed once.
/// Immutable and shared; safe from any thread. Standard input can be read by one ReadStream, once, in file order.
class AlignmentFile {
public:
    /// `reference` is the FASTA that CRAM is decoded with; it must have an index (.fai), which is never built here.
    /// Where a CRAM names a contig that the FASTA lacks, its M5 and UR tags are taken out of the decoder's header, so
    /// that htslib has nothing to look up in REF_PATH, REF_CACHE or UR, and reading that contig is an error. `index` is
    /// the index's path; by default it is looked for beside the file. A file without one can be read in order. Throws
    /// Error(input): missing, not alignments, no end-of-file block (truncated), an unreadable index.
    static std::shared_ptr<const AlignmentFile> open(const std::string& path, const std::string& reference = {},
                                                     const std::string& index = {});
    ~AlignmentFile();
    AlignmentFile(const AlignmentFile&) = delete;
    AlignmentFile& operator=(const AlignmentFile&) = delete;

    [[nodiscard]] const std::string& path() const noexcept;
    [[nodiscard]] const std::vector<Contig>& contigs() const noexcept;
    /// Index into contigs().
    [[nodiscard]] std::optional<std::int32_t> find_contig(std::string_view name) const;
    /// Distinct SM values of the @RG lines, in order of appearance; empty where no @RG has one.
    [[nodiscard]] const std::vector<std::string>& samples() const noexcept;
    [[nodiscard]] const std::vector<ReadGroup>& read_groups() const noexcept;
    /// What @HD SO says; the order itself is checked while reading.
    [[nodiscard]] SortOrder sort_order() const noexcept;
    [[nodiscard]] bool is_cram() const noexcept;
    /// Whether spans can be sought: an index was found, and the format is BAM or CRAM.
    [[nodiscard]] bool has_index() const noexcept;
    /// Reads in the file according to its index; empty where that does not say (CRAM, old indexes, no index).
    [[nodiscard]] std::optional<std::uint64_t> indexed_reads() const;

    /// Private to lib/hts.
    struct State;
    [[nodiscard]] const State& state() const noexcept { return *state_; }

private:
    explicit AlignmentFile(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

/// Cuts the wanted intervals into spans that are each decoded once, by one task.
/// The spans are sorted and disjoint and cover the wanted intervals; small intervals near each other share one span,
/// which then covers the gaps between them too. A span is about `length` long, less where the index says that more than
/// `bytes` of compressed reads lie in it, more for CRAM where it would hold only a few slices. Where a contig is cut,
/// the cut lies `margin` after a multiple of 16,384 (the window of the index) for BAM and inside a slice for CRAM, so
/// that a task that seeks its span widened by `margin` on both sides decodes next to nothing twice. Without an index
/// the result is merged(intervals).
struct SpanOptions {
    std::int64_t length = 1'000'000; ///< In bases, > 0.
    std::int64_t margin = 0;         ///< By how much the caller widens a span when it seeks, in bases.
    /// Compressed bytes of reads in a span, at most, as far as the index tells them apart (a window, a slice). More
    /// than the default keep one worker busy for seconds while others idle at the end of a run.
    std::int64_t bytes = std::int64_t{64} << 20;
};
[[nodiscard]] std::vector<Interval> decode_spans(const AlignmentFile& file, std::vector<Interval> wanted,
                                                 SpanOptions options = {});

// ---------------------------------------------------------------------------------------------------------- reads

/// One aligned read as decoded; its spans point into the ReadBlock that holds it.
///
/// The CIGAR is normalised: = and X are M, hard clips, padding and zero-length elements are gone, equal neighbours are
/// one, what hangs over the contig's end is a soft clip, a deletion before the first aligned base is N (it is evidence
/// of nothing) and one after the last is gone. It consumes exactly bases.size() and end - begin, and has at least one
/// M.
struct Read {
    std::int32_t contig = -1;
    std::int64_t begin = 0;           ///< POS, 0-based: where the CIGAR begins on the reference.
    std::int64_t end = 0;             ///< One past the last reference position that the CIGAR covers.
    std::uint16_t flags = 0;          ///< SAM flags.
    std::uint8_t mapping_quality = 0; ///< MAPQ; 255 is unknown.
    std::uint64_t name_hash = 0;      ///< Hash of the read's name: equal for mates, the same on every machine.
    std::int32_t mate_contig = -1;    ///< -1 where there is no mate or it has no place.
    std::int64_t mate_begin = -1;     ///< 0-based.
    std::span<const char> bases; ///< Upper case A, C, G, T, N; as in SEQ, soft clips included. "=" and IUPAC are N.
    std::span<const std::uint8_t>
        qualities; ///< Phred; same length as bases. Missing ones (0xff) are replaced, see ReadFilter.
    std::span<const std::uint32_t> cigar; ///< htslib's packing: length << 4 | operation; see above.
};

/// Operations that occur in Read::cigar; `element & 15`.
enum CigarOperation : std::uint32_t {
    cigar_match = 0,
    cigar_insertion = 1,
    cigar_deletion = 2,
    cigar_skip = 3,
    cigar_soft_clip = 4
};

/// Flags of the SAM specification.
enum SamFlag : std::uint16_t {
    flag_paired = 0x1,
    flag_proper_pair = 0x2,
    flag_unmapped = 0x4,
    flag_mate_unmapped = 0x8,
    flag_reverse = 0x10,
    flag_mate_reverse = 0x20,
    flag_first = 0x40,
    flag_second = 0x80,
    flag_secondary = 0x100,
    flag_qc_fail = 0x200,
    flag_duplicate = 0x400,
    flag_supplementary = 0x800,
};

/// The hash in Read::name_hash: FNV-1a, 64 bits, of the name without a terminating NUL.
[[nodiscard]] std::uint64_t hash_name(std::string_view name) noexcept;

/// Some reads of one contig that were decoded together, in file order; immutable, shared by the windows they cover.
class ReadBlock {
public:
    [[nodiscard]] std::span<const Read> reads() const noexcept { return reads_; }
    [[nodiscard]] std::int32_t contig() const noexcept { return reads_.front().contig; }
    [[nodiscard]] std::int64_t begin() const noexcept { return reads_.front().begin; } ///< Least begin of its reads.
    [[nodiscard]] std::int64_t end() const noexcept { return end_; }                   ///< Greatest end of its reads.
    /// Heap bytes that the block holds, itself included.
    [[nodiscard]] std::size_t bytes() const noexcept;

    ReadBlock(const ReadBlock&) = delete;
    ReadBlock& operator=(const ReadBlock&) = delete;

private:
    friend class BlockBuilder;
    ReadBlock() = default;
    std::vector<Read> reads_; // never empty
    std::unique_ptr<std::byte[]> arena_;
    std::size_t arena_bytes_ = 0;
    std::int64_t end_ = 0;
};

/// Which reads a stream gives, and what it fills in.
struct ReadFilter {
    /// Reads with any of these flags are left out. Unmapped reads always are.
    std::uint16_t exclude = flag_unmapped | flag_secondary | flag_qc_fail | flag_duplicate;
    std::uint8_t min_mapping_quality = 0; ///< Reads below it are left out; 255 (unknown) is never below.
    /// Only reads whose read group has this SM; empty: all reads.
    std::string sample = {};
    /// Phred quality for bases whose quality is missing (QUAL "*"): 1% error, what an uncalibrated base deserves.
    std::uint8_t missing_quality = 20;
};

/// What a stream has seen since it was made. Each decoded read is counted once: given or one of the reasons.
struct ReadCounts {
    std::uint64_t decoded = 0;       ///< Records that htslib decoded, whether given or not; for CRAM whole containers.
    std::uint64_t given = 0;         ///< Reads in blocks.
    std::uint64_t filtered = 0;      ///< By flags, mapping quality or sample.
    std::uint64_t without_bases = 0; ///< SEQ "*".
    std::uint64_t without_match = 0; ///< No aligned base: no CIGAR, no M, = or X, or wholly past the contig's end.
    std::uint64_t missing_quality = 0; ///< Given, with qualities replaced.
    std::uint64_t clipped = 0;         ///< Given, cut at the contig's end.
};

/// Decodes reads in file order, a block at a time: those that overlap a span, or, without seek(), the whole file.
/// One thread at a time. Costs about what `samtools view -u` does; a seek costs one read of a BGZF block (BAM) or the
/// slice that holds the begin (CRAM).
class ReadStream {
public:
    /// Opens the file a second time, except for standard input, which the first stream takes over.
    /// Throws Error(input); Error(usage) for a second stream on standard input or an unknown sample.
    ReadStream(std::shared_ptr<const AlignmentFile> file, ReadFilter filter);
    ~ReadStream();
    ReadStream(ReadStream&&) noexcept;
    ReadStream& operator=(ReadStream&&) noexcept;

    /// Begins the reads that overlap `span`; needs an index. May be called at any time and again.
    void seek(const Interval& span);

    /// The next block, of 1 to 256 reads; null at the end. Reads come in order of contig and begin.
    /// Throws Error(input): truncated or malformed (with the last read's place), not sorted (naming the read), a CRAM
    /// contig that is not in the FASTA or differs from it.
    [[nodiscard]] std::shared_ptr<const ReadBlock> next();

    [[nodiscard]] const ReadCounts& counts() const noexcept;
    /// Heap bytes that a stream of this file holds, about: htslib's decoder and a block of short reads, for a memory
    /// budget.
    [[nodiscard]] static std::size_t bytes(const AlignmentFile& file) noexcept;

private:
    struct State;
    std::unique_ptr<State> state_;
};

// ---------------------------------------------------------------------------------------------------------- reference

/// A FASTA file, plain or bgzipped, with its .fai (and .gzi). Contigs are loaded whole on demand, upper case,
/// immutable, shared by count. Safe from any thread.
class Reference {
public:
    /// Reads the index only. Throws Error(input) where the FASTA or its index is missing; builds none.
    explicit Reference(std::string path);
    ~Reference();
    Reference(Reference&&) noexcept;
    Reference& operator=(Reference&&) noexcept;

    [[nodiscard]] const std::string& path() const noexcept;
    /// Empty where the FASTA has no such contig.
    [[nodiscard]] std::optional<std::int64_t> length(std::string_view name) const;
    /// The contig's bases in upper case, IUPAC codes kept, anything that is no code as N. Loads it unless it is in use
    /// or among the two loaded last; a load locks out other loads. A hit takes no mutex, but hold the pointer all the
    /// same. Throws Error(input).
    [[nodiscard]] std::shared_ptr<const std::string> contig(std::string_view name) const;
    /// Bytes of the sequences that are alive now.
    [[nodiscard]] std::size_t bytes() const noexcept;

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Contigs of `file` that `reference` lacks, as indexes; reading them needs no reference, calling them does.
/// Throws Error(input) where a contig's length differs.
[[nodiscard]] std::vector<std::int32_t> check_contigs(const AlignmentFile& file, const Reference& reference);

/// MD5 of a sequence in lower-case hexadecimal, as M5 has it when the sequence is upper case.
[[nodiscard]] std::string md5(std::string_view sequence);

/// A, C, G, T or N for VCF: of an IUPAC code the alphabetically first base it stands for (R is A), as the VCF
/// specification says. Takes upper and lower case; what is no code is N.
[[nodiscard]] char vcf_base(char reference) noexcept;

/// Whether a read's base agrees with a reference code: G with R or N, A with A; a read's N with nothing.
[[nodiscard]] bool compatible(char reference, char base) noexcept;

// ---------------------------------------------------------------------------------------------------------- VCF

/// One record, for a single sample. Its text is formatted without locale, the same on every machine.
struct VcfRecord {
    std::int32_t contig = -1;                 ///< Index into VcfOptions::contigs.
    std::int64_t begin = 0;                   ///< 0-based; POS is one more.
    std::string id = {};                      ///< Empty is ".".
    std::string reference = {};               ///< REF: A, C, G, T, N.
    std::vector<std::string> alternates = {}; ///< ALT; empty is ".".
    std::optional<double> quality = {};       ///< QUAL; written with at most two decimals; absent is ".".
    std::vector<std::string> filters = {};    ///< FILTER: {"PASS"}; empty is ".".
    std::vector<std::pair<std::string, std::string>> info = {}; ///< Key and value; a flag has an empty value.
    /// FORMAT key and the sample's value, in order; GT first.
    std::vector<std::pair<std::string, std::string>> format = {};
};

/// A number with at most `decimals` (0 to 6) decimals, rounded half away from zero, trailing zeros dropped: 12.5, 3,
/// -0.01. Not finite is ".".
[[nodiscard]] std::string number(double value, int decimals = 2);
/// "3,0,42".
[[nodiscard]] std::string joined(std::span<const std::int32_t> values);

enum class VcfFormat {
    automatic, ///< By the name: .bcf, .vcf.gz or .vcf.bgz, else plain text.
    text,      ///< VCF; no index.
    bgzip,     ///< VCF in BGZF, with .tbi, or .csi where a contig is longer than 2^29.
    bcf,       ///< BCF, with .csi.
};

struct VcfOptions {
    std::string path = {}; ///< "-" is standard output, which gets no index.
    VcfFormat format = VcfFormat::automatic;
    /// Lines such as "##source=spillway-call", after ##fileformat, before the contigs.
    std::vector<std::string> header = {};
    std::vector<Contig> contigs = {};       ///< In the order that records come in.
    std::string sample = {};                ///< Name of the one sample column.
    std::shared_ptr<FileSystem> files = {}; ///< None: the machine's own. For tests, which let the k-th call fail.
};

/// Writes records in order to a temporary name beside the final one; commit() completes, syncs and renames it, the
/// index too. Where the final name is no regular file (a pipe, /dev/stdout) it is written directly and has no index.
/// BGZF block borders follow from content alone, so that equal records are equal files.
/// Every method but the destructor throws Error(disk) where writing fails.
class VcfWriter {
public:
    /// Opens and writes the header. Error(runtime) where that is malformed.
    explicit VcfWriter(VcfOptions options);
    /// Without commit() the temporary is removed and a file of the final name stays as it was.
    ~VcfWriter();
    VcfWriter(VcfWriter&&) noexcept;
    VcfWriter& operator=(VcfWriter&&) noexcept;

    /// Records come in order of contig and begin: Error(runtime) if not.
    void write(const VcfRecord& record);
    void commit();
    /// Records written so far.
    [[nodiscard]] std::uint64_t records() const noexcept;

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace spillway::hts
