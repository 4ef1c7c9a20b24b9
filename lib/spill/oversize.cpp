#include "spill/oversize.hpp"

#include <array>
#include <cerrno>
#include <optional>

namespace spillway {

SpillResult OversizeFile::write(const SpillKey& key, std::uint64_t salt, std::uint32_t raw,
                                std::span<const std::byte> stored) {
    StoredHeader header = make_stored_header(key, salt, raw, stored);
    const std::uint64_t blocks = (stored_bytes(header.stored) + block_bytes - 1) / block_bytes;
    const std::optional<std::uint32_t> block = extents_.take(blocks);
    if (!block) return {{}, EFBIG};

    std::array<iovec, 2> pieces{
        iovec{&header, sizeof(header)},
        iovec{const_cast<std::byte*>(stored.data()), stored.size()}, // NOLINT: only read
    };
    if (const int error = files_->write(SpillFiles::oversize, *block * block_bytes, pieces)) {
        give_back(*block, header.stored);
        return {{}, error};
    }
    return {{.segment = SpillFiles::oversize, .offset = *block, .length = header.stored, .check = check_of(header)}, 0};
}

int OversizeFile::read(const SpillPlace& place, StoredHeader& header, std::span<std::byte> stored) {
    std::array<iovec, 2> pieces{iovec{&header, sizeof(header)}, iovec{stored.data(), stored.size()}};
    return files_->read(SpillFiles::oversize, place.offset * block_bytes, pieces);
}

void OversizeFile::release(const SpillPlace& place) noexcept {
    give_back(place.offset, place.length);
}

void OversizeFile::give_back(std::uint32_t block, std::uint32_t length) noexcept {
    // A disk that cannot take blocks back has them written over once the addresses start anew.
    const std::uint64_t blocks = (stored_bytes(length) + block_bytes - 1) / block_bytes;
    static_cast<void>(files_->punch_hole(SpillFiles::oversize, block * block_bytes, blocks * block_bytes));
    extents_.give();
}

} // namespace spillway
