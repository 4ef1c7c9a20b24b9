#include "gpu/packing.hpp"

#include "spillway/error.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

namespace spillway::gpu {
namespace {

/// Each part of the staging begins at a multiple of it, so that loads are aligned.
constexpr std::size_t alignment = 64;

constexpr std::size_t round_up(std::size_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
}

constexpr std::size_t bases_at = round_up(sizeof(Layout));

/// Bytes, each chosen by itself, become vector code; a chain of choices does not, and is five times as slow.
void write_bases(std::string_view bases, std::uint8_t* to) {
    using Byte = std::uint8_t;
    const char* const from = bases.data();
    const std::size_t size = bases.size();
    for (std::size_t i = 0; i < size; ++i) {
        const auto lower = static_cast<Byte>(static_cast<Byte>(from[i]) | 0x20U);
        const Byte a = lower == 'a' ? Byte{4} : Byte{0};
        const Byte c = lower == 'c' ? Byte{3} : Byte{0};
        const Byte g = lower == 'g' ? Byte{2} : Byte{0};
        const Byte t = lower == 't' ? Byte{1} : Byte{0};
        to[i] = static_cast<Byte>(unknown_base - (a | c | g | t)); // at most one of them
    }
}

constexpr std::uint64_t order_of(const Tiling& tiling, std::size_t rows) {
    return std::uint64_t{tiling.shape} << 48U | std::uint64_t{tiling.threads} << 32U | rows;
}

bool same_place(std::string_view a, std::string_view b) {
    return a.data() == b.data() && a.size() == b.size();
}

template <class T>
T* part(std::span<std::byte> host, std::uint64_t at) {
    return reinterpret_cast<T*>(host.data() + at);
}

} // namespace

Launch Layout::at(std::byte* memory) const {
    Launch result = launch;
    result.work.bases = reinterpret_cast<const std::uint8_t*>(memory + bases_at);
    result.work.packs = reinterpret_cast<const Pack*>(memory + packs_at);
    result.work.tiles = reinterpret_cast<const Tile*>(memory + tiles_at);
    result.work.pairs = reinterpret_cast<const Pair*>(memory + pairs_at);
    result.work.ends = reinterpret_cast<End*>(memory + ends_at);
    return result;
}

std::span<const End> Layout::ends(std::span<const std::byte> host) const {
    return {reinterpret_cast<const End*>(host.data() + ends_at), launch.pairs};
}

const Layout& Layout::of(std::span<const std::byte> host) {
    return *reinterpret_cast<const Layout*>(host.data());
}

std::size_t Packing::header_bytes() noexcept {
    return bases_at + 5 * alignment;
}

std::size_t Packing::bytes_of_target(std::size_t size) noexcept {
    return size + 1;
}

std::size_t Packing::bytes_of_pair(std::size_t query_size) noexcept {
    return query_size + sizeof(Pack) + sizeof(Tile) + sizeof(Pair) + sizeof(End);
}

void Packing::next_target(std::string_view target) {
    // Tasks may share a haplotype: it is sent once.
    if (!targets_.empty() && same_place(targets_[present_].bases, target)) return;
    flush();
    if (2 * targets_.size() >= numbers_.size()) grow_numbers();
    std::uint32_t& number = number_of(target);
    if (number == none) {
        number = static_cast<std::uint32_t>(targets_.size());
        targets_.push_back({target});
    }
    present_ = number;
}

/// Of numbers_: where the target's is, or where it is to be put.
std::uint32_t& Packing::number_of(std::string_view target) {
    const std::size_t mask = numbers_.size() - 1;
    // The upper bits of the product are spread best; addresses differ in their middle ones.
    std::size_t at = (reinterpret_cast<std::uintptr_t>(target.data()) + target.size()) * 0x9E3779B97F4A7C15U >> 32U;
    while (numbers_[at & mask] != none && !same_place(targets_[numbers_[at & mask]].bases, target)) ++at;
    return numbers_[at & mask];
}

void Packing::grow_numbers() {
    numbers_.assign(std::max<std::size_t>(64, 2 * numbers_.size()), none);
    for (std::uint32_t i = 0; i < targets_.size(); ++i) number_of(targets_[i].bases) = i;
}

bool Packing::add(std::string_view query) {
    Target& target = targets_[present_];
    const std::optional<Tiling> tiling = fit_.of(query.size(), target.bases.size());
    if (!tiling) return false;
    if (!target.used) {
        target.used = true;
        target.at = static_cast<std::uint32_t>(bases_);
        bases_ += target.bases.size() + 1;
    }
    const auto number = static_cast<std::uint32_t>(queries_.size());
    queries_.push_back({query, static_cast<std::uint32_t>(bases_), present_});
    bases_ += query.size();
    cells_ += std::uint64_t{query.size()} * target.bases.size();
    const std::uint64_t order = order_of(*tiling, target.bases.size());
    if (!shapes[tiling->shape].packed) {
        groups_.push_back({order, number, none});
        return true;
    }
    std::uint32_t& waiting = waiting_[tiling->shape * (warp_size + 1) + tiling->threads];
    if (waiting == none) {
        waiting = static_cast<std::uint32_t>(groups_.size());
        waiting_used_.push_back(static_cast<std::uint32_t>(&waiting - waiting_.data()));
        groups_.push_back({order, number, none});
    } else {
        groups_[waiting].second = number;
        waiting = none;
    }
    return true;
}

void Packing::flush() {
    for (const std::uint32_t used : waiting_used_) waiting_[used] = none;
    waiting_used_.clear();
}

const Layout& Packing::write(std::span<std::byte> host) {
    flush();
    std::sort(groups_.begin(), groups_.end(), [](const Group& a, const Group& b) {
        return a.order != b.order ? a.order < b.order : a.first < b.first;
    });

    Layout layout;
    layout.cells = cells_;
    layout.launch.pairs = static_cast<std::uint32_t>(queries_.size());
    layout.launch.local = fit_.local();
    layout.launch.work.scores = fit_.scores();
    fit_.write_rows(layout.launch.work.rows);
    // Tiles are as many as groups at most; where they end is known once they are made.
    layout.packs_at = round_up(bases_at + bases_);
    layout.tiles_at = round_up(layout.packs_at + groups_.size() * sizeof(Pack));
    const std::size_t most = layout.tiles_at + round_up(groups_.size() * sizeof(Tile)) +
                             round_up(queries_.size() * sizeof(Pair)) + queries_.size() * sizeof(End);
    if (most > host.size() || most > std::numeric_limits<std::uint32_t>::max()) {
        throw Error(ErrorCode::usage, "packing alignments for a device", "",
                    std::to_string(most) + " bytes do not fit in staging of " + std::to_string(host.size()));
    }

    auto* const bases = part<std::uint8_t>(host, bases_at);
    for (const Target& target : targets_) {
        if (!target.used) continue;
        write_bases(target.bases, bases + target.at);
        bases[target.at + target.bases.size()] = static_cast<std::uint8_t>(beyond);
    }
    for (const Query& query : queries_) write_bases(query.bases, bases + query.at);

    auto* const packs = part<Pack>(host, layout.packs_at);
    auto* const tiles = part<Tile>(host, layout.tiles_at);
    std::uint32_t tile = 0;
    for (std::uint32_t i = 0; i < groups_.size(); ++i) {
        const Group& group = groups_[i];
        const Target& target = targets_[queries_[group.first].target];
        Pack& pack = packs[i];
        pack = {};
        pack.target_at = target.at;
        pack.target_size = static_cast<std::uint32_t>(target.bases.size());
        unsigned k = 0;
        for (const std::uint32_t number : {group.first, group.second}) {
            if (number == none) continue;
            pack.query_at[k] = queries_[number].at;
            pack.query_size[k] = static_cast<std::uint32_t>(queries_[number].bases.size());
            pack.end[k] = number;
            ++k;
        }
        const auto shape = static_cast<std::uint32_t>(group.order >> 48U);
        const auto threads = static_cast<std::uint32_t>(group.order >> 32U & 0xFFFFU);
        const bool joins =
            i > 0 && groups_[i - 1].order >> 32U == group.order >> 32U && tiles[tile - 1].packs < warp_size / threads;
        if (!joins) {
            if (layout.launch.tiles[shape]++ == 0) layout.launch.first_tile[shape] = tile;
            tiles[tile++] = {i, 0, threads, 0};
        }
        ++tiles[tile - 1].packs;
        tiles[tile - 1].rows = std::max(tiles[tile - 1].rows, pack.target_size);
    }

    layout.pairs_at = round_up(layout.tiles_at + tile * sizeof(Tile));
    auto* const pairs = part<Pair>(host, layout.pairs_at);
    for (std::size_t i = 0; i < queries_.size(); ++i) {
        pairs[i] = {queries_[i].at, targets_[queries_[i].target].at};
    }
    layout.ends_at = round_up(layout.pairs_at + queries_.size() * sizeof(Pair));
    layout.size = layout.ends_at + queries_.size() * sizeof(End);
    std::memcpy(host.data(), &layout, sizeof layout);
    return Layout::of(host);
}

} // namespace spillway::gpu
