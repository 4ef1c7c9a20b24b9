#include "base/try_lock.hpp"
#include "base/turn.hpp"
#include "hts/alignment_state.hpp"
#include "spillway/hts.hpp"

#include <htslib/hts.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <unistd.h>

namespace spillway::hts {
namespace {

/// The bases that a code stands for: A 1, C 2, G 4, T 8; 0 for what is no code. Both cases.
constexpr std::array<std::uint8_t, 256> code_bases = [] {
    std::array<std::uint8_t, 256> bases{};
    constexpr std::pair<unsigned char, std::uint8_t> codes[] = {
        {'A', 1}, {'C', 2},  {'G', 4}, {'T', 8},  {'U', 8},  {'R', 5},  {'Y', 10}, {'S', 6},
        {'W', 9}, {'K', 12}, {'M', 3}, {'B', 14}, {'D', 13}, {'H', 11}, {'V', 7},  {'N', 15}};
    for (const auto& [code, mask] : codes) {
        bases[code] = mask;
        bases[code | 0x20U] = mask;
    }
    return bases;
}();

constexpr std::array<char, 256> upper_codes = [] {
    std::array<char, 256> upper{};
    for (std::size_t c = 0; c < 256; ++c) {
        const bool lower = c >= 'a' && c <= 'z';
        upper[c] = code_bases[c] == 0 ? 'N' : static_cast<char>(lower ? c - 'a' + 'A' : c);
    }
    upper['U'] = upper['u'] = 'T';
    return upper;
}();

std::uint8_t bases_of(char code) {
    return code_bases[static_cast<unsigned char>(code)];
}

} // namespace

char vcf_base(char reference) noexcept {
    const std::uint8_t bases = bases_of(reference);
    if (bases == 0 || bases == 15) return 'N';
    return bases & 1 ? 'A' : bases & 2 ? 'C' : bases & 4 ? 'G' : 'T';
}

bool compatible(char reference, char base) noexcept {
    const std::uint8_t read = bases_of(base);
    return read != 15 && (bases_of(reference) & read) != 0;
}

std::string md5(std::string_view sequence) {
    const std::unique_ptr<hts_md5_context, Destroy<hts_md5_destroy>> context(hts_md5_init());
    if (!context) throw std::bad_alloc();
    // The length that htslib takes is an unsigned long: a whole contig fits.
    hts_md5_update(context.get(), sequence.data(), static_cast<unsigned long>(sequence.size()));
    std::array<unsigned char, 16> digest{};
    hts_md5_final(digest.data(), context.get());
    std::array<char, 33> hex{};
    hts_md5_hex(hex.data(), digest.data());
    return hex.data();
}

struct Reference::State {
    /// Kept alive although perhaps nobody uses them: a pool works on two neighbouring contigs at a time.
    static constexpr std::size_t kept = 2;

    struct Slot {
        std::string name;
        std::int64_t length = 0;
        std::weak_ptr<const std::string> sequence; // guarded by busy
    };

    std::string path;
    std::vector<Slot> slots;
    std::unordered_map<std::string_view, std::size_t> indexes;
    FastaIndex fasta;                                            // guarded by loading
    Turn<> loading;                                              // for a load: one handle, one at a time
    std::array<std::shared_ptr<const std::string>, kept> recent; // guarded by loading
    std::size_t next_recent = 0;                                 // guarded by loading
    TryLock<> busy;                                              // held for a few instructions
    std::shared_ptr<std::atomic<std::size_t>> alive = std::make_shared<std::atomic<std::size_t>>(0);

    std::shared_ptr<const std::string> held(const Slot& slot) {
        const std::lock_guard mine(busy);
        return slot.sequence.lock();
    }
    void hold(Slot& slot, const std::shared_ptr<const std::string>& sequence) {
        const std::lock_guard mine(busy);
        slot.sequence = sequence;
    }

    std::shared_ptr<const std::string> load(const Slot& slot);
};

Reference::Reference(std::string path) : state_(std::make_unique<State>()) {
    constexpr const char* opening = "opening the reference";
    state_->path = std::move(path);
    if (::access(state_->path.c_str(), R_OK) != 0) throw system_error(errno, opening, state_->path, ErrorCode::input);
    const std::string index = state_->path + ".fai";
    if (::access(index.c_str(), R_OK) != 0)
        throw Error(ErrorCode::input, opening, index,
                    "no index beside the FASTA: make one with samtools faidx " + state_->path);
    state_->fasta.reset(fai_load3_format(state_->path.c_str(), index.c_str(), nullptr, 0, FAI_FASTA));
    if (!state_->fasta)
        throw Error(ErrorCode::input, opening, state_->path,
                    "not FASTA, gzipped but not by bgzip, or with an unreadable .fai or .gzi: make them with bgzip and "
                    "samtools faidx");
    const int contigs = faidx_nseq(state_->fasta.get());
    state_->slots.reserve(static_cast<std::size_t>(contigs));
    for (int i = 0; i < contigs; ++i) {
        const char* const name = faidx_iseq(state_->fasta.get(), i);
        state_->slots.push_back({name, faidx_seq_len(state_->fasta.get(), name), {}});
    }
    for (std::size_t i = 0; i < state_->slots.size(); ++i) state_->indexes.emplace(state_->slots[i].name, i);
}

Reference::~Reference() = default;
Reference::Reference(Reference&&) noexcept = default;
Reference& Reference::operator=(Reference&&) noexcept = default;

const std::string& Reference::path() const noexcept {
    return state_->path;
}

std::optional<std::int64_t> Reference::length(std::string_view name) const {
    const auto found = state_->indexes.find(name);
    if (found == state_->indexes.end()) return std::nullopt;
    return state_->slots[found->second].length;
}

std::size_t Reference::bytes() const noexcept {
    return state_->alive->load(std::memory_order_relaxed);
}

std::shared_ptr<const std::string> Reference::State::load(const Slot& slot) {
    auto sequence = std::make_unique<std::string>();
    if (slot.length > 0) {
        hts_pos_t length = 0;
        const Malloced<char> raw(faidx_fetch_seq64(fasta.get(), slot.name.c_str(), 0, slot.length - 1, &length));
        if (!raw || length != slot.length)
            throw Error(ErrorCode::input, "reading the reference", path + ":" + slot.name,
                        "truncated, or its index is of another file: make it again with samtools faidx " + path);
        sequence->resize(static_cast<std::size_t>(length));
        std::transform(raw.get(), raw.get() + length, sequence->begin(),
                       [](char c) { return upper_codes[static_cast<unsigned char>(c)]; });
    }
    const std::size_t held = sequence->capacity();
    alive->fetch_add(held, std::memory_order_relaxed);
    return {sequence.release(), [held, count = alive](const std::string* done) {
                delete done;
                count->fetch_sub(held, std::memory_order_relaxed);
            }};
}

std::shared_ptr<const std::string> Reference::contig(std::string_view name) const {
    State& state = *state_;
    const auto found = state.indexes.find(name);
    if (found == state.indexes.end())
        throw Error(ErrorCode::input, "reading the reference", state.path, "it has no contig " + std::string(name));
    State::Slot& slot = state.slots[found->second];
    if (auto hit = state.held(slot)) return hit;
    const std::lock_guard lock(state.loading);
    // Another thread may have loaded it while this one waited.
    if (auto hit = state.held(slot)) return hit;
    auto sequence = state.load(slot);
    state.recent[state.next_recent] = sequence;
    state.next_recent = (state.next_recent + 1) % State::kept;
    state.hold(slot, sequence);
    return sequence;
}

std::vector<std::int32_t> check_contigs(const AlignmentFile& file, const Reference& reference) {
    std::vector<std::int32_t> missing;
    const std::vector<Contig>& contigs = file.contigs();
    for (std::size_t i = 0; i < contigs.size(); ++i) {
        const auto length = reference.length(contigs[i].name);
        if (contigs[i].length == 0) continue; // a FASTA index lists no empty contigs
        if (!length) {
            missing.push_back(static_cast<std::int32_t>(i));
        } else if (*length != contigs[i].length) {
            throw Error(ErrorCode::input, "comparing contigs", file.path(),
                        "contig " + contigs[i].name + " has length " + std::to_string(contigs[i].length) + " but " +
                            std::to_string(*length) + " in " + reference.path() + ": this is another reference");
        }
    }
    return missing;
}

} // namespace spillway::hts
