#include "align/scalar.hpp"

#include <algorithm>

#include "align/cigar.hpp"
#include "align/limits.hpp"

namespace spillway {

namespace {

constexpr std::int32_t minus_infinity = -(1 << 30);

/// The best scores of all alignments that end at a cell: in any way, with a deletion, with an insertion.
struct Cell {
    std::int32_t any = 0, deletion = minus_infinity, insertion = minus_infinity;
};

char upper(char base) {
    return base >= 'a' && base <= 'z' ? static_cast<char>(base - 'a' + 'A') : base;
}

bool known(char base) {
    return base == 'A' || base == 'C' || base == 'G' || base == 'T';
}

/// Cell (i, j) stands after i bases of the query and j of the target.
class Matrix {
public:
    Matrix(std::string_view query, std::string_view target, const Scores& scores, Span span)
        : query_(query), target_(target), scores_(scores), span_(span),
          cells_((query.size() + 1) * (target.size() + 1)) {
        for (std::size_t i = 0; i <= query.size(); ++i) {
            for (std::size_t j = 0; j <= target.size(); ++j) fill(i, j);
        }
    }

    [[nodiscard]] const Cell& at(std::size_t i, std::size_t j) const { return cells_[i * (target_.size() + 1) + j]; }

    [[nodiscard]] std::int32_t pair(std::size_t i, std::size_t j) const {
        const char a = upper(query_[i - 1]);
        const char b = upper(target_[j - 1]);
        if (!known(a) || !known(b)) return scores_.unknown;
        return a == b ? scores_.match : scores_.mismatch;
    }

private:
    void fill(std::size_t i, std::size_t j) {
        Cell& cell = cells_[i * (target_.size() + 1) + j];
        if (i == 0) return; // an alignment may begin before any target base, at no cost
        cell.insertion = std::max(at(i - 1, j).any - scores_.gap_open, at(i - 1, j).insertion - scores_.gap_extend);
        cell.any = cell.insertion;
        if (j > 0) {
            cell.deletion = std::max(at(i, j - 1).any - scores_.gap_open, at(i, j - 1).deletion - scores_.gap_extend);
            cell.any = std::max({cell.any, cell.deletion, at(i - 1, j - 1).any + pair(i, j)});
        }
        if (span_ == Span::local) cell.any = std::max(cell.any, 0);
    }

    std::string_view query_, target_;
    const Scores& scores_;
    Span span_;
    std::vector<Cell> cells_;
};

struct End {
    std::size_t i, j;
};

/// Highest score, then smallest target end, then smallest query end.
End best_end(const Matrix& matrix, std::size_t query, std::size_t target, Span span) {
    End best{span == Span::query ? query : 0, 0};
    for (std::size_t j = 0; j <= target; ++j) {
        for (std::size_t i = span == Span::query ? query : 0; i <= query; ++i) {
            if (matrix.at(i, j).any > matrix.at(best.i, best.j).any) best = {i, j};
        }
    }
    return best;
}

} // namespace

Alignment align_scalar(std::string_view query, std::string_view target, const Scores& scores, Span span) {
    check_scores(scores);
    check_lengths(query.size(), target.size(), scores);
    const Matrix matrix(query, target, scores, span);
    const End end = best_end(matrix, query.size(), target.size(), span);
    Alignment result;
    result.score = matrix.at(end.i, end.j).any;
    if (query.empty() || (span == Span::local && result.score == 0)) return result;

    auto [i, j] = end;
    enum class State { any, deletion, insertion } state = State::any;
    BackwardCigar path;
    for (;;) {
        const Cell& cell = matrix.at(i, j);
        if (state == State::any) {
            if (i == 0 || (span == Span::local && cell.any == 0)) break;
            if (j > 0 && cell.any == matrix.at(i - 1, j - 1).any + matrix.pair(i, j)) {
                path.add(CigarOperation::match);
                --i, --j;
            } else {
                state = cell.any == cell.deletion ? State::deletion : State::insertion;
            }
        } else if (state == State::deletion) {
            path.add(CigarOperation::deletion);
            --j;
            if (cell.deletion == matrix.at(i, j).any - scores.gap_open) state = State::any;
        } else {
            path.add(CigarOperation::insertion);
            --i;
            if (cell.insertion == matrix.at(i, j).any - scores.gap_open) state = State::any;
        }
    }
    result.query_begin = static_cast<std::int32_t>(i);
    result.query_end = static_cast<std::int32_t>(end.i);
    result.target_begin = static_cast<std::int32_t>(j);
    result.target_end = static_cast<std::int32_t>(end.j);
    path.finish(result.cigar);
    return result;
}

} // namespace spillway
