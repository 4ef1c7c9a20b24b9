#include <edlib.h>

#include <cstdlib>
#include <limits>

#include "aligner.hpp"

namespace bench {
namespace {

class Edlib : public Aligner {
public:
    explicit Edlib(bool with_cigar) : Aligner(spillway::Span::query), with_cigar_(with_cigar) {}
    [[nodiscard]] std::string name() const override { return "edlib (whole query, every edit costs 1)"; }
    void align(std::span<const spillway::SequencePair> pairs) override {
        const auto config =
            edlibNewAlignConfig(-1, EDLIB_MODE_HW, with_cigar_ ? EDLIB_TASK_PATH : EDLIB_TASK_DISTANCE, nullptr, 0);
        for (const auto& pair : pairs) {
            EdlibAlignResult found = edlibAlign(pair.query.data(), static_cast<int>(pair.query.size()),
                                                pair.target.data(), static_cast<int>(pair.target.size()), config);
            found_scores.push_back(std::numeric_limits<std::int32_t>::min());
            if (with_cigar_) {
                char* text = edlibAlignmentToCigar(found.alignment, found.alignmentLength, EDLIB_CIGAR_STANDARD);
                found_cigars.emplace_back(text);
                std::free(text);
            }
            edlibFreeAlignResult(found);
        }
    }

private:
    bool with_cigar_;
};

} // namespace

void add_edlib(Aligners& to, bool with_cigar) {
    to.push_back(std::make_unique<Edlib>(with_cigar));
}

} // namespace bench
