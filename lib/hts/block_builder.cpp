#include "hts/block_builder.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace spillway::hts {
namespace {

/// SEQ's four bits as letters, two to a byte; what is no base is N.
constexpr std::array<std::array<char, 2>, 256> letter_pairs = [] {
    constexpr char letters[] = "NACNGNNNTNNNNNNN";
    std::array<std::array<char, 2>, 256> pairs{};
    for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] = {letters[i >> 4], letters[i & 15]};
    return pairs;
}();

void unpack_bases(const std::uint8_t* packed, std::size_t length, char* out) {
    for (std::size_t i = 0; i + 1 < length; i += 2) std::memcpy(out + i, letter_pairs[packed[i / 2]].data(), 2);
    if (length % 2 != 0) out[length - 1] = letter_pairs[packed[length / 2]][0];
}

} // namespace

std::uint64_t hash_name(std::string_view name) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash;
}

std::size_t ReadBlock::bytes() const noexcept {
    return sizeof(ReadBlock) + reads_.capacity() * sizeof(Read) + arena_bytes_;
}

void BlockBuilder::append(std::uint32_t operation, std::int64_t length) {
    if (cigar_.size() > cigar_begin_ && (cigar_.back() & BAM_CIGAR_MASK) == operation)
        length += cigar_.back() >> BAM_CIGAR_SHIFT, cigar_.pop_back();
    // Only a chain of introns can outgrow an element's 28 bits: it is then written as several.
    constexpr std::int64_t longest = (1 << 28) - 1;
    for (; length > longest; length -= longest)
        cigar_.push_back(static_cast<std::uint32_t>(longest) << BAM_CIGAR_SHIFT | operation);
    cigar_.push_back(static_cast<std::uint32_t>(length) << BAM_CIGAR_SHIFT | operation);
}

bool BlockBuilder::normalise(std::span<const std::uint32_t> raw, std::int64_t room) {
    cigar_begin_ = cigar_.size();
    on_reference_ = on_read_ = 0;
    matches_ = clipped_ = false;
    for (const std::uint32_t element : raw) {
        const std::int64_t length = element >> BAM_CIGAR_SHIFT;
        if (length == 0) continue;
        switch (element & BAM_CIGAR_MASK) {
        case BAM_CMATCH:
        case BAM_CEQUAL:
        case BAM_CDIFF: {
            const std::int64_t inside = std::min(length, room - on_reference_);
            if (inside > 0) append(cigar_match, inside), matches_ = true;
            if (inside < length) append(cigar_soft_clip, length - inside), clipped_ = true;
            on_reference_ += inside;
            on_read_ += length;
            break;
        }
        case BAM_CDEL:
        case BAM_CREF_SKIP: {
            const std::int64_t inside = std::min(length, room - on_reference_);
            if (inside < length) clipped_ = true;
            if (inside > 0) append(matches_ && bam_cigar_op(element) == BAM_CDEL ? cigar_deletion : cigar_skip, inside);
            on_reference_ += inside;
            break;
        }
        case BAM_CINS:
            append(clipped_ ? cigar_soft_clip : cigar_insertion, length);
            on_read_ += length;
            break;
        case BAM_CSOFT_CLIP:
            append(cigar_soft_clip, length);
            on_read_ += length;
            break;
        case BAM_CHARD_CLIP:
        case BAM_CPAD:
            break;
        default:
            return false;
        }
    }
    // A deletion or skip behind the last aligned base, before clips, says nothing.
    for (std::size_t i = cigar_.size(); matches_ && i > cigar_begin_; --i) {
        const std::uint32_t operation = cigar_[i - 1] & BAM_CIGAR_MASK;
        if (operation == cigar_match) break;
        if (operation != cigar_deletion && operation != cigar_skip) continue;
        on_reference_ -= cigar_[i - 1] >> BAM_CIGAR_SHIFT;
        cigar_.erase(cigar_.begin() + static_cast<std::ptrdiff_t>(i - 1));
    }
    return true;
}

Outcome BlockBuilder::add(const bam1_t& record, std::int64_t contig_length, ReadCounts& counts) {
    const bam1_core_t& core = record.core;
    if (core.l_qseq <= 0) return Outcome::without_bases;
    if (core.n_cigar == 0 || core.pos < 0 || core.pos >= contig_length) return Outcome::without_match;
    const auto length = static_cast<std::size_t>(core.l_qseq);
    const std::size_t cigar_before = cigar_.size();
    const bool sound = normalise({bam_get_cigar(&record), core.n_cigar}, contig_length - core.pos);
    const bool fits = on_read_ == core.l_qseq;
    if (!sound || !fits || !matches_) {
        cigar_.resize(cigar_before);
        return sound && fits ? Outcome::without_match : Outcome::malformed;
    }

    const std::size_t bases_before = bases_.size();
    bases_.resize(bases_before + length);
    unpack_bases(bam_get_seq(&record), length, bases_.data() + bases_before);
    const std::uint8_t* const qualities = bam_get_qual(&record);
    qualities_.insert(qualities_.end(), qualities, qualities + length);
    // QUAL "*" is 0xff for every base; a single 0xff is malformed but means the same.
    bool missing = false;
    for (auto quality = qualities_.end() - static_cast<std::ptrdiff_t>(length); quality != qualities_.end(); ++quality)
        if (*quality == 0xff) *quality = missing_quality_, missing = true;
    counts.missing_quality += missing ? 1 : 0;
    counts.clipped += clipped_ ? 1 : 0;

    Read read;
    read.contig = core.tid;
    read.begin = core.pos;
    read.end = core.pos + on_reference_;
    read.flags = core.flag;
    read.mapping_quality = core.qual;
    read.name_hash = hash_name(bam_get_qname(&record));
    const bool mate_placed = (core.flag & flag_paired) != 0 && core.mtid >= 0 && core.mpos >= 0;
    read.mate_contig = mate_placed ? core.mtid : -1;
    read.mate_begin = mate_placed ? core.mpos : -1;
    // Its spans are set when the block is taken.
    reads_.push_back(read);
    cigar_sizes_.push_back(static_cast<std::uint32_t>(cigar_.size() - cigar_before));
    lengths_.push_back(static_cast<std::uint32_t>(length));
    return Outcome::added;
}

std::shared_ptr<const ReadBlock> BlockBuilder::take() {
    if (reads_.empty()) return nullptr;
    const std::shared_ptr<ReadBlock> block(new ReadBlock);
    // CIGARs first: they have the largest alignment.
    const std::size_t cigar_bytes = cigar_.size() * sizeof(std::uint32_t);
    block->arena_bytes_ = cigar_bytes + bases_.size() + qualities_.size();
    block->arena_.reset(new std::byte[block->arena_bytes_]);
    std::byte* const arena = block->arena_.get();
    std::memcpy(arena, cigar_.data(), cigar_bytes);
    std::memcpy(arena + cigar_bytes, bases_.data(), bases_.size());
    std::memcpy(arena + cigar_bytes + bases_.size(), qualities_.data(), qualities_.size());
    const auto* cigar = reinterpret_cast<const std::uint32_t*>(arena);
    const auto* bases = reinterpret_cast<const char*>(arena + cigar_bytes);
    const auto* qualities = reinterpret_cast<const std::uint8_t*>(arena + cigar_bytes + bases_.size());
    block->reads_.assign(reads_.begin(), reads_.end());
    for (std::size_t i = 0; i < reads_.size(); ++i) {
        Read& read = block->reads_[i];
        read.cigar = {cigar, cigar_sizes_[i]};
        read.bases = {bases, lengths_[i]};
        read.qualities = {qualities, lengths_[i]};
        cigar += cigar_sizes_[i];
        bases += lengths_[i];
        qualities += lengths_[i];
        block->end_ = std::max(block->end_, read.end);
    }
    clear();
    return block;
}

void BlockBuilder::clear() noexcept {
    reads_.clear();
    cigar_.clear();
    cigar_sizes_.clear();
    lengths_.clear();
    bases_.clear();
    qualities_.clear();
}

} // namespace spillway::hts
