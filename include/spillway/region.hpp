// Memory for payloads: regions of a few MiB, added on the fly, recycled, given back only when asked.
//
//     spillway::RegionPool pool;                              // outlives its slabs
//     spillway::Slab slab(pool, seat);                        // one candidate's memory
//     std::pmr::vector<Read> reads(&slab);                    // ...
//     slab.release();                                         // all of it in one step
//
// Regions hold no pointers, only indices and offsets, so that they can later be shared between processes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>

namespace spillway {

struct RegionOptions {
    std::size_t region_bytes = std::size_t{2} << 20U; ///< A power of two, 64 KiB to 128 MiB.
    unsigned cutters =
        8; ///< Regions being cut at once, shared by seats in turn; each in use holds a region. 1 to 1024.
    /// Told of every change of committed(), positive and negative, by the thread that made it: for the governor.
    std::function<void(std::int64_t)> on_commit = {};
};

/// Where a region's entry is in the pool, and a page in the region: what a slab remembers in place of a pointer.
struct RegionPiece {
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    std::uint32_t region = none;
    std::uint32_t page = 0; ///< In units of RegionPool::page_bytes.
};

/// Thread safety: all methods from any thread; lock-free. A region returns to the pool with its last piece.
class RegionPool {
public:
    static constexpr std::size_t page_bytes = 4096;

    /// Throws Error(usage) on options out of range. Maps nothing yet.
    explicit RegionPool(RegionOptions options = {});
    ~RegionPool(); ///< All slabs must be gone.
    RegionPool(const RegionPool&) = delete;
    RegionPool& operator=(const RegionPool&) = delete;

    /// Bytes mapped now, idle ones included.
    [[nodiscard]] std::size_t committed() const noexcept;
    /// Bytes of whole regions that wait for reuse.
    [[nodiscard]] std::size_t idle() const noexcept;
    /// Unmaps idle regions until at most `keep_bytes` of them are left; returns the bytes given back. With 0 the
    /// regions that are being cut are closed too, so that each goes with its last piece.
    std::size_t trim(std::size_t keep_bytes) noexcept;
    [[nodiscard]] std::size_t region_bytes() const noexcept;

    /// For slabs: `bytes` of memory (a multiple of page_bytes), aligned to page_bytes. Throws std::bad_alloc.
    [[nodiscard]] RegionPiece take(std::size_t bytes, unsigned seat);
    void give(RegionPiece piece) noexcept;
    [[nodiscard]] std::byte* address(RegionPiece piece) const noexcept;

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Memory of one candidate. Allocation bumps a cursor; deallocation undoes the newest allocation, gives one beyond 64
/// KiB back to the pool, and else does nothing; release gives everything back at once. Pieces grow from 4 to 64 KiB;
/// larger allocations get pieces, regions or mappings of their own. Objects in it must not need their destructors to
/// run, or have had them run, by then. Thread safety: one thread at a time.
class Slab final : public std::pmr::memory_resource {
public:
    /// `seat` spreads slabs over the pool's cutters: the index of the worker that fills it is best.
    explicit Slab(RegionPool& pool, unsigned seat = 0) noexcept : pool_(&pool), seat_(seat) {}
    ~Slab() override { release(); }
    Slab(const Slab&) = delete;
    Slab& operator=(const Slab&) = delete;

    /// Everything allocated from it is gone; the slab may be used again.
    void release() noexcept;
    /// Bytes it holds of the pool.
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override;
    void do_deallocate(void* pointer, std::size_t bytes, std::size_t alignment) override;
    [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
        return this == &other;
    }

    /// Begins every piece: the list of a slab's pieces, without pointers.
    struct PieceHeader;
    [[nodiscard]] PieceHeader* header(RegionPiece piece) const noexcept;
    std::byte* add_piece(std::size_t bytes);
    void unlink(RegionPiece piece) noexcept;

    RegionPool* pool_;
    unsigned seat_;
    RegionPiece newest_;          ///< Head of the list of pieces.
    std::byte* cursor_ = nullptr; ///< Free bytes of the piece being filled: cursor_ .. end_.
    std::byte* end_ = nullptr;
    std::size_t next_bytes_ = RegionPool::page_bytes; ///< Size of the next piece for small allocations.
    std::size_t bytes_ = 0;
};

} // namespace spillway
