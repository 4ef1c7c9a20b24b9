#include <parasail.h>

#include "aligner.hpp"

namespace bench {
namespace {

struct Variant {
    const char* name;
    spillway::Span span;
    parasail_result_t* (*align)(const char*, int, const char*, int, int, int, const parasail_matrix_t*);
};

using enum spillway::Span;
#if defined(__x86_64__)
constexpr Variant score_variants[] = {{"striped, AVX2", local, parasail_sw_striped_avx2_256_16},
                                      {"scan, AVX2", local, parasail_sw_scan_avx2_256_16},
                                      {"striped, AVX2, whole query", query, parasail_sg_dx_striped_avx2_256_16}};
constexpr Variant cigar_variants[] = {{"striped, AVX2", local, parasail_sw_trace_striped_avx2_256_16},
                                      {"scan, AVX2", local, parasail_sw_trace_scan_avx2_256_16},
                                      {"striped, AVX2, whole query", query, parasail_sg_dx_trace_striped_avx2_256_16}};
#else
constexpr Variant score_variants[] = {{"striped", local, parasail_sw_striped_16},
                                      {"striped, whole query", query, parasail_sg_dx_striped_16}};
constexpr Variant cigar_variants[] = {{"striped", local, parasail_sw_trace_striped_16},
                                      {"striped, whole query", query, parasail_sg_dx_trace_striped_16}};
#endif

class Parasail : public Aligner {
public:
    Parasail(const Variant& variant, const spillway::Scores& scores, bool with_cigar)
        : Aligner(variant.span), variant_(variant), scores_(scores), with_cigar_(with_cigar),
          matrix_(parasail_matrix_create("ACGT", scores.match, scores.mismatch)) {}
    Parasail(const Parasail&) = delete;
    Parasail& operator=(const Parasail&) = delete;
    ~Parasail() override { parasail_matrix_free(matrix_); }

    [[nodiscard]] std::string name() const override { return std::string("parasail, 16 bits, ") + variant_.name; }
    void align(std::span<const spillway::SequencePair> pairs) override {
        for (const auto& pair : pairs) {
            const auto query_size = static_cast<int>(pair.query.size());
            const auto target_size = static_cast<int>(pair.target.size());
            parasail_result_t* found = variant_.align(pair.query.data(), query_size, pair.target.data(), target_size,
                                                      scores_.gap_open, scores_.gap_extend, matrix_);
            found_scores.push_back(parasail_result_get_score(found));
            if (with_cigar_) {
                parasail_cigar_t* cigar = parasail_result_get_cigar(found, pair.query.data(), query_size,
                                                                    pair.target.data(), target_size, matrix_);
                char* text = parasail_cigar_decode(cigar);
                found_cigars.emplace_back(text);
                free(text);
                parasail_cigar_free(cigar);
            }
            parasail_result_free(found);
        }
    }

private:
    Variant variant_;
    spillway::Scores scores_;
    bool with_cigar_;
    parasail_matrix_t* matrix_;
};

} // namespace

void add_parasail(Aligners& to, const spillway::Scores& scores, bool with_cigar) {
    for (const Variant& variant : with_cigar ? cigar_variants : score_variants) {
        to.push_back(std::make_unique<Parasail>(variant, scores, with_cigar));
    }
}

} // namespace bench
