// Where a query and a target agree over many bases without a gap: every such run, found through an index of the target.
//
//     TargetIndex index;
//     index.build(target);
//     bool all = find_runs(query, target, index, runs);   // each run of 15 bases or more, and many of 8 or more
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "align/bases.hpp"

namespace spillway {

/// A stretch of equal bases that no base can be added to on either side; diagonal is target position - query position.
struct ExactRun {
    std::ptrdiff_t diagonal = 0;
    std::ptrdiff_t query_begin = 0;
    std::ptrdiff_t length = 0;
};

/// The positions of a target by the eight bases that begin there.
class TargetIndex {
public:
    static constexpr std::ptrdiff_t word = 8;

    /// About 2 ns a base. Until the next build.
    void build(const CodedBases& target);

    /// The smallest position whose eight bases may be those at `bases`, or none: what comes back must be compared.
    [[nodiscard]] std::int32_t first(const std::uint8_t* bases) const noexcept { return first_[slot(bases)]; }
    [[nodiscard]] std::int32_t next(std::int32_t position) const noexcept {
        return next_[static_cast<std::size_t>(position)];
    }
    static constexpr std::int32_t none = -1;

private:
    [[nodiscard]] std::size_t slot(const std::uint8_t* bases) const noexcept {
        return static_cast<std::size_t>(eight_bases(bases) * 0x9E37'79B9'7F4A'7C15U >> shift_);
    }

    unsigned shift_ = 63;
    std::vector<std::int32_t> first_, next_;
};

/// The first place where the whole query, of eight bases or more, lies on the target, if there is one. About 0.3 ns for
/// each place.
[[nodiscard]] std::optional<std::ptrdiff_t> find_whole(const CodedBases& query, const CodedBases& target);

/// The same, through an index of the target.
[[nodiscard]] std::optional<std::ptrdiff_t> find_whole(const CodedBases& query, const CodedBases& target,
                                                       const TargetIndex& index);

/// Every run of this length or more is found: it holds an aligned word of the query whole.
inline constexpr std::ptrdiff_t surely_found = 2 * TargetIndex::word - 1;

/// Writes runs in the order of their first indexed word. False, with `runs` of no use, if the pair is so repetitive
/// that looking on would cost more than aligning.
[[nodiscard]] bool find_runs(const CodedBases& query, const CodedBases& target, const TargetIndex& index,
                             std::vector<ExactRun>& runs);

} // namespace spillway
