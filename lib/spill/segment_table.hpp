// The segments in use: each is open at one seat, holds records that come and go, and is used again once it is closed and
// none of them is left.
//
//     const std::uint32_t index = table.open(seat);   // none: there are as many as there can be
//     table.hold(index);                              // the seat: for each record
//     table.drop(index, keeps_blocks);                // whoever releases a record; the seat, when it closes the segment
//
// Guarantee: keeps_blocks() runs once for each use, after all that was done with its records, and before the next use.
// Those that keep their blocks are opened before the others.
#pragma once

#include "base/atomics.hpp"
#include "base/countdown.hpp"
#include "base/recycled_array.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace spillway {

/// What is not atomic belongs to the seat that has it open, then to whoever releases its last record. The atomics are
/// relaxed: whoever has a record of the segment knows of it through the seat that wrote it.
template <class Atomics = StandardAtomics>
struct Segment {
    template <class T>
    using atomic = typename Atomics::template atomic<T>;

    Countdown<Atomics> references{0};   ///< Records not released; plus one while a seat has it open.
    atomic<std::uint32_t> next{0};      ///< Link of the free list.
    atomic<std::uint32_t> seat{0};      ///< Whose buffer holds what is not in the file yet.
    atomic<std::uint64_t> in_file{0};   ///< Bytes that are in the file; beyond them: in the seat's buffer.
    atomic<std::uint64_t> salt{0};      ///< Of its records' hashes, for this use.
    atomic<bool> header_checked{false}; ///< Since it was given to the seat.
    std::uint64_t allocated = 0;        ///< Bytes that it holds of the disk.
};

/// Thread safety: all methods from any thread, lock-free.
template <class Atomics = StandardAtomics, class Element = Segment<Atomics>, std::size_t ChunkSize = 1024,
          std::size_t Chunks = 1024>
class SegmentTable {
public:
    static constexpr std::uint32_t none = RecycledArray<Element, ChunkSize, Chunks, Atomics>::none;

    /// An empty one. Throws std::bad_alloc.
    [[nodiscard]] std::uint32_t open(std::uint32_t seat) {
        std::uint32_t index = take_kept();
        if (index == none) index = segments_.take();
        if (index == none) return none;
        Element& segment = segments_[index];
        segment.seat.store(seat, std::memory_order_relaxed);
        segment.in_file.store(0, std::memory_order_relaxed);
        segment.header_checked.store(false, std::memory_order_relaxed);
        segment.references.begin(1);
        return index;
    }

    /// By the seat that has it open, whose own reference keeps it meanwhile.
    void hold(std::uint32_t index) noexcept { segments_[index].references.expect(1); }

    /// `keeps_blocks(index)`, when nobody needs the segment any more: false if it has given its blocks back.
    template <class KeepsBlocks>
    void drop(std::uint32_t index, const KeepsBlocks& keeps_blocks) noexcept {
        if (!segments_[index].references.arrive()) return;
        if (keeps_blocks(index)) {
            kept_.push(index, segments_.links());
        } else {
            segments_.give(index);
        }
    }

    /// One that nobody needs and that has blocks, to give them back: then give(). none: there is none.
    [[nodiscard]] std::uint32_t take_kept() noexcept { return kept_.pop(segments_.links()); }
    void give(std::uint32_t index) noexcept { segments_.give(index); }

    [[nodiscard]] Element& operator[](std::uint32_t index) const noexcept { return segments_[index]; }

    /// How many there are; of a record that was written, the segment is one of them.
    [[nodiscard]] std::uint32_t size() const noexcept { return segments_.made(); }

private:
    RecycledArray<Element, ChunkSize, Chunks, Atomics> segments_;
    IndexStack<Atomics> kept_;
};

} // namespace spillway
