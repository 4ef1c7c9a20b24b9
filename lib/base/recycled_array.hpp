// Elements that are taken and given back: one that came back is taken again before a new one is made.
//
//     struct Segment { std::atomic<std::uint32_t> next{0}; ... };
//     RecycledArray<Segment, 1024, 256> segments;
//     const std::uint32_t index = segments.take();               // none: all are taken
//     segments[index]...
//     segments.give(index);
//
// Guarantee: an element has one holder at a time, who sees all that those before it left.
#pragma once

#include "base/atomics.hpp"
#include "base/chunked_array.hpp"
#include "base/index_stack.hpp"

#include <cstddef>
#include <cstdint>

namespace spillway {

/// `next` of an element is ours while nobody holds it. Thread safety: all methods from any thread, lock-free.
template <typename T, std::size_t ChunkSize, std::size_t Chunks, class Atomics = StandardAtomics>
class RecycledArray {
public:
    static constexpr std::uint32_t none = IndexStack<Atomics>::none;

    /// Throws std::bad_alloc.
    [[nodiscard]] std::uint32_t take() {
        std::uint32_t index = free_.pop(links());
        if (index != none) return index;
        // Relaxed: the exchange alone makes the index ours, and whoever looks at an element has it from its holder.
        index = made_.load(std::memory_order_relaxed);
        do {
            if (index == elements_.max_size) return none;
        } while (!made_.compare_exchange_weak(index, index + 1, std::memory_order_relaxed));
        elements_.make(index);
        return index;
    }

    void give(std::uint32_t index) noexcept { free_.push(index, links()); }

    /// An element that was taken at least once.
    [[nodiscard]] T& operator[](std::uint32_t index) const noexcept { return elements_[index]; }

    /// How many were ever made. No order goes with it; a holder's own is counted.
    [[nodiscard]] std::uint32_t made() const noexcept { return made_.load(std::memory_order_relaxed); }

    /// For another stack of elements that somebody holds.
    [[nodiscard]] auto links() const noexcept {
        return [this](std::uint32_t index) -> auto& {
            return elements_[index].next;
        };
    }

private:
    ChunkedArray<T, ChunkSize, Chunks, Atomics> elements_;
    typename Atomics::template atomic<std::uint32_t> made_{0};
    IndexStack<Atomics> free_;
};

} // namespace spillway
