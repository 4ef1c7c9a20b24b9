#include "spillway/region.hpp"

#include "base/countdown.hpp"
#include "base/index_stack.hpp"
#include "base/recycled_array.hpp"
#include "region/cutter.hpp"
#include "region/poison.hpp"
#include "spillway/error.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <sys/mman.h>

namespace spillway {
namespace {

/// A region or a mapping of its own. Its memory changes hands through `references` and the free lists.
struct Entry {
    std::atomic<std::byte*> base{nullptr};
    std::atomic<std::size_t> bytes{0};
    Countdown<> references{0};          ///< See cutter.hpp.
    std::atomic<std::uint32_t> next{0}; ///< Link of the free list that it is in.
};

constexpr std::size_t largest_region = std::size_t{128} << 20U;
static_assert(largest_region / RegionPool::page_bytes <= Cutter<>::most_pages);
constexpr std::size_t huge_page = std::size_t{2} << 20U;

struct alignas(cache_line_pair) PaddedCutter {
    Cutter<> cutter;
};

void check(const RegionOptions& options) {
    const bool size_fits = std::has_single_bit(options.region_bytes) && options.region_bytes >= 65536 &&
                           options.region_bytes <= largest_region;
    if (!size_fits) {
        throw Error(ErrorCode::usage, "making a region pool", "region_bytes = " + std::to_string(options.region_bytes),
                    "it must be a power of two from 64 KiB to 128 MiB");
    }
    if (options.cutters == 0 || options.cutters > 1024) {
        throw Error(ErrorCode::usage, "making a region pool", "cutters = " + std::to_string(options.cutters),
                    "it must be from 1 to 1024");
    }
}

std::byte* map(std::size_t bytes) {
    void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    return static_cast<std::byte*>(mapped);
}

/// Regions begin where a huge page can, so that the kernel may back them by one.
std::byte* map_aligned(std::size_t bytes) {
    if (bytes < huge_page) return map(bytes);
    std::byte* const mapped = map(bytes + huge_page);
    const std::size_t before = (huge_page - std::bit_cast<std::uintptr_t>(mapped) % huge_page) % huge_page;
    if (before != 0) ::munmap(mapped, before);
    ::munmap(mapped + before + bytes, huge_page - before);
    return mapped + before;
}

} // namespace

struct RegionPool::State {
    explicit State(RegionOptions wanted) : options(std::move(wanted)), cutters(options.cutters) {}

    RegionOptions options;
    RecycledArray<Entry, 1024, 1024> entries; // 2 TiB in regions of 2 MiB. Those taken are mapped.
    std::vector<PaddedCutter> cutters;
    IndexStack<> idle_regions; // Taken, and nobody's.
    std::atomic<std::size_t> committed{0}, idle_bytes{0};

    void account(std::int64_t bytes) {
        committed.fetch_add(static_cast<std::size_t>(bytes), std::memory_order_relaxed);
        if (options.on_commit) options.on_commit(bytes);
    }

    std::uint32_t add(std::size_t bytes) {
        const std::uint32_t index = entries.take();
        if (index == entries.none) throw std::bad_alloc();
        try {
            entries[index].base.store(map_aligned(bytes), std::memory_order_relaxed);
        } catch (...) {
            entries.give(index);
            throw;
        }
        entries[index].bytes.store(bytes, std::memory_order_relaxed);
        account(static_cast<std::int64_t>(bytes));
        return index;
    }

    void unmap(std::uint32_t index) noexcept {
        Entry& entry = entries[index];
        std::byte* const base = entry.base.exchange(nullptr, std::memory_order_relaxed);
        const std::size_t bytes = entry.bytes.load(std::memory_order_relaxed);
        unpoison(base, bytes);
        ::munmap(base, bytes);
        entries.give(index);
        account(-static_cast<std::int64_t>(bytes));
    }

    /// A region that nobody else has, its references not set.
    std::uint32_t obtain() {
        const std::uint32_t index = idle_regions.pop(entries.links());
        if (index == IndexStack<>::none) return add(options.region_bytes);
        idle_bytes.fetch_sub(options.region_bytes, std::memory_order_relaxed);
        return index;
    }

    void recycle(std::uint32_t index) noexcept {
        if (entries[index].bytes.load(std::memory_order_relaxed) != options.region_bytes) return unmap(index);
        idle_bytes.fetch_add(options.region_bytes, std::memory_order_relaxed);
        idle_regions.push(index, entries.links());
    }

    void drop(std::uint32_t index, std::uint32_t references) noexcept {
        if (entries[index].references.arrive(references)) recycle(index);
    }

    void stop_cutting() noexcept {
        for (PaddedCutter& each : cutters) {
            each.cutter.stop([this](std::uint32_t index, std::uint32_t references) { drop(index, references); });
        }
    }
};

RegionPool::RegionPool(RegionOptions options) {
    check(options);
    state_ = std::make_unique<State>(std::move(options));
}

RegionPool::~RegionPool() {
    trim(0);
}

std::size_t RegionPool::committed() const noexcept {
    return state_->committed.load(std::memory_order_relaxed);
}

std::size_t RegionPool::idle() const noexcept {
    return state_->idle_bytes.load(std::memory_order_relaxed);
}

std::size_t RegionPool::region_bytes() const noexcept {
    return state_->options.region_bytes;
}

std::size_t RegionPool::trim(std::size_t keep_bytes) noexcept {
    State& state = *state_;
    if (keep_bytes == 0) state.stop_cutting();
    std::size_t given_back = 0;
    while (idle() > keep_bytes) {
        const std::uint32_t index = state.idle_regions.pop(state.entries.links());
        if (index == IndexStack<>::none) break;
        state.idle_bytes.fetch_sub(region_bytes(), std::memory_order_relaxed);
        state.unmap(index);
        given_back += region_bytes();
    }
    return given_back;
}

RegionPiece RegionPool::take(std::size_t bytes, unsigned seat) {
    State& state = *state_;
    const std::size_t whole = region_bytes();
    if (bytes > whole / 2) {
        const std::uint32_t index = bytes <= whole ? state.obtain() : state.add(bytes);
        state.entries[index].references.begin(1);
        unpoison(address({index, 0}), bytes);
        return {index, 0};
    }
    const RegionPiece piece = state.cutters[seat % state.cutters.size()].cutter.take(
        static_cast<std::uint32_t>(bytes / page_bytes), static_cast<std::uint32_t>(whole / page_bytes),
        [&] {
            const std::uint32_t index = state.obtain();
            state.entries[index].references.begin(open_bias);
            return index;
        },
        [&](std::uint32_t index) { state.recycle(index); },
        [&](std::uint32_t index, std::uint32_t references) { state.drop(index, references); });
    unpoison(address(piece), bytes);
    return piece;
}

void RegionPool::give(RegionPiece piece) noexcept {
    state_->drop(piece.region, 1);
}

std::byte* RegionPool::address(RegionPiece piece) const noexcept {
    return state_->entries[piece.region].base.load(std::memory_order_relaxed) + std::size_t{piece.page} * page_bytes;
}

} // namespace spillway
