// Compression of what is stored, where the disk is slower than compressing: by what both are measured to take.
//
//     if (compression.wanted()) stored = compression.compress(payload, scratch);      // empty: it does not get smaller
//     compression.written(stored.size(), spent);                                      // by the disk
//     if (!decompress(stored, raw)) ...damaged...                                     // raw has the length that is to
//     come
#pragma once

#include "base/byte_rate.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace spillway {

/// Of one disk. Thread safety: any thread, no lock.
class Compression {
public:
    enum class Choice : std::uint8_t { measured, never, always };

    explicit Compression(Choice choice) noexcept : choice_(choice) {}

    /// Whether the next record is to be compressed. Now and then one is for the sake of measuring it.
    [[nodiscard]] bool wanted() noexcept;

    /// Into `scratch`; empty where that is not shorter, or the payload is longer than LZ4 takes (2 GB).
    [[nodiscard]] std::span<const std::byte> compress(std::span<const std::byte> payload,
                                                      std::vector<std::byte>& scratch);

    // What the disk took, and what it takes to get raw bytes back.
    void written(std::uint64_t stored, std::chrono::nanoseconds spent) noexcept { written_.record(stored, spent); }
    void read(std::uint64_t stored, std::chrono::nanoseconds spent) noexcept { read_.record(stored, spent); }
    void decompressed(std::uint64_t raw, std::chrono::nanoseconds spent) noexcept { decompress_.record(raw, spent); }

private:
    const Choice choice_;
    ByteRate written_, read_;        ///< By stored bytes.
    ByteRate compress_, decompress_; ///< By raw bytes.
    ByteRate shrunk_;                ///< Stored bytes of a raw one, in thousandths of a nanosecond a byte.
    std::atomic<bool> on_{false};    ///< Since the last change of mind.
    std::atomic<std::uint32_t> records_{0};
};

/// False: `stored` is nothing that compresses so many bytes. Reads and writes within both, whatever the bytes are.
[[nodiscard]] bool decompress(std::span<const std::byte> stored, std::span<std::byte> raw) noexcept;

} // namespace spillway
