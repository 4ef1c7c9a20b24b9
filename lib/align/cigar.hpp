// A CIGAR written from its last operation to its first, as a traceback meets them.
//
//     BackwardCigar path;
//     path.add(CigarOperation::match, 3);        // the alignment's last three bases
//     path.finish(alignment.cigar);
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "spillway/align.hpp"

namespace spillway {

/// The operations an alignment can have, with htslib's numbers.
enum class CigarOperation : std::uint32_t { match = 0, insertion = 1, deletion = 2 };

[[nodiscard]] constexpr CigarElement cigar_element(CigarOperation operation, std::uint32_t length) noexcept {
    return length << 4 | static_cast<std::uint32_t>(operation);
}

class BackwardCigar {
public:
    /// Puts `length` (> 0) bases of `operation` before what is there; equal neighbours join.
    void add(CigarOperation operation, std::uint32_t length = 1) {
        if (!elements_.empty() && (elements_.back() & 0xF) == static_cast<std::uint32_t>(operation)) {
            elements_.back() += length << 4;
        } else {
            elements_.push_back(cigar_element(operation, length));
        }
    }

    /// Writes the CIGAR in reading order and leaves this empty, its storage kept for the next.
    void finish(std::vector<CigarElement>& cigar) {
        cigar.assign(elements_.rbegin(), elements_.rend());
        elements_.clear();
    }

private:
    std::vector<CigarElement> elements_;
};

} // namespace spillway
