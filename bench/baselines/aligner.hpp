// What every aligner of bench/align.cpp is given and must do: align pair after pair with one set of scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spillway/align.hpp"

namespace bench {

/// One way to align. A score of minus 2^31 says that this one does not score as the others do.
class Aligner {
public:
    explicit Aligner(spillway::Span span = spillway::Span::local) : span_(span) {}
    virtual ~Aligner() = default;
    /// What it scores: only scores of one span can be compared.
    [[nodiscard]] spillway::Span span() const { return span_; }
    [[nodiscard]] virtual std::string name() const = 0;
    /// Aligns every pair; what it finds is kept in found_scores, and the CIGARs' texts, where it makes them, in
    /// found_cigars.
    virtual void align(std::span<const spillway::SequencePair> pairs) = 0;

    std::vector<std::int32_t> found_scores;
    std::vector<std::string> found_cigars;

private:
    spillway::Span span_;
};

using Aligners = std::vector<std::unique_ptr<Aligner>>;

/// Each adds what it has: all ways of this library to find score and end, or begin and CIGAR too.
void add_ssw(Aligners& to, const spillway::Scores& scores, bool with_cigar);
void add_parasail(Aligners& to, const spillway::Scores& scores, bool with_cigar);
void add_edlib(Aligners& to, bool with_cigar);
void add_wfa2(Aligners& to, const spillway::Scores& scores, bool with_cigar);
/// The time that the recurrence's vector operations take alone; nothing where they are not known.
void add_bound(Aligners& to, std::size_t lane_bytes, bool shares_target);

} // namespace bench
