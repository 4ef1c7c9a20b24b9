#include "hts/alignment_state.hpp"
#include "hts/cram_index.hpp"

#include <htslib/bgzf.h>
#include <htslib/cram.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace spillway::hts {
namespace {

constexpr const char* opening = "opening alignments";

bool exists(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

File open_file(const std::string& path) {
    errno = 0;
    File file(hts_open(path.c_str(), "r"));
    if (!file) {
        if (errno != 0 && errno != ENOEXEC) throw system_error(errno, opening, path, ErrorCode::input);
        throw Error(ErrorCode::input, opening, path, "neither BAM, CRAM nor SAM, or truncated within the header");
    }
    return file;
}

/// The value of a two-letter tag of a header line; empty where it has none.
std::string tag(sam_hdr_t* header, const char* type, int line, const char* key) {
    Text value;
    if (sam_hdr_find_tag_pos(header, type, line, key, &value) != 0 || value.s == nullptr) return {};
    return {value.s, value.l};
}

SortOrder sort_order_of(sam_hdr_t* header) {
    Text value;
    if (sam_hdr_find_tag_hd(header, "SO", &value) != 0) return SortOrder::unknown;
    const std::string_view order(value.s, value.l);
    if (order == "coordinate") return SortOrder::coordinate;
    if (order == "queryname") return SortOrder::queryname;
    if (order == "unsorted") return SortOrder::unsorted;
    return SortOrder::unknown;
}

void read_header(AlignmentFile::State& state) {
    state.header.reset(sam_hdr_read(state.file.get()));
    if (!state.header)
        throw Error(ErrorCode::input, opening, state.path, "the header cannot be read: malformed or truncated");
    sam_hdr_t* header = state.header.get();
    const int contigs = sam_hdr_nref(header);
    state.contigs.reserve(static_cast<std::size_t>(contigs));
    for (int i = 0; i < contigs; ++i) {
        Contig contig{sam_hdr_tid2name(header, i), sam_hdr_tid2len(header, i), tag(header, "SQ", i, "M5")};
        std::transform(contig.md5.begin(), contig.md5.end(), contig.md5.begin(),
                       [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
        state.contig_indexes.emplace(contig.name, i);
        state.contigs.push_back(std::move(contig));
    }
    const int groups = sam_hdr_count_lines(header, "RG");
    for (int i = 0; i < groups; ++i) {
        ReadGroup group{tag(header, "RG", i, "ID"), tag(header, "RG", i, "SM")};
        if (!group.sample.empty() &&
            std::find(state.samples.begin(), state.samples.end(), group.sample) == state.samples.end())
            state.samples.push_back(group.sample);
        state.read_groups.push_back(std::move(group));
    }
    state.order = sort_order_of(header);
}

/// A file that was cut at the border of a block reads without an error, so the end block is asked for at once.
void check_end_block(const AlignmentFile::State& state) {
    if (!state.seekable) return;
    errno = 0;
    const int end = hts_check_EOF(state.file.get());
    if (end == 0)
        throw Error(ErrorCode::input, opening, state.path,
                    "truncated: the end-of-file block is missing; copy or make the file again");
    if (end < 0) throw system_error(errno, opening, state.path, ErrorCode::input);
}

/// Sets the reference of a CRAM and checks that it fits.
void set_reference(AlignmentFile::State& state) {
    if (state.reference.empty())
        throw Error(ErrorCode::input, opening, state.path, "CRAM needs the FASTA it was made with: give the reference");
    const Reference reference(state.reference);
    for (const Contig& contig : state.contigs) {
        const auto length = reference.length(contig.name);
        state.in_reference.push_back(length.has_value());
        if (length && *length != contig.length)
            throw Error(ErrorCode::input, opening, state.path,
                        "contig " + contig.name + " has length " + std::to_string(contig.length) + " but " +
                            std::to_string(*length) + " in " + state.reference + ": this is another reference");
    }
    if (hts_set_fai_filename(state.file.get(), state.reference.c_str()) != 0)
        throw Error(ErrorCode::input, opening, state.reference, "htslib cannot use this reference");
}

/// Takes the hints away by which htslib would look for a contig outside the given FASTA.
void forget_other_references(const AlignmentFile::State& state, htsFile* file) {
    sam_hdr_t* header = cram_fd_get_header(file->fp.cram);
    for (std::size_t i = 0; i < state.contigs.size(); ++i) {
        if (state.in_reference[i]) continue;
        for (const char* key : {"M5", "UR"})
            sam_hdr_remove_tag_id(header, "SQ", "SN", state.contigs[i].name.c_str(), key);
    }
}

void set_required_fields(htsFile* file, bool need_read_groups, const std::string& path) {
    int fields =
        SAM_QNAME | SAM_FLAG | SAM_RNAME | SAM_POS | SAM_MAPQ | SAM_CIGAR | SAM_RNEXT | SAM_PNEXT | SAM_SEQ | SAM_QUAL;
    if (need_read_groups) fields |= SAM_RGAUX;
    if (hts_set_opt(file, CRAM_OPT_REQUIRED_FIELDS, fields) != 0 || hts_set_opt(file, CRAM_OPT_DECODE_MD, 0) != 0)
        throw Error(ErrorCode::runtime, opening, path, "htslib refuses the CRAM decoder's options");
}

void find_index(AlignmentFile::State& state) {
    if (!state.seekable || (state.format != bam && state.format != cram)) return;
    std::vector<std::string> names;
    if (!state.index_path.empty()) {
        names.push_back(state.index_path);
    } else {
        const bool is_cram = state.format == cram;
        const std::string stem = state.path.substr(0, state.path.rfind('.'));
        for (const char* ending :
             is_cram ? std::vector<const char*>{".crai"} : std::vector<const char*>{".csi", ".bai"}) {
            names.push_back(state.path + ending);
            names.push_back(stem + ending);
        }
    }
    const auto found = std::find_if(names.begin(), names.end(), exists);
    if (found == names.end()) {
        if (!state.index_path.empty())
            throw system_error(ENOENT, "opening the index", state.index_path, ErrorCode::input);
        return;
    }
    state.index_path = *found;
    if (state.format == cram) {
        state.slices = read_cram_index(state.index_path, state.contigs.size());
        state.container_descriptor = ::open(state.path.c_str(), O_RDONLY | O_CLOEXEC);
        if (state.container_descriptor < 0) throw system_error(errno, opening, state.path, ErrorCode::input);
        return;
    }
    state.bam_index.reset(sam_index_load3(state.file.get(), state.path.c_str(), state.index_path.c_str(), 0));
    if (!state.bam_index)
        throw Error(ErrorCode::input, "opening the index", state.index_path,
                    "unreadable: make it again with samtools index " + state.path);
    if (hts_idx_nseq(state.bam_index.get()) > static_cast<int>(state.contigs.size()))
        throw Error(ErrorCode::input, "opening the index", state.index_path,
                    "it has more contigs than the header: make it again with samtools index " + state.path);
}

} // namespace

AlignmentFile::State::~State() {
    if (container_descriptor >= 0) ::close(container_descriptor);
}

AlignmentFile::AlignmentFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
AlignmentFile::~AlignmentFile() = default;

std::shared_ptr<const AlignmentFile> AlignmentFile::open(const std::string& path, const std::string& reference,
                                                         const std::string& index) {
    auto state = std::make_unique<State>();
    state->path = path;
    state->reference = reference;
    state->index_path = index;
    state->standard_input = path == "-";
    struct stat status {};
    if (!state->standard_input && ::stat(path.c_str(), &status) == 0) {
        if (S_ISDIR(status.st_mode)) throw system_error(EISDIR, opening, path, ErrorCode::input);
        state->seekable = S_ISREG(status.st_mode);
    }
    state->file = open_file(path);
    const htsFormat& format = *hts_get_format(state->file.get());
    if (format.category != sequence_data || (format.format != bam && format.format != cram && format.format != sam))
        throw Error(ErrorCode::input, opening, path, "neither BAM, CRAM nor SAM");
    state->format = format.format;
    read_header(*state);
    check_end_block(*state);
    if (state->format == cram) {
        set_reference(*state);
        forget_other_references(*state, state->file.get());
    }
    find_index(*state);
    return std::shared_ptr<const AlignmentFile>(new AlignmentFile(std::move(state)));
}

File open_for_reading(const AlignmentFile::State& state, bool need_read_groups) {
    // A failure below closes the file while this is held.
    std::unique_lock<Turn<>> sharing;
    File file;
    // What is no regular file can be read only once: its first stream continues where the header ended.
    if (!state.seekable) {
        if (state.taken.exchange(true))
            throw Error(ErrorCode::usage, opening, state.path,
                        "a stream that cannot be sought is read once, by one reader");
        file = std::move(state.file);
    } else {
        file = open_file(state.path);
    }
    if (state.format == cram) {
        sharing = std::unique_lock(state.sharing);
        if (state.seekable && hts_set_opt(file.get(), CRAM_OPT_SHARED_REF, cram_get_refs(state.file.get())) != 0)
            throw Error(ErrorCode::runtime, opening, state.path, "htslib refuses to share the reference");
        set_required_fields(file.get(), need_read_groups, state.path);
        forget_other_references(state, file.get());
    }
    return file;
}

std::string locus(const AlignmentFile::State& state, std::int32_t contig, std::int64_t position) {
    return state.contigs.at(static_cast<std::size_t>(contig)).name + ":" + std::to_string(position + 1);
}

const std::string& AlignmentFile::path() const noexcept {
    return state_->path;
}
const std::vector<Contig>& AlignmentFile::contigs() const noexcept {
    return state_->contigs;
}
const std::vector<std::string>& AlignmentFile::samples() const noexcept {
    return state_->samples;
}
const std::vector<ReadGroup>& AlignmentFile::read_groups() const noexcept {
    return state_->read_groups;
}
SortOrder AlignmentFile::sort_order() const noexcept {
    return state_->order;
}
bool AlignmentFile::is_cram() const noexcept {
    return state_->format == cram;
}
bool AlignmentFile::has_index() const noexcept {
    return state_->bam_index || state_->container_descriptor >= 0;
}

std::optional<std::int32_t> AlignmentFile::find_contig(std::string_view name) const {
    const auto found = state_->contig_indexes.find(std::string(name));
    if (found == state_->contig_indexes.end()) return std::nullopt;
    return found->second;
}

std::optional<std::uint64_t> AlignmentFile::indexed_reads() const {
    const hts_idx_t* index = state_->bam_index.get();
    if (index == nullptr) return std::nullopt;
    std::uint64_t total = hts_idx_get_n_no_coor(index);
    bool any = false;
    for (int contig = 0; contig < hts_idx_nseq(index); ++contig) {
        std::uint64_t mapped = 0, unmapped = 0;
        if (hts_idx_get_stat(index, contig, &mapped, &unmapped) < 0) continue;
        any = true;
        total += mapped + unmapped;
    }
    return any || total > 0 ? std::optional(total) : std::nullopt;
}

std::string htslib_version() {
    return hts_version();
}

} // namespace spillway::hts
