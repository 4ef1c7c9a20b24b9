// From the score and the end of the best alignment to all of it: begin and CIGAR, with as few cells as the proof
// allows.
//
//     Finisher finisher(scores, Span::local);
//     Alignment& a = out[i];
//     a.score = 586, a.query_end = 150, a.target_end = 311;      // as a score pass found them (the tie rule's end)
//     finisher.finish(query, target, a);                         // writes query_begin, target_begin, cigar
//
// Where the end's diagonal alone attains the score, the path is a walk along it. Else the score says what the alignment
// loses against a perfect one, and so how many bases it can delete or insert at most (certificate.hpp): the path lies
// in that band around the diagonal, which is aligned (band.hpp); where the loss is great it is the whole matrix.
#pragma once

#include <string_view>

#include "align/bases.hpp"
#include "align/either_band.hpp"
#include "spillway/align.hpp"

namespace spillway {

/// Thread safety: one thread at a time. Scores and lengths must have passed limits.hpp.
class Finisher {
public:
    Finisher(const Scores& scores, Span span, Instructions instructions = Instructions::widest)
        : scores_(scores), span_(span), band_(scores, span, instructions) {}

    /// In: result.score, query_end and target_end, those of align() for this pair; anything else has no meaning. Out:
    /// all of align()'s result, byte for byte; the CIGAR's storage is used again. About 0.1 us for a read without
    /// gaps, 1 us for one with a few; an alignment that loses much costs up to 0.2 ns for each cell of the matrix.
    void finish(std::string_view query, std::string_view target, Alignment& result);

private:
    Scores scores_;
    Span span_;
    CodedBases query_{CodedBases::Side::query}, target_{CodedBases::Side::target};
    EitherBandAligner band_;
};

} // namespace spillway
