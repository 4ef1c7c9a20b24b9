// What one producer appends and one walker passes, in order, at once: a list of chunks without a lock.
//
//     EntryList<30> list;
//     list.append(7);                     list.close();            // producer; entries are never 0
//     EntryList<30>::Cursor at;                                    // walker
//     const bool ended = list.closed();                            // before the look at the entry
//     if (std::uint32_t entry = list.at(at)) list.pass(at);        // else nothing more now; if ended, ever
#pragma once

#include "base/atomics.hpp"
#include "base/countdown.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace spillway {

template <std::size_t Entries, class Atomics = StandardAtomics>
class EntryList {
public:
    static constexpr std::size_t chunk_entries = Entries;

    struct Chunk {
        std::array<typename Atomics::template atomic<std::uint32_t>, Entries> entries{}; ///< 0 is not made yet.
        typename Atomics::template atomic<Chunk*> next{nullptr};
        /// For whoever waits for all entries of a chunk: see missing() below.
        Countdown<Atomics> missing{Entries};
    };

    /// Where a walker is: in the oldest chunk.
    using Cursor = std::size_t;

    EntryList() : first_(std::make_unique<Chunk>().release()), last_(first_) {}
    EntryList(const EntryList&) = delete;
    EntryList& operator=(const EntryList&) = delete;
    ~EntryList() {
        while (first_ != nullptr) pop();
    }

    // Producer.

    /// The chunk that holds it now. Release on the entry and on the link: pair with the walker's acquire of both.
    Chunk* append(std::uint32_t entry) {
        if (used_ == Entries) {
            Chunk* chunk = std::make_unique<Chunk>().release(); // the list owns it: pop()
            // Relaxed: the link's release makes it visible.
            chunk->entries[0].store(entry, std::memory_order_relaxed);
            last_->next.store(chunk, std::memory_order_release);
            last_ = chunk;
            used_ = 1;
        } else {
            last_->entries[used_++].store(entry, std::memory_order_release);
        }
        return last_;
    }

    /// The newest chunk, and how many of its entries will never be made if the list is closed now.
    [[nodiscard]] Chunk& newest() noexcept { return *last_; }
    [[nodiscard]] std::size_t missing() const noexcept { return Entries - used_; }

    /// Release: pairs with closed(), so that whoever sees the end sees every entry before it.
    void close() noexcept { closed_.store(true, std::memory_order_release); }

    // Walker.

    [[nodiscard]] bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }

    /// The entry at the cursor; 0: there is none yet. Frees chunks that have been passed.
    [[nodiscard]] std::uint32_t at(Cursor& cursor) {
        if (cursor == Entries) {
            if (first_->next.load(std::memory_order_relaxed) == nullptr) return 0; // pop() acquires
            pop();
            cursor = 0;
        }
        return first_->entries[cursor].load(std::memory_order_acquire);
    }

    /// The entry `ahead` of the cursor, as far as it is made and in the same chunk; else 0. For prefetching only: no
    /// order goes with it.
    [[nodiscard]] std::uint32_t glance(Cursor cursor, std::size_t ahead) const noexcept {
        return cursor + ahead < Entries ? first_->entries[cursor + ahead].load(std::memory_order_relaxed) : 0;
    }

    /// Past the entry, which is then 0 for whoever looks into the chunk: what it named may be something else by then.
    void pass(Cursor& cursor) noexcept { first_->entries[cursor++].store(0, std::memory_order_relaxed); }

    /// For a walker that takes all that is left at once, after the producer has ended.
    template <class Take>
    void take_all(Take take) {
        for (Chunk* chunk = first_; chunk != nullptr; chunk = chunk->next.load(std::memory_order_acquire)) {
            for (auto& entry : chunk->entries) {
                const std::uint32_t taken = entry.exchange(0, std::memory_order_acquire);
                if (taken != 0) take(taken);
            }
        }
    }

private:
    void pop() noexcept {
        const std::unique_ptr<Chunk> walked(first_);
        first_ = walked->next.load(std::memory_order_acquire);
    }

    Chunk* first_; // the walker's
    Chunk* last_;  // the producer's, as is used_
    std::size_t used_ = 0;
    typename Atomics::template atomic<bool> closed_{false};
};

} // namespace spillway
