// Every form of the alignment under one face, and the parts of a result that can be checked without an oracle.
//
//     for (const Form& form : all_forms()) CHECK(form.align("ACGT", "ACGT", {}, Span::local) == expected);
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "align/band.hpp"
#include "align/finish.hpp"
#include "align/isa.hpp"
#include "align/scalar.hpp"
#include "align/score_pass.hpp"
#include "align/wavefront.hpp"
#include "spillway/align.hpp"

namespace spillway {

struct Form {
    std::string name;
    std::function<Alignment(std::string_view, std::string_view, const Scores&, Span)> align;
};

/// While it lives, align() and score() use this instruction set.
class ForcedIsa {
public:
    explicit ForcedIsa(Isa isa) {
        if (const char* const before = std::getenv("SPILLWAY_ISA")) before_ = before;
        ::setenv("SPILLWAY_ISA", std::string(name_of(isa)).c_str(), 1);
    }
    ForcedIsa(const ForcedIsa&) = delete;
    ForcedIsa& operator=(const ForcedIsa&) = delete;
    ~ForcedIsa() {
        if (before_) {
            ::setenv("SPILLWAY_ISA", before_->c_str(), 1);
        } else {
            ::unsetenv("SPILLWAY_ISA");
        }
    }

private:
    std::optional<std::string> before_;
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

/// Or nothing where wavefronts give up.
template <class Lane>
std::optional<Alignment> align_by_wavefronts(std::string_view query, std::string_view target, const Scores& scores,
                                             Span span, Instructions instructions) {
    CodedBases coded_query(CodedBases::Side::query), coded_target(CodedBases::Side::target);
    coded_query.assign(query);
    coded_target.assign(target);
    TargetIndex index;
    index.build(coded_target);
    WavefrontAligner<Lane> aligner(scores, span, instructions);
    Alignment result;
    if (query.empty() || !aligner.align(coded_query, coded_target, index, result)) return std::nullopt;
    return result;
}

/// Many copies of the pair side by side through a score pass, then from score and end to the rest.
inline Alignment align_from_ends(std::string_view query, std::string_view target, const Scores& scores, Span span,
                                 Isa isa, bool one_target) {
    const std::vector<std::string> targets(40, std::string(target));
    std::vector<SequencePair> pairs;
    for (const std::string& own : targets) pairs.push_back({query, one_target ? target : std::string_view(own)});
    std::vector<AlignmentEnd> ends(pairs.size());
    ScorePass(scores, span, isa).run(pairs, ends);
    if (ends.front() != ends.back()) return {};
    Alignment result;
    result.score = ends.front().score;
    result.query_end = ends.front().query_end;
    result.target_end = ends.front().target_end;
    Finisher(scores, span, instructions_of(isa)).finish(query, target, result);
    return result;
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
    const auto by_wavefronts = [](auto lane, Instructions instructions) {
        return [=](std::string_view query, std::string_view target, const Scores& scores, Span span) {
            using Lane = decltype(lane);
            const auto found = align_by_wavefronts<Lane>(query, target, scores, span, instructions);
            return found ? *found : align_whole_matrix<std::int32_t>(query, target, scores, span, instructions);
        };
    };
    std::vector<Form> forms{
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
        {"wavefronts, 16 bits, widest registers", by_wavefronts(std::int16_t{}, Instructions::widest)},
        {"wavefronts, 16 bits, baseline", by_wavefronts(std::int16_t{}, Instructions::baseline)},
        {"wavefronts, 32 bits, widest registers", by_wavefronts(std::int32_t{}, Instructions::widest)},
        {"wavefronts, 32 bits, baseline", by_wavefronts(std::int32_t{}, Instructions::baseline)},
    };
    for (const Isa isa : available_isas()) {
        for (const bool one_target : {false, true}) {
            forms.push_back({"score pass and finisher, " + std::string(name_of(isa)) +
                                 (one_target ? ", one target" : ", own targets"),
                             [=](std::string_view query, std::string_view target, const Scores& scores, Span span) {
                                 return align_from_ends(query, target, scores, span, isa, one_target);
                             }});
        }
    }
    return forms;
}

/// The score of an alignment, from its CIGAR and the bases alone; nothing if the CIGAR is not one of this pair.
inline std::optional<std::int64_t> score_again(const Alignment& a, std::string_view query, std::string_view target,
                                               const Scores& scores) {
    std::int64_t score = 0;
    auto i = static_cast<std::size_t>(a.query_begin), j = static_cast<std::size_t>(a.target_begin);
    std::uint32_t before = 15;
    for (const CigarElement element : a.cigar) {
        const std::uint32_t length = element >> 4, operation = element & 15;
        if (length == 0 || operation > 2 || operation == before) return std::nullopt;
        before = operation;
        const bool uses_query = operation != 2, uses_target = operation != 1;
        if ((uses_query && length > query.size() - i) || (uses_target && length > target.size() - j))
            return std::nullopt;
        for (std::uint32_t k = 0; operation == 0 && k < length; ++k) {
            const int x = std::toupper(query[i + k]), y = std::toupper(target[j + k]);
            const bool known =
                (x == 'A' || x == 'C' || x == 'G' || x == 'T') && (y == 'A' || y == 'C' || y == 'G' || y == 'T');
            score += !known ? scores.unknown : x == y ? scores.match : scores.mismatch;
        }
        if (operation != 0) {
            score -= scores.gap_open + std::int64_t{std::min(scores.gap_open, scores.gap_extend)} * (length - 1);
        }
        i += uses_query ? length : 0;
        j += uses_target ? length : 0;
    }
    if (i != static_cast<std::size_t>(a.query_end) || j != static_cast<std::size_t>(a.target_end)) return std::nullopt;
    return score;
}

/// "4/-6/-6/8/2 local"
inline std::string describe(const Scores& s, Span span) {
    return std::to_string(s.match) + "/" + std::to_string(s.mismatch) + "/" + std::to_string(s.unknown) + "/" +
           std::to_string(s.gap_open) + "/" + std::to_string(s.gap_extend) +
           (span == Span::local ? " local" : " query");
}

/// "24 q0-6 t2-8 6M"
inline std::string describe(const Alignment& a) {
    return std::to_string(a.score) + " q" + std::to_string(a.query_begin) + "-" + std::to_string(a.query_end) + " t" +
           std::to_string(a.target_begin) + "-" + std::to_string(a.target_end) + " " + to_string(a.cigar);
}

} // namespace spillway
