#include "hts/handles.hpp"
#include "hts/output_file.hpp"
#include "hts/vcf_record.hpp"
#include "spillway/hts.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <htslib/tbx.h>
#include <sys/mman.h>

namespace spillway::hts {
namespace {

constexpr const char* writing = "writing VCF";

bool ends_with(std::string_view text, std::string_view ending) {
    return text.ends_with(ending);
}

VcfFormat format_of(const VcfOptions& options) {
    if (options.format != VcfFormat::automatic) return options.format;
    if (ends_with(options.path, ".bcf")) return VcfFormat::bcf;
    const bool gzip = ends_with(options.path, ".vcf.gz") || ends_with(options.path, ".vcf.bgz");
    return gzip ? VcfFormat::bgzip : VcfFormat::text;
}

std::string header_text(const VcfOptions& options) {
    std::string text = "##fileformat=VCFv4.2\n";
    for (const std::string& line : options.header) text += line + "\n";
    for (const Contig& contig : options.contigs)
        text += "##contig=<ID=" + contig.name + ",length=" + std::to_string(contig.length) + ">\n";
    return text + "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t" + options.sample + "\n";
}

void append_little_endian(std::string& bytes, std::uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift & 0xff);
}

/// TBI reaches 2^29 (SAM specification, section 5.2); beyond, CSI needs more levels of bins.
constexpr int window_bits = 14;
constexpr int tbi_levels = 5;

int levels_for(std::int64_t longest) {
    int levels = 0;
    for (std::int64_t reach = std::int64_t{1} << window_bits; reach < longest; reach <<= 3) ++levels;
    return levels;
}

} // namespace

struct VcfWriter::State {
    VcfOptions options;
    VcfFormat format;
    OutputFile file;
    VcfHeader header; ///< BCF only.
    VcfLine line;     ///< BCF only.
    Index index;
    int index_format = HTS_FMT_CSI;
    std::string text; ///< Scratch.
    std::uint64_t records = 0;
    std::int32_t last_contig = 0;
    std::int64_t last_begin = -1;

    explicit State(VcfOptions wanted)
        : options(std::move(wanted)), format(format_of(options)),
          file(options.path, format != VcfFormat::text, options.files) {}

    [[noreturn]] void fail(std::string detail) const {
        throw Error(ErrorCode::runtime, writing, options.path, std::move(detail));
    }
    void write_header();
    void begin_index();
    void append_bcf();
    [[nodiscard]] std::string index_bytes() const;
};

void VcfWriter::State::write_header() {
    const std::string plain = header_text(options);
    if (format != VcfFormat::bcf) {
        file.write(plain);
        return;
    }
    header.reset(bcf_hdr_init("r"));
    line.reset(bcf_init());
    if (!header || !line) throw std::bad_alloc();
    std::string copy = plain;
    if (bcf_hdr_parse(header.get(), copy.data()) != 0) fail("the header is malformed");
    Text formatted;
    if (bcf_hdr_format(header.get(), 1, &formatted) != 0) fail("the header is malformed");
    std::string bytes = "BCF\2\2";
    append_little_endian(bytes, static_cast<std::uint32_t>(formatted.l + 1));
    bytes.append(formatted.s, formatted.l + 1);
    file.write(bytes);
}

void VcfWriter::State::begin_index() {
    if (format == VcfFormat::text || file.direct()) return;
    std::int64_t longest = 0;
    for (const Contig& contig : options.contigs) longest = std::max(longest, contig.length);
    const bool tbi = format == VcfFormat::bgzip && longest <= std::int64_t{1} << 29;
    index_format = tbi ? HTS_FMT_TBI : HTS_FMT_CSI;
    const int contigs = format == VcfFormat::bcf ? static_cast<int>(options.contigs.size()) : 0;
    index.reset(hts_idx_init(contigs, index_format, file.virtual_offset(), window_bits,
                             tbi ? tbi_levels : levels_for(longest)));
    if (!index) throw std::bad_alloc();
    if (format == VcfFormat::bcf) return;
    // What tabix says of a VCF: preset, columns of contig, begin and end, comment character, lines to skip, and the
    // length of the names, which htslib appends as contigs come.
    std::string meta;
    for (const std::uint32_t field : {2U, 1U, 2U, 0U, static_cast<std::uint32_t>('#'), 0U, 0U})
        append_little_endian(meta, field);
    auto* const bytes = reinterpret_cast<std::uint8_t*>(meta.data());
    if (hts_idx_set_meta(index.get(), static_cast<std::uint32_t>(meta.size()), bytes, 1) != 0) throw std::bad_alloc();
}

/// `text` holds the record's line: puts its BCF form there (VCF specification, section 6.3).
void VcfWriter::State::append_bcf() {
    Text parsed;
    text.pop_back();
    if (kputsn(text.data(), text.size(), &parsed) < 0) throw std::bad_alloc();
    if (vcf_parse(&parsed, header.get(), line.get()) != 0 || line->errcode != 0)
        fail("a record does not fit the header: " + text);
    const bcf1_t& record = *line;
    text.clear();
    append_little_endian(text, static_cast<std::uint32_t>(record.shared.l + 24));
    append_little_endian(text, static_cast<std::uint32_t>(record.indiv.l));
    append_little_endian(text, static_cast<std::uint32_t>(record.rid));
    append_little_endian(text, static_cast<std::uint32_t>(record.pos));
    append_little_endian(text, static_cast<std::uint32_t>(record.rlen));
    append_little_endian(text, std::bit_cast<std::uint32_t>(record.qual));
    append_little_endian(text, static_cast<std::uint32_t>(record.n_allele) << 16 | record.n_info);
    append_little_endian(text, static_cast<std::uint32_t>(record.n_fmt) << 24 | record.n_sample);
    text.append(record.shared.s, record.shared.l);
    text.append(record.indiv.s, record.indiv.l);
}

/// The index as htslib writes it, which is to a name only: one in /proc that leads to memory.
std::string VcfWriter::State::index_bytes() const {
    const auto fail_by = [&](int error) {
        throw system_error(error, "writing the index", options.path, ErrorCode::disk);
    };
    FileSystem memory;
    const FileHandle copy(memory, ::memfd_create("index", MFD_CLOEXEC));
    if (copy.descriptor() < 0) fail_by(errno);
    const std::string name = "/proc/self/fd/" + std::to_string(copy.descriptor());
    errno = 0;
    if (hts_idx_save_as(index.get(), nullptr, name.c_str(), index_format) != 0) fail_by(errno != 0 ? errno : EIO);
    struct stat status {};
    if (const int error = memory.status(copy.descriptor(), status); error < 0) fail_by(-error);
    std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
    iovec piece{bytes.data(), bytes.size()};
    if (const int error = read_all(memory, copy.descriptor(), std::span(&piece, 1), 0)) fail_by(error);
    return bytes;
}

VcfWriter::VcfWriter(VcfOptions options) : state_(std::make_unique<State>(std::move(options))) {
    state_->write_header();
    state_->begin_index();
}

VcfWriter::~VcfWriter() = default;
VcfWriter::VcfWriter(VcfWriter&&) noexcept = default;
VcfWriter& VcfWriter::operator=(VcfWriter&&) noexcept = default;

void VcfWriter::write(const VcfRecord& record) {
    State& state = *state_;
    if (record.contig < 0 || static_cast<std::size_t>(record.contig) >= state.options.contigs.size())
        state.fail("a record names a contig that the header lacks");
    const std::string& contig = state.options.contigs[static_cast<std::size_t>(record.contig)].name;
    if (record.contig < state.last_contig || (record.contig == state.last_contig && record.begin < state.last_begin))
        state.fail("the record at " + contig + ":" + std::to_string(record.begin + 1) + " comes out of order");
    if (record.begin < 0 || record.reference.empty()) state.fail("a record on " + contig + " has no POS or no REF");
    state.last_contig = record.contig;
    state.last_begin = record.begin;
    state.text.clear();
    append_line(state.text, record, contig);
    if (state.format == VcfFormat::bcf) state.append_bcf();
    state.file.write(state.text);
    ++state.records;
    if (!state.index) return;
    const auto length = static_cast<std::int64_t>(record.reference.size());
    // A BCF's index counts the header's contigs, a VCF's those that have records.
    const int id = state.format == VcfFormat::bcf ? record.contig
                                                  : hts_idx_tbi_name(state.index.get(), record.contig, contig.c_str());
    if (id < 0) throw std::bad_alloc();
    if (hts_idx_push(state.index.get(), id, record.begin, record.begin + length, state.file.virtual_offset(), 1) < 0)
        state.fail("the record at " + contig + ":" + std::to_string(record.begin + 1) + " cannot be indexed");
}

void VcfWriter::commit() {
    State& state = *state_;
    if (!state.index) {
        state.file.commit();
        return;
    }
    const std::uint64_t end = state.file.virtual_offset();
    state.file.finish();
    if (hts_idx_finish(state.index.get(), end) != 0) state.fail("the index cannot be completed");
    const std::string path = state.file.path() + (state.index_format == HTS_FMT_TBI ? ".tbi" : ".csi");
    OutputFile index(path, false, state.file.files(), Existing::replaced);
    index.write(state.index_bytes());
    index.finish();
    // The old index must not stand beside the new file, nor the other kind, which htslib would prefer.
    FileSystem& files = *state.file.files();
    for (const char* ending : {".tbi", ".csi"}) {
        const std::string old = state.file.path() + ending;
        static_cast<void>(uninterrupted([&] { return files.unlink(AT_FDCWD, old.c_str()); }));
    }
    state.file.commit();
    index.commit();
}

std::uint64_t VcfWriter::records() const noexcept {
    return state_->records;
}

} // namespace spillway::hts
