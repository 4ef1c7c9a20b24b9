// Random queries and targets of the kinds that break aligners, the same for the same seed and compiler.
//
//     Pairs pairs(7);
//     Pair pair = pairs.next();     // pair.query, pair.target, pair.kind
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include "spillway/align.hpp"

namespace spillway {

struct Pair {
    std::string query, target, kind;
};

class Pairs {
public:
    explicit Pairs(std::uint64_t seed) : engine_(seed) {}

    /// 0 to `below` - 1.
    std::size_t under(std::size_t below) { return static_cast<std::size_t>(engine_() % below); }

    std::string bases(std::size_t length, std::string_view alphabet) {
        std::string text;
        for (std::size_t i = 0; i < length; ++i) text += alphabet[under(alphabet.size())];
        return text;
    }

    /// A target of up to `longest` bases: random, of few letters, one letter, a tandem repeat, with runs of N, mixed
    /// case.
    std::string target(std::size_t longest) {
        const std::size_t length = under(longest + 1);
        switch (under(8)) {
        case 0:
            return bases(length, "AC");
        case 1:
            return std::string(length, 'A');
        case 2:
            return tandem(length);
        case 3:
            return with_unknown(bases(length, "ACGT"));
        case 4:
            return bases(length, "ACGTacgtNRYn-");
        case 5:
            return bases(length / 3, "ACGT") + tandem(length / 3) + bases(length / 3, "ACGT");
        default:
            return bases(length, "ACGT");
        }
    }

    /// A piece of the target with errors, or nothing of the kind.
    Pair next(std::size_t longest = 300) {
        Pair pair;
        pair.target = target(longest);
        if (under(8) == 0) {
            pair.query = target(longest);
            pair.kind = "unrelated";
            return pair;
        }
        const std::size_t begin = under(pair.target.size() + 1);
        pair.query = pair.target.substr(begin, under(longest) + 1);
        const std::size_t edits = under(5) == 0 ? under(20) : under(4);
        for (std::size_t i = 0; i < edits; ++i) edit(pair.query);
        if (under(8) == 0) pair.query = bases(under(12), "ACGT") + pair.query;
        if (under(8) == 0) pair.query += bases(under(12), "ACGT");
        if (under(10) == 0) pair.query = with_unknown(pair.query);
        pair.kind = std::to_string(edits) + " edits of a piece at " + std::to_string(begin);
        return pair;
    }

    /// Also some of which nothing can be proven, or whose gaps are reopened.
    Scores any_scores() {
        static constexpr std::array<Scores, 6> known{{{4, -6, -6, 8, 0},
                                                      {4, -6, -6, 1, 3},
                                                      {1, 0, 0, 0, 0},
                                                      {2, -3, -1, 0, 5},
                                                      {1, -1, 0, 1, 0},
                                                      {3, -2, -2, 1, 40}}};
        return under(6) == 0 ? known[under(known.size())] : scores();
    }

    Scores scores() {
        static constexpr std::array<Scores, 9> known{{{4, -6, -6, 8, 2},
                                                      {1, -4, -1, 6, 1},
                                                      {2, -4, -1, 4, 2},
                                                      {1, 0, 0, 1, 1},
                                                      {1, -1, 0, 1, 1},
                                                      {5, -4, -2, 10, 10},
                                                      {1, -100, -100, 2, 1},
                                                      {4, -6, 0, 8, 8},
                                                      {300, -500, -700, 900, 20}}};
        if (under(2) == 0) return known[0];
        if (under(2) == 0) return known[under(known.size())];
        Scores scores;
        scores.match = 1 + static_cast<int>(under(12));
        scores.mismatch = -static_cast<int>(under(12));
        scores.unknown = -static_cast<int>(under(12));
        scores.gap_extend = 1 + static_cast<int>(under(6));
        scores.gap_open = scores.gap_extend + static_cast<int>(under(12));
        return scores;
    }

    void edit(std::string& text) {
        const std::size_t at = under(text.size() + 1);
        const std::size_t length = 1 + (under(4) == 0 ? under(25) : under(3));
        switch (under(4)) {
        case 0:
            text.insert(at, bases(length, "ACGT"));
            break;
        case 1:
            text.erase(at, length);
            break;
        default:
            if (at < text.size()) text[at] = "ACGT"[under(4)];
        }
    }

private:
    std::string tandem(std::size_t length) {
        const std::string unit = bases(1 + under(7), "ACGT");
        std::string text;
        while (text.size() < length) text += unit;
        return text.substr(0, length);
    }

    std::string with_unknown(std::string text) {
        for (std::size_t i = 0, runs = 1 + under(3); i < runs && !text.empty(); ++i) {
            const std::size_t at = under(text.size());
            const std::size_t length = std::min(text.size() - at, 1 + under(9));
            text.replace(at, length, std::string(length, 'N'));
        }
        return text;
    }

    std::mt19937_64 engine_;
};

} // namespace spillway
