#include "spill/compression.hpp"

#include <limits>

#include <lz4.h>

namespace spillway {
namespace {

using Clock = std::chrono::steady_clock;

/// One record of so many is compressed to see what it would take.
constexpr std::uint32_t records_a_trial = 64;

// What is taken for granted until it is measured, in nanoseconds a byte: a fast disk, LZ4 on one core, and bytes that
// shrink to two thirds.
constexpr double usual_disk = 0.5, usual_compress = 2, usual_decompress = 0.5, usual_ratio = 0.67;

/// Compressing begins where it costs less than this much of what it saves, and ends where it saves nothing.
constexpr double clearly = 0.8;

/// Of a ratio in a ByteRate: so many "nanoseconds" are one.
constexpr double ratio_scale = 1000;

const char* chars(const std::byte* bytes) noexcept {
    return reinterpret_cast<const char*>(bytes); // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast): C interface
}
char* chars(std::byte* bytes) noexcept {
    return reinterpret_cast<char*>(bytes); // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast): C interface
}

} // namespace

bool Compression::wanted() noexcept {
    if (choice_ != Choice::measured) return choice_ == Choice::always;
    const double write = written_.nanoseconds_a_byte(usual_disk);
    const double disk = write + read_.nanoseconds_a_byte(write);
    const double ratio = shrunk_.nanoseconds_a_byte(usual_ratio * ratio_scale) / ratio_scale;
    const double saves = (1 - ratio) * disk;
    const double costs =
        compress_.nanoseconds_a_byte(usual_compress) + decompress_.nanoseconds_a_byte(usual_decompress);
    if (disk < costs / 2) return false; // not even if it shrank to nothing
    if (records_.fetch_add(1, std::memory_order_relaxed) % records_a_trial == records_a_trial - 1) return true;
    const bool on = on_.load(std::memory_order_relaxed);
    const bool better = costs < (on ? saves : clearly * saves);
    if (better != on) on_.store(better, std::memory_order_relaxed);
    return better;
}

std::span<const std::byte> Compression::compress(std::span<const std::byte> payload, std::vector<std::byte>& scratch) {
    if (payload.size() < 2 || payload.size() > LZ4_MAX_INPUT_SIZE) return {};
    const auto start = Clock::now();
    // One byte short of the payload: what would not fit is stored as it is.
    if (scratch.size() < payload.size() - 1) scratch.resize(payload.size() - 1);
    const int size = LZ4_compress_default(chars(payload.data()), chars(scratch.data()),
                                          static_cast<int>(payload.size()), static_cast<int>(payload.size() - 1));
    compress_.record(payload.size(), Clock::now() - start);
    const std::size_t stored = size > 0 ? static_cast<std::size_t>(size) : payload.size();
    shrunk_.record(payload.size(),
                   std::chrono::nanoseconds(static_cast<std::int64_t>(ratio_scale * static_cast<double>(stored))));
    return size > 0 ? std::span<const std::byte>(scratch).first(stored) : std::span<const std::byte>();
}

bool decompress(std::span<const std::byte> stored, std::span<std::byte> raw) noexcept {
    constexpr std::size_t longest = std::numeric_limits<int>::max();
    if (stored.size() > longest || raw.size() > longest) return false;
    const int size = LZ4_decompress_safe(chars(stored.data()), chars(raw.data()), static_cast<int>(stored.size()),
                                         static_cast<int>(raw.size()));
    return size >= 0 && static_cast<std::size_t>(size) == raw.size();
}

} // namespace spillway
