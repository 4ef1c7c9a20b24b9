#include <ssw.h>

#include <array>

#include "aligner.hpp"

namespace bench {
namespace {

std::vector<std::int8_t> coded(std::string_view bases) {
    std::vector<std::int8_t> codes;
    codes.reserve(bases.size());
    for (const char base : bases) codes.push_back(base == 'A' ? 0 : base == 'C' ? 1 : base == 'G' ? 2 : 3);
    return codes;
}

class Ssw : public Aligner {
public:
    Ssw(const spillway::Scores& scores, bool with_cigar) : scores_(scores), with_cigar_(with_cigar) {
        for (std::size_t i = 0; i < 25; ++i) {
            table_[i] = static_cast<std::int8_t>(i / 5 == 4 || i % 5 == 4 ? scores.unknown
                                                 : i / 5 == i % 5         ? scores.match
                                                                          : scores.mismatch);
        }
    }
    [[nodiscard]] std::string name() const override { return "SSW, 16 bits"; }
    void align(std::span<const spillway::SequencePair> pairs) override {
        for (const auto& pair : pairs) {
            const auto query = coded(pair.query), target = coded(pair.target);
            // 1: 16 bits at once, since most scores pass 255. The last argument: no search for a second best end.
            s_profile* profile = ssw_init(query.data(), static_cast<std::int32_t>(query.size()), table_.data(), 5, 1);
            s_align* found =
                ssw_align(profile, target.data(), static_cast<std::int32_t>(target.size()),
                          static_cast<std::uint8_t>(scores_.gap_open), static_cast<std::uint8_t>(scores_.gap_extend),
                          with_cigar_ ? 1 : 0, 0, 0, static_cast<std::int32_t>(target.size()));
            found_scores.push_back(found->score1);
            if (with_cigar_) {
                std::string text;
                for (std::int32_t k = 0; k < found->cigarLen; ++k) {
                    text += std::to_string(cigar_int_to_len(found->cigar[k])) + cigar_int_to_op(found->cigar[k]);
                }
                found_cigars.push_back(text);
            }
            align_destroy(found);
            init_destroy(profile);
        }
    }

private:
    spillway::Scores scores_;
    bool with_cigar_;
    std::array<std::int8_t, 25> table_{};
};

} // namespace

void add_ssw(Aligners& to, const spillway::Scores& scores, bool with_cigar) {
    to.push_back(std::make_unique<Ssw>(scores, with_cigar));
}

} // namespace bench
