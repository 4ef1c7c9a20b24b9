#include <catch2/catch.hpp>

#include <fstream>
#include <sstream>

#include "forms.hpp"
#include "pairs.hpp"

namespace spillway {
namespace {

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts;
    std::string part;
    for (std::istringstream in(text); std::getline(in, part, at);) {
        const auto first = part.find_first_not_of(' ');
        parts.push_back(first == std::string::npos ? "" : part.substr(first, part.find_last_not_of(' ') - first + 1));
    }
    return parts;
}

struct Example {
    std::string query, target, expected;
    Scores scores;
    Span span = Span::local;
};

/// The rows of the page's table: | query | target | scores | span | score | query at | target at | CIGAR | why |
std::vector<Example> examples() {
    std::vector<Example> found;
    std::ifstream page(TIE_RULE_PAGE);
    for (std::string line; std::getline(page, line);) {
        const auto cells = split(line, '|');
        if (cells.size() < 9 || cells[3].find('/') == std::string::npos) continue;
        const auto numbers = split(cells[3], '/');
        found.push_back({.query = cells[1],
                         .target = cells[2],
                         .expected = cells[5] + " q" + cells[6] + " t" + cells[7] + " " + cells[8],
                         .scores = {.match = std::stoi(numbers.at(0)),
                                    .mismatch = std::stoi(numbers.at(1)),
                                    .unknown = std::stoi(numbers.at(2)),
                                    .gap_open = std::stoi(numbers.at(3)),
                                    .gap_extend = std::stoi(numbers.at(4))},
                         .span = cells[4] == "local" ? Span::local : Span::query});
    }
    return found;
}

/// Every alignment of tiny sequences, one by one, each written from its end to its begin and scored as a whole. It
/// knows nothing of matrices: the tie rule is an order in which such writings are tried.
class Enumeration {
public:
    Enumeration(std::string_view query, std::string_view target, const Scores& scores, Span span)
        : query_(query), target_(target), scores_(scores), span_(span) {
        for (std::size_t j = 0; j <= target.size(); ++j) {
            for (std::size_t i = span == Span::query ? query.size() : 0; i <= query.size(); ++i) {
                end_i_ = i;
                end_j_ = j;
                extend(i, j);
            }
        }
    }

    [[nodiscard]] std::string best() const { return best_; }

private:
    void extend(std::size_t i, std::size_t j) {
        if (span_ == Span::local || i == 0) judge(i, j);
        const char last = path_.empty() ? 'M' : path_.back();
        // Closing a gap comes first, and then what H allows; where a gap opens at no more than the cost of an
        // extension, another deletion is what H allows after a deletion.
        const char* order = last == 'D' && scores_.gap_open > scores_.gap_extend ? "MID" : "MDI";
        for (const char* operation = order; *operation != 0; ++operation) {
            const bool uses_query = *operation != 'D', uses_target = *operation != 'I';
            if ((uses_query && i == 0) || (uses_target && j == 0)) continue;
            if (*operation == 'D' && i == 0) continue;
            path_ += *operation;
            extend(i - (uses_query ? 1 : 0), j - (uses_target ? 1 : 0));
            path_.pop_back();
        }
    }

    void judge(std::size_t i, std::size_t j) {
        Alignment here;
        std::size_t at_query = i, at_target = j;
        for (std::size_t k = path_.size(); k-- > 0;) {
            const char operation = path_[k];
            const bool goes_on = k + 1 < path_.size() && path_[k + 1] == operation;
            if (operation == 'M') {
                here.score += pair(query_[at_query], target_[at_target]);
            } else {
                here.score -= goes_on ? std::min(scores_.gap_open, scores_.gap_extend) : scores_.gap_open;
            }
            const std::uint32_t code = operation == 'M' ? 0 : operation == 'I' ? 1 : 2;
            if (goes_on) {
                here.cigar.back() += 16;
            } else {
                here.cigar.push_back(16 | code);
            }
            at_query += operation != 'D';
            at_target += operation != 'I';
        }
        if (found_ && here.score <= score_) return;
        found_ = true;
        score_ = here.score;
        here.query_begin = static_cast<std::int32_t>(i);
        here.query_end = static_cast<std::int32_t>(end_i_);
        here.target_begin = static_cast<std::int32_t>(j);
        here.target_end = static_cast<std::int32_t>(end_j_);
        if ((span_ == Span::local && score_ == 0) || query_.empty()) here = Alignment{};
        best_ = describe(here);
    }

    [[nodiscard]] int pair(char a, char b) const {
        if (a == 'N' || b == 'N') return scores_.unknown;
        return a == b ? scores_.match : scores_.mismatch;
    }

    std::string_view query_, target_;
    Scores scores_;
    Span span_;
    std::string path_, best_;
    std::size_t end_i_ = 0, end_j_ = 0;
    bool found_ = false;
    int score_ = 0;
};

TEST_CASE("every form follows each example of the tie rule's page, with every instruction set") {
    const auto all = examples();
    REQUIRE(all.size() >= 22);
    const std::vector<Form> forms = all_forms();
    for (const Isa isa : available_isas()) {
        const ForcedIsa forced(isa);
        for (const Example& example : all) {
            INFO(name_of(isa) << ": " << example.query << " " << example.target);
            Alignment found;
            for (const Form& form : forms) {
                INFO(form.name);
                found = form.align(example.query, example.target, example.scores, example.span);
                CHECK(describe(found) == example.expected);
            }
            const std::vector<SequencePair> pairs(40, {example.query, example.target});
            std::vector<AlignmentEnd> ends(pairs.size());
            score(pairs, example.scores, example.span, ends);
            CHECK(ends == std::vector<AlignmentEnd>(40, {found.score, found.query_end, found.target_end}));
        }
    }
}

TEST_CASE("the oracle gives the alignment that an enumeration of all of them finds first among the best") {
    Pairs random(20);
    std::size_t with_gaps = 0;
    for (int round = 0; round < 1200; ++round) {
        const std::string_view alphabet = round % 3 == 0 ? "ACGTN" : round % 3 == 1 ? "AC" : "ACG";
        const std::string query = random.bases(random.under(6), alphabet);
        const std::string target = random.bases(random.under(6), alphabet);
        Scores scores = random.any_scores();
        if (round % 4 == 0) scores = {1 + int(random.under(3)), -int(random.under(3)), -int(random.under(3)), 2, 1};
        for (const Span span : {Span::local, Span::query}) {
            INFO(query << " " << target << " " << describe(scores, span));
            const Alignment oracle = align_scalar(query, target, scores, span);
            with_gaps += oracle.cigar.size() > 1;
            REQUIRE(describe(oracle) == Enumeration(query, target, scores, span).best());
        }
    }
    CHECK(with_gaps > 300);
}

} // namespace
} // namespace spillway
