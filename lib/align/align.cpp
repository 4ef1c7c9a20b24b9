#include "spillway/align.hpp"

#include "align/limits.hpp"
#include "align/scalar.hpp"
#include "spillway/error.hpp"

namespace spillway {

Alignment align(std::string_view query, std::string_view target, const Scores& scores, Span span) {
    return align_scalar(query, target, scores, span);
}

void align(std::span<const std::string_view> queries, std::string_view target, const Scores& scores, Span span,
           std::span<Alignment> out) {
    if (queries.size() != out.size()) {
        throw Error(ErrorCode::usage, "aligning", "a batch",
                    std::to_string(queries.size()) + " queries but room for " + std::to_string(out.size()) +
                        " alignments; give one for each query");
    }
    for (std::size_t i = 0; i < queries.size(); ++i) out[i] = align(queries[i], target, scores, span);
}

std::string to_string(std::span<const CigarElement> cigar) {
    std::string text;
    for (const CigarElement element : cigar) {
        text += std::to_string(element >> 4);
        text += (element & 0xF) < 9 ? "MIDNSHP=X"[element & 0xF] : '?';
    }
    return text;
}

} // namespace spillway
