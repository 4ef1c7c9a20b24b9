#include "hts/alignment_state.hpp"
#include "hts/block_builder.hpp"
#include "hts/cram_index.hpp"

#include <htslib/bgzf.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <string>
#include <unordered_set>

namespace spillway::hts {
namespace {

constexpr const char* reading = "reading alignments";

/// Reads of a block: enough that blocks cost nothing, few enough that a window holds little that it does not need.
constexpr std::size_t reads_in_block = 256;
/// And bases, so that a block of long reads is no larger than its reads must be.
constexpr std::size_t bytes_in_block = std::size_t{1} << 20;
constexpr std::size_t short_reads_block_bytes = std::size_t{128} << 10;
/// What htslib's decoder holds: a BGZF block both ways; for CRAM a container's blocks and decoded records (9 MB were
/// measured with slices of 10,000 reads of 101 bases).
constexpr std::size_t bam_decoder_bytes = std::size_t{256} << 10;
constexpr std::size_t cram_decoder_bytes = std::size_t{12} << 20;

/// htslib's iterator calls this for each record, those before the span too, so that they are counted.
int read_and_count(BGZF* file, void* data, void* target, int* contig, hts_pos_t* begin, hts_pos_t* end) {
    auto* const record = static_cast<bam1_t*>(target);
    const int got = bam_read1(file, record);
    if (got >= 0) {
        ++*static_cast<std::uint64_t*>(data);
        *contig = record->core.tid;
        *begin = record->core.pos;
        *end = bam_endpos(record);
    }
    return got;
}

} // namespace

struct ReadStream::State {
    std::shared_ptr<const AlignmentFile> file;
    ReadFilter filter;
    std::unordered_set<std::string> groups; ///< Read groups of the wanted sample; used only if by_group.
    bool by_group = false;

    File handle;
    Index cram_index; ///< htslib's belongs to the handle.
    Iterator iterator;
    Record record{bam_init1()};
    BlockBuilder builder;
    ReadCounts counts;

    Interval span;              ///< What was sought; contig -1: the whole file.
    bool before_header = false; ///< The handle has not read past the header.
    bool pending = false;       ///< `record` holds a read that did not fit the last block.
    bool finished = false;
    std::int32_t last_contig = 0;
    std::int64_t last_position = -1;

    State(std::shared_ptr<const AlignmentFile> alignments, ReadFilter wanted)
        : file(std::move(alignments)), filter(std::move(wanted)), builder(filter.missing_quality) {}

    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State();

    const AlignmentFile::State& shared() const { return file->state(); }
    bool is_cram() const { return file->is_cram(); }

    [[noreturn]] void fail(std::string detail) const;
    void choose_groups();
    int read();
    bool next_record();
    bool wanted_by_filter() const;
    void check_order();
    void check_end();
    bool count_containers();
    bool gather();
};

ReadStream::State::~State() {
    iterator.reset();
    cram_index.reset();
    const std::lock_guard lock(shared().sharing);
    handle.reset();
}

void ReadStream::State::fail(std::string detail) const {
    std::string where = shared().path;
    if (last_position >= 0) where += ", after the read at " + locus(shared(), last_contig, last_position);
    throw Error(ErrorCode::input, reading, std::move(where), std::move(detail));
}

void ReadStream::State::choose_groups() {
    if (filter.sample.empty()) return;
    const std::vector<std::string>& samples = file->samples();
    if (std::find(samples.begin(), samples.end(), filter.sample) == samples.end())
        throw Error(ErrorCode::usage, reading, shared().path, "no read group has the sample " + filter.sample);
    for (const ReadGroup& group : file->read_groups())
        if (group.sample == filter.sample) groups.insert(group.id);
    // With one sample only, reads without a group are its too, and no tag needs to be looked at.
    by_group = samples.size() > 1;
}

/// As sam_read1: the next record, -1 at the end, less on an error.
int ReadStream::State::read() {
    if (!iterator) {
        if (before_header) {
            // Reading in order begins behind the header, which is known already.
            const Header skipped(sam_hdr_read(handle.get()));
            if (!skipped) fail("the header cannot be read");
            before_header = false;
        }
        const int got = sam_read1(handle.get(), shared().header.get(), record.get());
        if (got >= 0) ++counts.decoded;
        return got;
    }
    if (is_cram()) return sam_itr_next(handle.get(), iterator.get(), record.get());
    return hts_itr_next(handle->fp.bgzf, iterator.get(), record.get(), &counts.decoded);
}

void ReadStream::State::check_order() {
    const bam1_core_t& core = record->core;
    if (core.tid < last_contig || (core.tid == last_contig && core.pos < last_position))
        throw Error(ErrorCode::input, reading, shared().path,
                    std::string("not sorted by coordinate: read ") + bam_get_qname(record.get()) + " at " +
                        locus(shared(), core.tid, core.pos) + " follows one at " +
                        locus(shared(), last_contig, last_position) + ": sort it with samtools sort");
    last_contig = core.tid;
    last_position = core.pos;
}

/// A stream that cannot be sought was not asked for its end block when it was opened.
void ReadStream::State::check_end() {
    if (shared().seekable || iterator || !handle->is_bgzf) return;
    if (handle->fp.bgzf->no_eof_block) fail("truncated: the end-of-file block is missing");
}

bool ReadStream::State::wanted_by_filter() const {
    const bam1_core_t& core = record->core;
    if ((core.flag & (filter.exclude | flag_unmapped)) != 0) return false;
    if (core.qual < filter.min_mapping_quality) return false;
    if (!by_group) return true;
    const std::uint8_t* const group = bam_aux_get(record.get(), "RG");
    const char* const name = group == nullptr ? nullptr : bam_aux2Z(group);
    return name != nullptr && groups.contains(name);
}

/// Reads on to the next record with a place that passes the filter; false at the end.
bool ReadStream::State::next_record() {
    for (;;) {
        errno = 0;
        const int got = read();
        if (got == -1) {
            check_end();
            return false;
        }
        if (got < -1) {
            if (errno == ENOMEM) throw system_error(errno, reading, shared().path, ErrorCode::memory);
            fail(is_cram() ? "truncated, malformed, or made with another reference than " + shared().reference
                           : "truncated or malformed");
        }
        const bam1_core_t& core = record->core;
        if (core.tid < 0 || core.pos < 0) {
            // Reads without a place; they stand at the end.
            ++counts.filtered;
            continue;
        }
        if (static_cast<std::size_t>(core.tid) >= shared().contigs.size())
            fail("a read names a contig that the header lacks");
        check_order();
        if (is_cram() && !shared().in_reference[static_cast<std::size_t>(core.tid)])
            fail("contig " + shared().contigs[static_cast<std::size_t>(core.tid)].name + " is not in " +
                 shared().reference);
        if (wanted_by_filter()) return true;
        ++counts.filtered;
    }
}

/// Adds `record` to the block, or leaves it pending where the block is full or of another contig. False when it is.
bool ReadStream::State::gather() {
    const std::int32_t contig = record->core.tid;
    const bool full = builder.size() >= reads_in_block || builder.bytes_used() >= bytes_in_block;
    if (builder.size() > 0 && (full || builder.contig() != contig)) return false;
    switch (builder.add(*record, shared().contigs[static_cast<std::size_t>(contig)].length, counts)) {
    case Outcome::added:
        ++counts.given;
        break;
    case Outcome::without_bases:
        ++counts.without_bases;
        break;
    case Outcome::without_match:
        ++counts.without_match;
        break;
    case Outcome::malformed:
        fail(std::string("read ") + bam_get_qname(record.get()) + " has a CIGAR that does not fit its bases");
    }
    return true;
}

/// htslib decodes CRAM by whole slices and does not say how many records they had: the containers' headers do.
/// False where the span has no slices.
bool ReadStream::State::count_containers() {
    const std::vector<CramSlice>& slices = shared().slices;
    std::int64_t last = -1;
    for (auto slice = std::lower_bound(slices.begin(), slices.end(), span.contig,
                                       [](const CramSlice&a, std::int32_t contig) { return a.contig < contig; });
         slice != slices.end() && slice->contig == span.contig && slice->begin < span.end; ++slice) {
        if (slice->end <= span.begin || slice->container == last) continue;
        last = slice->container;
        counts.decoded += records_of_container(shared().container_descriptor, last);
    }
    return last >= 0;
}

ReadStream::ReadStream(std::shared_ptr<const AlignmentFile> file, ReadFilter filter)
    : state_(std::make_unique<State>(std::move(file), std::move(filter))) {
    state_->choose_groups();
    state_->handle = open_for_reading(state_->shared(), state_->by_group);
    state_->before_header = state_->shared().seekable && !state_->is_cram();
    if (!state_->record) throw std::bad_alloc();
}

ReadStream::~ReadStream() = default;
ReadStream::ReadStream(ReadStream&&) noexcept = default;
ReadStream& ReadStream::operator=(ReadStream&&) noexcept = default;

void ReadStream::seek(const Interval& span) {
    State& state = *state_;
    const AlignmentFile::State& shared = state.shared();
    if (!state.file->has_index())
        throw Error(ErrorCode::input, "seeking alignments", shared.path,
                    "no index (.bai, .csi or .crai) beside it: make one with samtools index " + shared.path);
    if (span.contig < 0 || static_cast<std::size_t>(span.contig) >= shared.contigs.size() || span.begin > span.end)
        throw Error(ErrorCode::usage, "seeking alignments", shared.path, "no such span");
    const auto contig = static_cast<std::size_t>(span.contig);
    state.span = {span.contig, std::max<std::int64_t>(span.begin, 0),
                  std::min(span.end, shared.contigs[contig].length)};
    state.builder.clear();
    state.pending = false;
    state.last_contig = span.contig;
    state.last_position = -1;
    state.finished = state.span.begin >= state.span.end;
    state.iterator.reset();
    if (state.finished) return;
    if (state.is_cram()) {
        const bool reads = state.count_containers();
        if (!reads) {
            state.finished = true;
            return;
        }
        if (!shared.in_reference[contig])
            throw Error(ErrorCode::input, reading, shared.path,
                        "contig " + shared.contigs[contig].name + " is not in " + shared.reference);
        if (!state.cram_index)
            state.cram_index.reset(
                sam_index_load3(state.handle.get(), shared.path.c_str(), shared.index_path.c_str(), 0));
        if (!state.cram_index)
            throw Error(ErrorCode::input, "opening the index", shared.index_path,
                        "unreadable: make it again with samtools index " + shared.path);
        state.iterator.reset(sam_itr_queryi(state.cram_index.get(), span.contig, state.span.begin, state.span.end));
    } else {
        state.iterator.reset(
            hts_itr_query(shared.bam_index.get(), span.contig, state.span.begin, state.span.end, read_and_count));
    }
    if (!state.iterator)
        throw Error(ErrorCode::input, "seeking alignments",
                    shared.path + ":" + locus(shared, span.contig, state.span.begin),
                    "the index does not fit the file: make it again with samtools index " + shared.path);
}

std::shared_ptr<const ReadBlock> ReadStream::next() {
    State& state = *state_;
    while (!state.finished) {
        if (!state.pending && !state.next_record()) {
            state.finished = true;
            break;
        }
        state.pending = !state.gather();
        if (state.pending) return state.builder.take();
    }
    return state.builder.take();
}

const ReadCounts& ReadStream::counts() const noexcept {
    return state_->counts;
}

std::size_t ReadStream::bytes(const AlignmentFile& file) noexcept {
    return sizeof(State) + short_reads_block_bytes + (file.is_cram() ? cram_decoder_bytes : bam_decoder_bytes);
}

} // namespace spillway::hts
