// Where a spilled payload lies: a value that slots carry and only the spill store reads.
#pragma once

#include <cstdint>

namespace spillway {

/// Where a record lies. A plain value of 20 bytes; only the store reads its fields.
struct SpillPlace {
    std::uint32_t disk = 0; ///< Of several directories, which.
    std::uint32_t segment = 0;
    std::uint32_t offset =
        0; ///< Of the record's header in its segment, in 8-byte units (4 KiB units in the oversize file).
    std::uint32_t length = 0; ///< Of what is stored, in bytes.
    std::uint32_t check = 0;  ///< Part of the record's hash: a place that is out of date does not match.

    friend bool operator==(const SpillPlace&, const SpillPlace&) = default;
};

} // namespace spillway
