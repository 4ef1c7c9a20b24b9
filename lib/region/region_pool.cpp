#include "spillway/region.hpp"

#include "base/chunked_array.hpp"
#include "base/index_stack.hpp"
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
    std::atomic<std::uint32_t> references{0}; ///< Pieces not given back; plus open_bias while it is being cut.
    std::atomic<std::uint32_t> next{0};       ///< Link of the free list that it is in.
};

/// More than the pieces of any region: while a region is being cut nobody counts its pieces, so that taking one is a
/// single CAS; the pieces given back are counted down from here, and closing it leaves the exact number.
constexpr std::uint32_t open_bias = 1U << 30U;
constexpr std::size_t largest_region = std::size_t{128} << 20U; // Its pages must fit the 16 bits of Cut::page.
constexpr std::size_t huge_page = std::size_t{2} << 20U;

/// Where a cutter stands: one atomic word.
struct Cut {
    std::uint32_t region = RegionPiece::none;
    std::uint32_t pieces = 0; ///< Cut off so far; 16 bits.
    std::uint32_t page = 0;   ///< The first free one; 16 bits.

    [[nodiscard]] std::uint64_t packed() const noexcept { return std::uint64_t{region} << 32U | pieces << 16U | page; }
    [[nodiscard]] static Cut unpacked(std::uint64_t word) noexcept {
        return {static_cast<std::uint32_t>(word >> 32U), static_cast<std::uint32_t>(word >> 16U) & 0xffffU,
                static_cast<std::uint32_t>(word) & 0xffffU};
    }
};

struct alignas(cache_line_pair) Cutter {
    std::atomic<std::uint64_t> word{Cut{}.packed()};
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
    ChunkedArray<Entry, 1024, 1024> entries; // 2 TiB in regions of 2 MiB.
    std::atomic<std::uint32_t> count{0};     // Entries handed out.
    std::vector<Cutter> cutters;
    IndexStack<> idle_regions;   // Mapped, nobody's.
    IndexStack<> vacant_entries; // Not mapped.
    std::atomic<std::size_t> committed{0}, idle_bytes{0};

    [[nodiscard]] auto links() const noexcept {
        return [this](std::uint32_t index) -> std::atomic<std::uint32_t>& { return entries[index].next; };
    }

    void account(std::int64_t bytes) {
        committed.fetch_add(static_cast<std::size_t>(bytes), std::memory_order_relaxed);
        if (options.on_commit) options.on_commit(bytes);
    }

    std::uint32_t add(std::size_t bytes) {
        std::uint32_t index = vacant_entries.pop(links());
        if (index == IndexStack<>::none) {
            index = count.load(std::memory_order_relaxed);
            do {
                if (index == entries.max_size) throw std::bad_alloc();
            } while (!count.compare_exchange_weak(index, index + 1, std::memory_order_relaxed));
            entries.make(index);
        }
        try {
            entries[index].base.store(map_aligned(bytes), std::memory_order_relaxed);
        } catch (...) {
            vacant_entries.push(index, links());
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
        vacant_entries.push(index, links());
        account(-static_cast<std::int64_t>(bytes));
    }

    /// A region that nobody else has, its references not set.
    std::uint32_t obtain() {
        const std::uint32_t index = idle_regions.pop(links());
        if (index == IndexStack<>::none) return add(options.region_bytes);
        idle_bytes.fetch_sub(options.region_bytes, std::memory_order_relaxed);
        return index;
    }

    void recycle(std::uint32_t index) noexcept {
        if (entries[index].bytes.load(std::memory_order_relaxed) != options.region_bytes) return unmap(index);
        idle_bytes.fetch_add(options.region_bytes, std::memory_order_relaxed);
        idle_regions.push(index, links());
    }

    /// Acquire and release: who takes the last reference sees the ends of all uses before.
    void drop(std::uint32_t index, std::uint32_t references) noexcept {
        if (entries[index].references.fetch_sub(references, std::memory_order_acq_rel) == references) recycle(index);
    }

    void close(const Cut& cut) noexcept {
        if (cut.region != RegionPiece::none) drop(cut.region, open_bias - cut.pieces);
    }
};

RegionPool::RegionPool(RegionOptions options) {
    check(options);
    state_ = std::make_unique<State>(std::move(options));
}

RegionPool::~RegionPool() {
    for (Cutter& cutter : state_->cutters) state_->close(Cut::unpacked(cutter.word.exchange(Cut{}.packed())));
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
    if (keep_bytes == 0) {
        for (Cutter& cutter : state.cutters) {
            state.close(Cut::unpacked(cutter.word.exchange(Cut{}.packed(), std::memory_order_acq_rel)));
        }
    }
    std::size_t given_back = 0;
    while (idle() > keep_bytes) {
        const std::uint32_t index = state.idle_regions.pop(state.links());
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
        state.entries[index].references.store(1, std::memory_order_relaxed);
        unpoison(address({index, 0}), bytes);
        return {index, 0};
    }
    const auto pages = static_cast<std::uint32_t>(bytes / page_bytes);
    std::atomic<std::uint64_t>& word = state.cutters[seat % state.cutters.size()].word;
    std::uint64_t seen = word.load(std::memory_order_acquire);
    for (;;) {
        const Cut cut = Cut::unpacked(seen);
        if (cut.region != RegionPiece::none && (cut.page + std::size_t{pages}) * page_bytes <= whole) {
            // If the region was closed, drained, reused and is again cut at this very place meanwhile, the piece is
            // free all the same.
            const Cut after{cut.region, cut.pieces + 1, cut.page + pages};
            if (!word.compare_exchange_weak(seen, after.packed(), std::memory_order_acq_rel,
                                            std::memory_order_acquire)) {
                continue;
            }
            const RegionPiece piece{cut.region, cut.page};
            unpoison(address(piece), bytes);
            return piece;
        }
        const std::uint32_t fresh = state.obtain();
        state.entries[fresh].references.store(open_bias, std::memory_order_relaxed);
        if (word.compare_exchange_strong(seen, Cut{fresh, 1, pages}.packed(), std::memory_order_acq_rel,
                                         std::memory_order_acquire)) {
            state.close(cut);
            unpoison(address({fresh, 0}), bytes);
            return {fresh, 0};
        }
        state.recycle(fresh); // Another thread opened one first: cut that.
    }
}

void RegionPool::give(RegionPiece piece) noexcept {
    state_->drop(piece.region, 1);
}

std::byte* RegionPool::address(RegionPiece piece) const noexcept {
    return state_->entries[piece.region].base.load(std::memory_order_relaxed) + std::size_t{piece.page} * page_bytes;
}

} // namespace spillway
