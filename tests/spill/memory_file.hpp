// Bytes in memory as the one file of a file system, to be read only.
#pragma once

#include "base/file.hpp"

#include <algorithm>
#include <cstring>

namespace spillway::test {

/// The bytes must outlive it.
class MemoryFile : public FileSystem {
public:
    explicit MemoryFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

    std::int64_t read(int, std::span<const iovec> pieces, std::uint64_t offset) override {
        std::int64_t done = 0;
        for (const iovec& piece : pieces) {
            const std::size_t from = std::min<std::size_t>(offset, bytes_.size());
            const std::size_t count = std::min(piece.iov_len, bytes_.size() - from);
            if (count != 0) std::memcpy(piece.iov_base, &bytes_[from], count);
            offset += count;
            done += static_cast<std::int64_t>(count);
        }
        return done;
    }

private:
    std::span<const std::byte> bytes_;
};

} // namespace spillway::test
