// Every form of the alignment under one face, and the parts of a result that can be checked without an oracle.
//
//     for (const Form& form : all_forms()) CHECK(form.align("ACGT", "ACGT", {}, Span::local) == expected);
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "align/band.hpp"
#include "align/scalar.hpp"
#include "spillway/align.hpp"

namespace spillway {

struct Form {
    std::string name;
    std::function<Alignment(std::string_view, std::string_view, const Scores&, Span)> align;
};

template <class Lane>
Alignment align_whole_matrix(std::string_view query, std::string_view target, const Scores& scores, Span span,
                             Instructions instructions) {
    CodedBases coded_query(CodedBases::Side::query), coded_target(CodedBases::Side::target);
    coded_query.assign(query);
    coded_target.assign(target);
    BandAligner<Lane> aligner(scores, span, instructions);
    aligner.set_target(coded_target);
    aligner.set_query(coded_query);
    Alignment best = worst_alignment();
    aligner.align({-static_cast<std::ptrdiff_t>(query.size()), static_cast<std::ptrdiff_t>(target.size())}, best);
    return best;
}

inline std::vector<Form> all_forms() {
    const auto in_band = [](Instructions instructions) {
        return [=](std::string_view query, std::string_view target, const Scores& scores, Span span) {
            if (!fits_16_bits(query.size(), target.size(), scores)) return align_scalar(query, target, scores, span);
            return align_whole_matrix<std::int16_t>(query, target, scores, span, instructions);
        };
    };
    const auto in_wide_band = [](Instructions instructions) {
        return [=](std::string_view query, std::string_view target, const Scores& scores, Span span) {
            return align_whole_matrix<std::int32_t>(query, target, scores, span, instructions);
        };
    };
    return {
        {"scalar", align_scalar},
        {"one pair", [](std::string_view query, std::string_view target, const Scores& scores,
                        Span span) { return align(query, target, scores, span); }},
        {"batch",
         [](std::string_view query, std::string_view target, const Scores& scores, Span span) {
             const std::vector<std::string_view> queries{"ACGTACGTACGT", query, query};
             std::vector<Alignment> out(3);
             align(queries, target, scores, span, out);
             return out[1] == out[2] ? out[1] : Alignment{};
         }},
        {"pairs side by side",
         [](std::string_view query, std::string_view target, const Scores& scores, Span span) {
             const std::vector<SequencePair> pairs(40, {query, target});
             std::vector<Alignment> out(40);
             align(pairs, scores, span, out);
             return out[0] == out[39] ? out[0] : Alignment{};
         }},
        {"16 bits, widest registers", in_band(Instructions::widest)},
        {"16 bits, baseline", in_band(Instructions::baseline)},
        {"32 bits, widest registers", in_wide_band(Instructions::widest)},
        {"32 bits, baseline", in_wide_band(Instructions::baseline)},
    };
}

/// "24 q0-6 t2-8 6M"
inline std::string describe(const Alignment& a) {
    return std::to_string(a.score) + " q" + std::to_string(a.query_begin) + "-" + std::to_string(a.query_end) + " t" +
           std::to_string(a.target_begin) + "-" + std::to_string(a.target_end) + " " + to_string(a.cigar);
}

} // namespace spillway
