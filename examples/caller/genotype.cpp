#include "genotype.hpp"

#include "likelihoods.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace caller {

namespace {

/// A template says at most this much against a haplotype: what is in no model (a chimera, a read that belongs
/// elsewhere).
constexpr std::int32_t max_evidence_of_template = 50 * static_cast<std::int32_t>(phred_unit);

/// An allele fits a template better only beyond this: less is a matter of rounding.
constexpr std::int32_t better_by = 2 * static_cast<std::int32_t>(phred_unit);

/// Both mates of one fragment (or the one read): costs by haplotype.
struct Template {
    std::int64_t begin;
    std::int64_t end;
    std::vector<std::int32_t> costs;
};

std::vector<Template> templates_of(Candidate& candidate) {
    std::vector<std::uint32_t> order(candidate.queries.size());
    for (std::uint32_t q = 0; q < order.size(); ++q) order[q] = q;
    const auto hash = [&](std::uint32_t q) { return candidate.queries[q].name_hash; };
    std::ranges::stable_sort(order, {}, hash);
    const std::size_t haplotypes = candidate.haplotypes.size();
    std::vector<Template> templates;
    for (std::size_t i = 0; i < order.size();) {
        Template one{candidate.queries[order[i]].begin, candidate.queries[order[i]].end, {}};
        one.costs.assign(haplotypes, 0);
        std::uint8_t mapping_quality = 0;
        std::size_t j = i;
        for (; j < order.size() && hash(order[j]) == hash(order[i]); ++j) {
            const Query& query = candidate.queries[order[j]];
            one.begin = std::min(one.begin, query.begin);
            one.end = std::max(one.end, query.end);
            mapping_quality = std::max(mapping_quality, query.mapping_quality);
            for (std::size_t h = 0; h < haplotypes; ++h) one.costs[h] += candidate.cost(order[j], h);
        }
        // Mates are not independent and the read may belong elsewhere: together they say no more than one good read.
        const std::int32_t cap =
            std::min<std::int32_t>(max_evidence_of_template,
                                   std::max<std::int32_t>(1, mapping_quality) * static_cast<std::int32_t>(phred_unit));
        const std::int32_t best = std::ranges::min(one.costs);
        for (auto& cost : one.costs) cost = std::min(cost - best, cap);
        templates.push_back(std::move(one));
        i = j;
    }
    return templates;
}

/// Every unordered pair of haplotypes: index of (i, j), i <= j, is j (j + 1) / 2 + i, as VCF orders genotypes.
template <class Visit>
void for_each_pair(std::size_t count, Visit&& visit) {
    for (std::size_t j = 0; j < count; ++j) {
        for (std::size_t i = 0; i <= j; ++i) visit(i, j, j * (j + 1) / 2 + i);
    }
}

/// A record's view of a haplotype: what it spells instead of `reference` bases from the record's position on.
struct Allele {
    std::int64_t reference = 0; ///< 0: nothing of it is here.
    std::string bases;
    friend auto operator<=>(const Allele&, const Allele&) = default;
};

/// VCF's POS of a variant: indels take the base before them, or at the contig's begin the one after.
std::int64_t record_position(const Variant& variant) {
    return variant.is_substitution() ? variant.position : std::max<std::int64_t>(0, variant.position - 1);
}

Allele allele_at(std::int64_t position, const std::vector<Variant>& variants, const Sequence& contig) {
    Allele allele;
    char first = spillway::hts::vcf_base(contig[position]);
    for (const Variant& variant : variants) {
        if (record_position(variant) != position) continue;
        if (variant.is_substitution()) {
            first = variant.inserted[0];
            if (allele.reference == 0) allele = {1, std::string(1, first)};
            allele.bases[0] = first;
        } else if (variant.position > position) {
            allele = {1 + variant.deleted, std::string(1, first) + variant.inserted};
        } else {
            allele = {1 + variant.deleted, variant.inserted + contig.plain(variant.end(), variant.end() + 1)};
        }
    }
    return allele;
}

class Diplotypes {
public:
    Diplotypes(Candidate& candidate, const Priors& priors);
    [[nodiscard]] std::vector<Call> calls() const;

private:
    [[nodiscard]] Phred prior_of(std::size_t i, std::size_t j, std::int64_t position) const;
    [[nodiscard]] Call call_at(std::int64_t position) const;

    Candidate& candidate_;
    const Priors& priors_;
    std::vector<Template> templates_;
    std::vector<std::vector<Variant>> variants_; ///< By haplotype.
    std::vector<Phred> likelihood_;              ///< By pair.
    std::vector<Phred> posterior_;               ///< By pair, not normalised.
    Phred total_ = impossible;
    std::array<std::size_t, 2> best_{};
};

constexpr std::int64_t everywhere = -1;

Diplotypes::Diplotypes(Candidate& candidate, const Priors& priors)
    : candidate_(candidate), priors_(priors), templates_(templates_of(candidate)) {
    const auto& haplotypes = candidate.haplotypes;
    for (const Haplotype& haplotype : haplotypes) {
        if (haplotype.events.empty()) {
            variants_.emplace_back();
        } else if (haplotype.events.size() == 1 && candidate.events[haplotype.events[0]].is_substitution()) {
            variants_.push_back({candidate.events[haplotype.events[0]]});
        } else {
            const auto alignment =
                spillway::align(haplotype.bases, haplotypes[0].bases, alignment_scores, spillway::Span::query);
            variants_.push_back(variants_of(haplotype.bases, alignment, candidate.slice_begin, candidate.sequence()));
        }
    }
    likelihood_.assign(haplotypes.size() * (haplotypes.size() + 1) / 2, 0);
    posterior_ = likelihood_;
    Phred least = std::numeric_limits<Phred>::max();
    for_each_pair(haplotypes.size(), [&](std::size_t i, std::size_t j, std::size_t pair) {
        Phred sum = 0;
        for (const Template& t : templates_) {
            sum += i == j ? t.costs[i] : either(t.costs[i] + half, t.costs[j] + half);
        }
        likelihood_[pair] = sum;
        posterior_[pair] = sum + prior_of(i, j, everywhere);
        total_ = either(total_, posterior_[pair]);
        if (posterior_[pair] < least) {
            least = posterior_[pair];
            best_ = {i, j};
        }
    });
}

/// Of the variants of a pair, all or those of one record.
Phred Diplotypes::prior_of(std::size_t i, std::size_t j, std::int64_t position) const {
    Phred prior = 0;
    const auto add = [&](const Variant& variant, bool homozygous) {
        if (position != everywhere && record_position(variant) != position) return;
        prior += (variant.is_substitution() ? priors_.substitution : priors_.indel) + (homozygous ? half : 0);
    };
    const auto has = [](const std::vector<Variant>& variants, const Variant& variant) {
        return std::ranges::binary_search(variants, variant);
    };
    for (const Variant& variant : variants_[i]) add(variant, has(variants_[j], variant));
    for (const Variant& variant : variants_[j]) {
        if (!has(variants_[i], variant)) add(variant, false);
    }
    return prior;
}

std::vector<Call> Diplotypes::calls() const {
    std::vector<std::int64_t> positions;
    for (const auto haplotype : best_) {
        for (const Variant& variant : variants_[haplotype]) positions.push_back(record_position(variant));
    }
    std::ranges::sort(positions);
    const auto doubles = std::ranges::unique(positions);
    positions.erase(doubles.begin(), doubles.end());
    std::vector<Call> calls;
    for (const auto position : positions) calls.push_back(call_at(position));
    return calls;
}

Call Diplotypes::call_at(std::int64_t position) const {
    const Sequence contig = candidate_.sequence();
    const std::size_t count = variants_.size();

    // Alleles of the record: those of the best pair; a haplotype with something else here is of no genotype of it.
    constexpr std::int32_t other = -1;
    std::vector<Allele> alleles = {Allele{}};
    for (const auto haplotype : best_) {
        Allele allele = allele_at(position, variants_[haplotype], contig);
        if (std::ranges::find(alleles, allele) == alleles.end()) alleles.push_back(std::move(allele));
    }
    std::vector<std::int32_t> allele_of(count);
    for (std::size_t h = 0; h < count; ++h) {
        const auto found = std::ranges::find(alleles, allele_at(position, variants_[h], contig));
        allele_of[h] = found == alleles.end() ? other : static_cast<std::int32_t>(found - alleles.begin());
    }

    Call call;
    call.contig = candidate_.contig;
    call.position = position;
    std::int64_t span = 1;
    for (const Allele& allele : alleles) span = std::max(span, allele.reference);
    call.reference = contig.plain(position, position + span);
    for (std::size_t a = 1; a < alleles.size(); ++a) {
        call.alternates.push_back(alleles[a].bases +
                                  call.reference.substr(static_cast<std::size_t>(alleles[a].reference)));
    }

    const std::size_t genotypes = alleles.size() * (alleles.size() + 1) / 2;
    std::vector<Phred> likelihood(genotypes, impossible), posterior(genotypes, impossible);
    Phred nothing = impossible;
    const auto index_of = [](std::int32_t a, std::int32_t b) {
        const auto [low, high] = std::minmax(a, b);
        return static_cast<std::size_t>(high * (high + 1) / 2 + low);
    };
    for_each_pair(count, [&](std::size_t i, std::size_t j, std::size_t pair) {
        if (allele_of[i] == 0 && allele_of[j] == 0) nothing = either(nothing, posterior_[pair]);
        if (allele_of[i] == other || allele_of[j] == other) return;
        const auto g = index_of(allele_of[i], allele_of[j]);
        likelihood[g] = either(likelihood[g], posterior_[pair] - prior_of(i, j, position));
        posterior[g] = either(posterior[g], posterior_[pair]);
    });
    call.quality = std::max<Phred>(0, nothing - total_);

    const auto called = index_of(allele_of[best_[0]], allele_of[best_[1]]);
    call.genotype = {std::min(allele_of[best_[0]], allele_of[best_[1]]),
                     std::max(allele_of[best_[0]], allele_of[best_[1]])};
    Phred second = impossible;
    for (std::size_t g = 0; g < genotypes; ++g) {
        if (g != called) second = std::min(second, posterior[g]);
    }
    call.genotype_quality = static_cast<std::int32_t>(std::clamp<Phred>(to_phred(second - posterior[called]), 0, 99));
    const Phred least = std::ranges::min(likelihood);
    for (const Phred l : likelihood) {
        call.likelihoods.push_back(static_cast<std::int32_t>(std::min<Phred>(to_phred(l - least), 9999)));
    }

    call.allele_depth.assign(alleles.size(), 0);
    for (const Template& t : templates_) {
        if (t.begin > position || t.end <= position) continue;
        ++call.depth;
        std::vector<std::int32_t> best(alleles.size(), std::numeric_limits<std::int32_t>::max());
        for (std::size_t h = 0; h < count; ++h) {
            if (allele_of[h] == other) continue;
            auto& cost = best[static_cast<std::size_t>(allele_of[h])];
            cost = std::min(cost, t.costs[h]);
        }
        const auto least_cost = std::ranges::min_element(best);
        const bool alone =
            std::ranges::count_if(best, [&](std::int32_t c) { return c - *least_cost < better_by; }) == 1;
        if (alone) ++call.allele_depth[static_cast<std::size_t>(least_cost - best.begin())];
    }
    return call;
}

} // namespace

std::vector<Call> genotype(Candidate& candidate, const Priors& priors) {
    if (candidate.haplotypes.size() < 2) return {};
    return Diplotypes(candidate, priors).calls();
}

} // namespace caller
