// The table of all slots: grows on the fly, never moves a slot, and hands free ones out in batches to seats.
//
//     Directory directory;
//     FreeSlots mine(directory);          // one a seat
//     Slot& slot = mine.take();
//     mine.give(slot);
//
// Cost: a take or give touches the seat's own list; one in thirty-two goes through the shared queue.
#pragma once

#include "base/chunked_array.hpp"
#include "directory/growth.hpp"
#include "directory/slot.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace spillway::detail {

class Directory {
public:
    static constexpr std::size_t chunk_slots = 1024;
    static constexpr std::size_t max_chunks =
        1U << 15U; // 32 M candidates alive; the window of open candidates is far below

    Directory();
    ~Directory();
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;

    /// Thread safety: any thread, for any index that it was ever given.
    [[nodiscard]] Slot& operator[](std::uint32_t index) noexcept { return slots_[index]; }

    /// Slots that exist: indices below this may be looked at.
    [[nodiscard]] std::uint32_t size() const noexcept { return growth_.size(); }

    /// Bytes of the table; the governor counts them.
    [[nodiscard]] std::size_t bytes() const noexcept { return size() * sizeof(Slot); }

private:
    friend class FreeSlots;
    struct Shared; // the queue of free indices

    void refill(std::vector<std::uint32_t>& out, std::size_t count); // Error(memory) when the table is full
    void return_some(const std::uint32_t* indices, std::size_t count);
    [[nodiscard]] std::uint32_t make_chunk(std::uint32_t from); // returns its end

    ChunkedArray<Slot, chunk_slots, max_chunks> slots_;
    Growth<> growth_;
    std::unique_ptr<Shared> shared_;
};

/// A seat's own free slots. One thread at a time.
class FreeSlots {
public:
    explicit FreeSlots(Directory& directory) : directory_(&directory) {}
    FreeSlots(const FreeSlots&) = delete;
    FreeSlots& operator=(const FreeSlots&) = delete;
    ~FreeSlots() {
        if (!free_.empty()) directory_->return_some(free_.data(), free_.size());
    }

    [[nodiscard]] Slot& take() {
        if (free_.empty()) directory_->refill(free_, batch);
        const std::uint32_t index = free_.back();
        free_.pop_back();
        return (*directory_)[index];
    }

    /// The slot's word must have been released.
    void give(Slot& slot) {
        free_.push_back(slot.index);
        if (free_.size() < 3 * batch) return;
        directory_->return_some(free_.data() + free_.size() - batch, batch);
        free_.resize(free_.size() - batch);
    }

private:
    static constexpr std::size_t batch = 32;
    Directory* directory_;
    std::vector<std::uint32_t> free_;
};

} // namespace spillway::detail
