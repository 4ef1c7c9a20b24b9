// An array that grows on the fly and never moves an element.
//
//     ChunkedArray<Segment, 1024, 256> segments;
//     segments.make(index);                      // by whoever handed the index out, before anybody looks
//     segments[index].references.fetch_add(1);
#pragma once

#include "base/atomics.hpp"
#include "base/set_once.hpp"

#include <array>
#include <cstddef>
#include <memory>

namespace spillway {

/// Thread safety: all methods from any thread, lock-free. Elements are value-initialised and live as long as the array.
template <typename T, std::size_t ChunkSize, std::size_t Chunks, class Atomics = StandardAtomics>
class ChunkedArray {
public:
    static constexpr std::size_t max_size = ChunkSize * Chunks;

    ChunkedArray() = default;
    ~ChunkedArray() {
        for (auto& chunk : chunks_) delete chunk.get();
    }
    ChunkedArray(const ChunkedArray&) = delete;
    ChunkedArray& operator=(const ChunkedArray&) = delete;

    /// Makes sure that element `index` exists; below max_size. Throws std::bad_alloc.
    void make(std::size_t index) {
        auto& chunk = chunks_[index / ChunkSize];
        if (chunk.get() != nullptr) return;
        auto fresh = std::make_unique<Chunk>();
        // Two threads may both make the chunk; one of them wins and the other's goes.
        if (chunk.set(fresh.get()) == fresh.get()) static_cast<void>(fresh.release());
    }

    /// Element `index` must have been made.
    [[nodiscard]] T& operator[](std::size_t index) const noexcept {
        return (*chunks_[index / ChunkSize].get())[index % ChunkSize];
    }

private:
    using Chunk = std::array<T, ChunkSize>;
    std::array<SetOnce<Chunk*, nullptr, Atomics>, Chunks> chunks_{};
};

} // namespace spillway
