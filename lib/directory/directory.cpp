#include "directory/directory.hpp"

#include "spillway/error.hpp"

#include <concurrentqueue/concurrentqueue.h>

#include <string>

namespace spillway::detail {

struct Directory::Shared {
    moodycamel::ConcurrentQueue<std::uint32_t> free;
};

Directory::Directory() : shared_(std::make_unique<Shared>()) {}

Directory::~Directory() {
    for (std::atomic<Slot*>& chunk : chunks_) {
        const std::unique_ptr<Slot[]> slots(chunk.load(std::memory_order_relaxed));
        if (slots == nullptr) break;
    }
}

void Directory::refill(std::vector<std::uint32_t>& out, std::size_t count) {
    const std::size_t had = out.size();
    for (;;) {
        out.resize(had + count);
        const std::size_t got = shared_->free.try_dequeue_bulk(out.data() + had, count);
        out.resize(had + got);
        if (got > 0) return;
        // One thread grows the table; the others look again, since what it adds is theirs as well. Acquire and release:
        // its stores to chunks_ happen before the next grower's.
        if (!growing_.exchange(true, std::memory_order_acquire)) {
            try {
                grow();
            } catch (...) {
                growing_.store(false, std::memory_order_release);
                throw;
            }
            growing_.store(false, std::memory_order_release);
        }
    }
}

void Directory::grow() {
    const std::uint32_t size = size_.load(std::memory_order_relaxed);
    const std::size_t chunk = size / chunk_slots;
    if (chunk == max_chunks) {
        throw Error(ErrorCode::memory, "making a candidate", "",
                    std::to_string(size) + " candidates are alive, which is as many as a run may have");
    }
    auto slots = std::make_unique<Slot[]>(chunk_slots);
    std::array<std::uint32_t, chunk_slots> indices{};
    for (std::uint32_t i = 0; i < chunk_slots; ++i) {
        indices[i] = size + i;
        slots[i].index = size + i;
    }
    chunks_[chunk].store(slots.release(), std::memory_order_relaxed);
    size_.store(size + chunk_slots, std::memory_order_release);
    if (!shared_->free.enqueue_bulk(indices.data(), chunk_slots)) throw std::bad_alloc();
}

void Directory::return_some(const std::uint32_t* indices, std::size_t count) {
    if (!shared_->free.enqueue_bulk(indices, count)) throw std::bad_alloc();
}

} // namespace spillway::detail
