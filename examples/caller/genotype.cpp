#include "genotype.hpp"

#include "likelihoods.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <tuple>

namespace caller {

namespace {

/// A template says at most this much against a haplotype: what is in no model (a chimera, a read that belongs
/// elsewhere).
constexpr std::int32_t max_evidence_of_template = 50 * static_cast<std::int32_t>(phred_unit);

/// A variant below a diploid's share is reported if so many templates have it, with this much evidence that it is no
/// error.
constexpr std::int32_t min_low_fraction_templates = 20;
constexpr Phred min_low_fraction_quality = from_phred(60);

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
    friend bool operator==(const Allele&, const Allele&) = default;
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

/// What a record can speak of: its alleles, the reference first, and which of them each haplotype has.
struct Site {
    static constexpr std::int32_t other = -1; ///< A haplotype with something else here is of no genotype of the record.
    std::int64_t position;
    std::vector<Allele> alleles;
    std::vector<std::int32_t> allele_of;

    [[nodiscard]] std::vector<std::int32_t> best_costs(const Template& one) const {
        std::vector<std::int32_t> best(alleles.size(), std::numeric_limits<std::int32_t>::max());
        for (std::size_t h = 0; h < allele_of.size(); ++h) {
            if (allele_of[h] == other) continue;
            auto& cost = best[static_cast<std::size_t>(allele_of[h])];
            cost = std::min(cost, one.costs[h]);
        }
        return best;
    }
};

class Diplotypes {
public:
    Diplotypes(Candidate& candidate, const Priors& priors);
    [[nodiscard]] std::vector<Call> calls() const;

private:
    [[nodiscard]] Phred prior_of(std::size_t i, std::size_t j, std::int64_t position) const;
    [[nodiscard]] Site site_at(std::int64_t position, std::span<const std::size_t> haplotypes) const;
    [[nodiscard]] Call call_at(const Site& site) const;
    void weigh_genotypes(Call& call, const Site& site) const;
    void count_templates(Call& call, const Site& site) const;
    [[nodiscard]] std::optional<Call> low_fraction_call(std::int64_t position, std::size_t haplotype) const;
    [[nodiscard]] bool covers(const Template& one, const Site& site) const {
        return one.begin <= site.position && one.end > site.position;
    }

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
    std::set<std::int64_t> positions;
    for (const auto haplotype : best_) {
        for (const Variant& variant : variants_[haplotype]) positions.insert(record_position(variant));
    }
    std::vector<Call> calls;
    for (const auto position : positions) calls.push_back(call_at(site_at(position, best_)));
    for (std::size_t h = 0; h < variants_.size(); ++h) {
        for (const Variant& variant : variants_[h]) {
            const auto position = record_position(variant);
            if (!positions.insert(position).second) continue;
            if (auto call = low_fraction_call(position, h)) calls.push_back(std::move(*call));
        }
    }
    std::ranges::sort(calls, {}, &Call::position);
    return calls;
}

Site Diplotypes::site_at(std::int64_t position, std::span<const std::size_t> haplotypes) const {
    Site site{position, {Allele{}}, {}};
    for (const auto haplotype : haplotypes) {
        Allele allele = allele_at(position, variants_[haplotype], candidate_.sequence());
        if (std::ranges::find(site.alleles, allele) == site.alleles.end()) site.alleles.push_back(std::move(allele));
    }
    for (const auto& variants : variants_) {
        const auto found = std::ranges::find(site.alleles, allele_at(position, variants, candidate_.sequence()));
        site.allele_of.push_back(found == site.alleles.end() ? Site::other
                                                             : static_cast<std::int32_t>(found - site.alleles.begin()));
    }
    return site;
}

Call Diplotypes::call_at(const Site& site) const {
    Call call;
    call.contig = candidate_.contig;
    call.position = site.position;
    std::int64_t span = 1;
    for (const Allele& allele : site.alleles) span = std::max(span, allele.reference);
    call.reference = candidate_.sequence().plain(site.position, site.position + span);
    for (std::size_t a = 1; a < site.alleles.size(); ++a) {
        const Allele& allele = site.alleles[a];
        call.alternates.push_back(allele.bases + call.reference.substr(static_cast<std::size_t>(allele.reference)));
    }
    weigh_genotypes(call, site);
    count_templates(call, site);
    return call;
}

void Diplotypes::weigh_genotypes(Call& call, const Site& site) const {
    const std::size_t genotypes = site.alleles.size() * (site.alleles.size() + 1) / 2;
    std::vector<Phred> likelihood(genotypes, impossible), posterior(genotypes, impossible);
    Phred nothing = impossible;
    const auto index_of = [](std::int32_t a, std::int32_t b) {
        const auto [low, high] = std::minmax(a, b);
        return static_cast<std::size_t>(high * (high + 1) / 2 + low);
    };
    for_each_pair(variants_.size(), [&](std::size_t i, std::size_t j, std::size_t pair) {
        const auto a = site.allele_of[i], b = site.allele_of[j];
        if (a == 0 && b == 0) nothing = either(nothing, posterior_[pair]);
        if (a == Site::other || b == Site::other) return;
        const auto g = index_of(a, b);
        likelihood[g] = either(likelihood[g], posterior_[pair] - prior_of(i, j, site.position));
        posterior[g] = either(posterior[g], posterior_[pair]);
    });
    call.quality = std::max<Phred>(0, nothing - total_);

    // For a low-fraction record the best pair may have something else here: it counts as the reference.
    const auto a = std::max(0, site.allele_of[best_[0]]), b = std::max(0, site.allele_of[best_[1]]);
    call.genotype = {std::min(a, b), std::max(a, b)};
    const auto called = index_of(a, b);
    Phred second = impossible;
    for (std::size_t g = 0; g < genotypes; ++g) {
        if (g != called) second = std::min(second, posterior[g]);
    }
    call.genotype_quality = static_cast<std::int32_t>(std::clamp<Phred>(to_phred(second - posterior[called]), 0, 99));
    const Phred least = std::ranges::min(likelihood);
    for (const Phred l : likelihood) {
        call.likelihoods.push_back(static_cast<std::int32_t>(std::min<Phred>(to_phred(l - least), 9999)));
    }
}

void Diplotypes::count_templates(Call& call, const Site& site) const {
    call.allele_depth.assign(site.alleles.size(), 0);
    for (const Template& one : templates_) {
        if (!covers(one, site)) continue;
        ++call.depth;
        const auto costs = site.best_costs(one);
        const auto least = std::ranges::min_element(costs);
        const bool alone = std::ranges::count_if(costs, [&](auto cost) { return cost - *least < better_by; }) == 1;
        if (alone) ++call.allele_depth[static_cast<std::size_t>(least - costs.begin())];
    }
}

/// A variant that no genotype of a diploid fits, but that many templates have: compared are "a share f of the templates
/// has it", f as counted, and "none has".
std::optional<Call> Diplotypes::low_fraction_call(std::int64_t position, std::size_t haplotype) const {
    if (templates_.size() < static_cast<std::size_t>(min_low_fraction_templates)) return std::nullopt;
    const Site site = site_at(position, std::span(&haplotype, 1));
    Call call;
    count_templates(call, site);
    const std::int32_t with = call.allele_depth[1], without = call.allele_depth[0];
    if (with < min_low_fraction_templates) return std::nullopt;
    const Phred has = from_ratio(with, with + without), has_not = from_ratio(without, with + without);
    Phred gain = 0;
    for (const Template& one : templates_) {
        if (!covers(one, site)) continue;
        const auto costs = site.best_costs(one);
        gain += costs[0] - either(costs[0] + has_not, costs[1] + has);
    }
    if (gain < min_low_fraction_quality) return std::nullopt;
    call = call_at(site);
    call.low_fraction = true;
    call.quality = gain;
    return call;
}

} // namespace

std::vector<Call> genotype(Candidate& candidate, const Priors& priors) {
    if (candidate.haplotypes.size() < 2) return {};
    return Diplotypes(candidate, priors).calls();
}

} // namespace caller
