// Where a spilled payload lies: a value that slots carry and only the spill store reads.
#pragma once

#include <cstdint>

namespace spillway {

/// Where a record lies. A plain value of 16 bytes; only the store reads its fields.
struct SpillPlace {
    std::uint32_t segment = 0;
    std::uint32_t offset =
        0; ///< Of the record's header in its segment, in 8-byte units (4 KiB units in the oversize file).
    std::uint32_t length = 0; ///< Of the payload, in bytes.
    std::uint32_t check = 0;  ///< The record header's own hash: a place that is out of date does not match.

    friend bool operator==(const SpillPlace&, const SpillPlace&) = default;
};

} // namespace spillway
