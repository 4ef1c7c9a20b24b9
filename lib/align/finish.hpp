// From the score and the end of the best alignment to all of it: begin and CIGAR, with as few cells as the proof
// allows.
//
//     Finisher finisher(scores, Span::local);
//     Alignment& a = out[i];
//     a.score = 586, a.query_end = 150, a.target_end = 311;      // as a score pass found them (the tie rule's end)
//     finisher.finish(query, target, a);                         // writes query_begin, target_begin, cigar
//
// The score says what the alignment loses against a perfect one, and so how many gaps and clipped bases it can have at
// most (certificate.hpp). Where that allows no gap, or no detour from the end's diagonal (detours.hpp), the path is a
// walk along that diagonal. Else it lies within a band around it, which is aligned with its path (band.hpp); the band
// of an alignment that loses much is the whole matrix.
#pragma once

#include <string_view>

#include "align/bases.hpp"
#include "align/either_band.hpp"
#include "spillway/align.hpp"

namespace spillway {

/// Thread safety: one thread at a time. Scores and lengths must have passed limits.hpp.
class Finisher {
public:
    Finisher(const Scores& scores, Span span) : scores_(scores), span_(span), band_(scores, span) {}

    /// In: result.score, query_end and target_end, those of align() for this pair; anything else has no meaning. Out:
    /// all of align()'s result, byte for byte; the CIGAR's storage is used again. About 0.1 us for a read with few
    /// mismatches, 1 us for one with gaps; an alignment that loses much costs up to 0.2 ns for each cell of the matrix.
    void finish(std::string_view query, std::string_view target, Alignment& result);

private:
    Scores scores_;
    Span span_;
    CodedBases query_{CodedBases::Side::query}, target_{CodedBases::Side::target};
    EitherBandAligner band_;
};

} // namespace spillway
