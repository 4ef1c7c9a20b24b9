// Lets any thread read from a buffer that its owner empties from time to time.
//
//     owner:   in_file.store(to); fence; while (readers != 0) yield; reuse the buffer
//     reader:  readers++; fence; if (offset >= in_file) copy from the buffer, else it is in the file; readers--
//
// Guarantee: the owner never reuses the buffer under a reader. Mechanism: both write their word, fence, and read the
// other's, so that at least one sees the other: the reader goes to the file, or the owner waits. A reader that comes
// later sees that the file has it; it holds up nobody for longer than a copy of one small record.
#pragma once

#include "base/atomics.hpp"

#include <cstdint>
#include <optional>

namespace spillway {

/// One for each buffer; `in_file` counts the bytes of the buffer's stream that need no buffer any more.
template <class Atomics = StandardAtomics>
class FlushGate {
public:
    using Count = typename Atomics::template atomic<std::uint64_t>;

    /// Any thread, with a byte's offset in the stream. Returns in_file if the byte is in the buffer, which then stays
    /// as it is until leave(); else nothing, and there is nothing to leave.
    [[nodiscard]] std::optional<std::uint64_t> enter(const Count& in_file, std::uint64_t offset) noexcept {
        readers_.fetch_add(1, std::memory_order_relaxed);
        Atomics::fence_seq_cst();
        const std::uint64_t begin = in_file.load(std::memory_order_relaxed);
        if (offset >= begin) return begin;
        leave();
        return std::nullopt;
    }

    /// Release: the copy is over before the owner sees that nobody is there.
    void leave() noexcept { readers_.fetch_sub(1, std::memory_order_release); }

    /// The owner, once the bytes before `to` are in the file.
    void flushed(Count& in_file, std::uint64_t to) noexcept {
        in_file.store(to, std::memory_order_relaxed);
        Atomics::fence_seq_cst();
    }

    /// The owner, after flushed(): whether it may reuse the buffer. Else it asks again.
    [[nodiscard]] bool deserted() const noexcept { return readers_.load(std::memory_order_acquire) == 0; }

private:
    typename Atomics::template atomic<std::uint32_t> readers_{0};
};

} // namespace spillway
