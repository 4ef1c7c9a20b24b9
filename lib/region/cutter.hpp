// Cuts pieces off regions, and knows when a region has come back whole: one CAS to take a piece, one decrement to give
// it back.
//
//     take:   word: region, pieces, page  --CAS-->  region, pieces + 1, page + pages
//     close:  word: region, pieces, page  --CAS-->  the next region; references(region) -= open_bias - pieces
//     give:   references(region) -= 1
//
// Guarantee: who brings a region's references to 0 has it alone, and sees all that the holders of its pieces did.
// Mechanism: while a region is being cut nobody counts its pieces up; those given back are counted down from open_bias,
// which is more than any region has, and closing takes off the rest, since the word knew how many were cut. A region
// that is closed, drained, opened again and cut to the very same word under a sleeping thread does no harm: the piece
// that its CAS takes is free all the same.
#pragma once

#include "base/atomics.hpp"
#include "spillway/region.hpp"

#include <cstdint>

namespace spillway {

/// What a region's references (a Countdown) begin from when it is opened.
inline constexpr std::uint32_t open_bias = 1U << 30U;

/// Thread safety: all methods from any thread, lock-free.
template <class Atomics = StandardAtomics>
class Cutter {
public:
    static constexpr std::uint32_t most_pages = 0xffff; ///< Of a region: pages and pieces have 16 bits of the word.

    /// `pages` pages off the region being cut, or off a new one. `obtain()` gives the index of a region that is the
    /// caller's, its references set to open_bias; `put_back(index)` takes it again, unused; `close(index, references)`
    /// drops the given references of a region that is cut no more.
    template <typename Obtain, typename PutBack, typename Close>
    [[nodiscard]] RegionPiece take(std::uint32_t pages, std::uint32_t region_pages, const Obtain& obtain,
                                   const PutBack& put_back, const Close& close) {
        // Acquire: whoever opened the region has set its references.
        std::uint64_t seen = word_.load(std::memory_order_acquire);
        for (;;) {
            const Cut cut = Cut::unpacked(seen);
            if (cut.region != RegionPiece::none && cut.page + pages <= region_pages) {
                const Cut after{cut.region, cut.pieces + 1, cut.page + pages};
                if (word_.compare_exchange_weak(seen, after.packed(), std::memory_order_acquire,
                                                std::memory_order_acquire)) {
                    return {cut.region, cut.page};
                }
                continue;
            }
            const std::uint32_t fresh = obtain();
            if (word_.compare_exchange_strong(seen, Cut{fresh, 1, pages}.packed(), std::memory_order_acq_rel,
                                              std::memory_order_acquire)) {
                cut.close(close);
                return {fresh, 0};
            }
            put_back(fresh); // Another thread opened one first: cut that.
        }
    }

    /// Closes the region being cut, if there is one.
    template <typename Close>
    void stop(const Close& close) noexcept {
        Cut::unpacked(word_.exchange(Cut{}.packed(), std::memory_order_acquire)).close(close);
    }

private:
    struct Cut {
        std::uint32_t region = RegionPiece::none;
        std::uint32_t pieces = 0; ///< Cut off so far; 16 bits.
        std::uint32_t page = 0;   ///< The first free one; 16 bits.

        [[nodiscard]] std::uint64_t packed() const noexcept {
            return std::uint64_t{region} << 32U | pieces << 16U | page;
        }
        [[nodiscard]] static Cut unpacked(std::uint64_t word) noexcept {
            return {static_cast<std::uint32_t>(word >> 32U), static_cast<std::uint32_t>(word >> 16U) & 0xffffU,
                    static_cast<std::uint32_t>(word) & 0xffffU};
        }
        template <typename Close>
        void close(const Close& drop) const noexcept {
            if (region != RegionPiece::none) drop(region, open_bias - pieces);
        }
    };

    typename Atomics::template atomic<std::uint64_t> word_{Cut{}.packed()};
};

} // namespace spillway
