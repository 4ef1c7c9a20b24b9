#include "haplotypes.hpp"

#include "assembly.hpp"
#include "likelihoods.hpp"

#include "spillway/align.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

namespace caller {

using spillway::hts::Read;

namespace {

/// A template with so many differences in one window is worth a second look; a clipped one too.
constexpr int many_differences = 3;

/// Reference on both sides of the slice that assembly starts from and ends at: no less than a k-mer with the flank.
constexpr std::int64_t assembly_margin = 25;

/// Reads that are assembled; more show nothing new.
constexpr std::size_t max_assembly_reads = 1000;

/// Reads of a window, at most `most` of them: those with the smallest hash of their name, so that mates stay
/// together and the choice does not depend on the file.
std::vector<const Read*> capped(std::vector<const Read*> reads, std::size_t most) {
    if (reads.size() <= most) return reads;
    std::vector<std::uint64_t> hashes;
    for (const Read* read : reads) hashes.push_back(read->name_hash);
    std::ranges::nth_element(hashes, hashes.begin() + static_cast<std::ptrdiff_t>(most));
    const std::uint64_t limit = hashes[most];
    std::erase_if(reads, [&](const Read* read) { return read->name_hash >= limit; });
    return reads;
}

void add_query(Candidate& candidate, const Read& read, const Window& window) {
    const std::int64_t slice_begin = window.slice_begin(), slice_end = window.slice_end();
    std::int64_t at = read.begin, query = 0;
    std::int64_t first = -1, last = -1, begin = 0, end = 0;
    for (const auto element : read.cigar) {
        const auto operation = cigar::operation(element);
        const std::int64_t length = cigar::length(element);
        if (operation == spillway::hts::cigar_match && at < slice_end && at + length > slice_begin) {
            if (first < 0) {
                begin = std::max(at, slice_begin);
                first = query + begin - at;
            }
            end = std::min(at + length, slice_end);
            last = query + end - at;
        }
        // An intron across the slice's evidence: the read says nothing about it.
        if (operation == spillway::hts::cigar_skip && at < window.end && at + length > window.begin) return;
        if (cigar::takes_read(operation)) query += length;
        if (cigar::takes_reference(operation)) at += length;
    }
    if (first < 0) return;
    // Clipped ends may be what an aligner could not place, such as an insertion near the read's end.
    const auto clip = [](std::uint32_t element) {
        return cigar::operation(element) == spillway::hts::cigar_soft_clip ? cigar::length(element) : 0;
    };
    const auto size = static_cast<std::int64_t>(read.bases.size());
    const std::int64_t left = clip(read.cigar.front()), right = clip(read.cigar.back());
    const bool cut_left = first > left && begin == slice_begin, cut_right = last < size - right && end == slice_end;
    if (left == first && begin > slice_begin) {
        const auto taken = std::min(left, begin - slice_begin);
        first -= taken;
        begin -= taken;
    }
    if (size - right == last && end < slice_end) {
        const auto taken = std::min(right, slice_end - end);
        last += taken;
        end += taken;
    }
    if (end <= window.begin || begin >= window.end) return;
    const auto from = static_cast<std::size_t>(first), count = static_cast<std::size_t>(last - first);
    candidate.queries.push_back({.name_hash = read.name_hash,
                                 .begin = begin,
                                 .end = end,
                                 .first = static_cast<std::uint32_t>(candidate.read_bases.size()),
                                 .size = static_cast<std::uint32_t>(count),
                                 .mapping_quality = read.mapping_quality,
                                 .cut_left = cut_left,
                                 .cut_right = cut_right});
    candidate.read_bases.append(read.bases.data() + from, count);
    const auto qualities = read.qualities.subspan(from, count);
    candidate.read_qualities.insert(candidate.read_qualities.end(), qualities.begin(), qualities.end());
}

/// One event in one template.
struct Sighting {
    Variant variant;
    std::uint64_t name_hash;
    friend auto operator<=>(const Sighting&, const Sighting&) = default;
};

/// An event and how far it could move to the right: only reads that span all of that can show its absence.
struct Event {
    Variant variant;
    std::int64_t end;
};

bool covers(const Read& read, const Event& event) {
    return read.begin <= event.variant.position && read.end > event.end;
}

std::vector<Sighting> sightings_of(const Window& window, const EvidenceRules& rules) {
    std::vector<Sighting> sightings;
    for (const Read* read : window.reads) {
        if (read->mapping_quality < rules.min_mapping_quality) continue;
        for_each_difference(*read, Sequence(*window.reference), [&](const Difference& d) {
            const std::int64_t begin = d.position - (d.deleted == 0 ? 1 : 0);
            if (d.quality < rules.min_base_quality || begin < window.begin || d.position + d.deleted > window.end)
                return;
            sightings.push_back({{d.position, d.deleted, std::string(d.inserted)}, read->name_hash});
        });
    }
    std::ranges::sort(sightings);
    sightings.erase(std::unique(sightings.begin(), sightings.end()), sightings.end());
    return sightings;
}

std::vector<Event> events_of(const Window& window, const std::vector<Sighting>& sightings, const EvidenceRules& rules) {
    std::vector<std::pair<std::int64_t, Event>> supported;
    for (auto first = sightings.begin(); first != sightings.end();) {
        const auto last =
            std::find_if(first, sightings.end(), [&](const Sighting& s) { return s.variant != first->variant; });
        const auto templates = static_cast<std::int64_t>(last - first);
        if (templates >= rules.min_templates) {
            Event event{first->variant, first->variant.end()};
            if (!event.variant.is_substitution()) {
                event.end += right_freedom(event.variant.position, event.variant.deleted, event.variant.inserted,
                                           Sequence(*window.reference));
            }
            const auto depth = std::ranges::count_if(window.reads, [&](const Read* read) {
                return read->mapping_quality >= rules.min_mapping_quality && covers(*read, event);
            });
            if (rules.enough(templates, depth, rules.min_share_spanning))
                supported.emplace_back(-templates, std::move(event));
        }
        first = last;
    }
    std::ranges::sort(supported, [](const auto& a, const auto& b) {
        return std::tie(a.first, a.second.variant) < std::tie(b.first, b.second.variant);
    });
    if (supported.size() > max_events) supported.resize(max_events);
    std::vector<Event> events;
    for (auto& [templates, event] : supported) events.push_back(std::move(event));
    std::ranges::sort(events, {}, &Event::variant);
    return events;
}

/// What one template shows of the events: bit e of `seen` is set where it covers event e, of `carried` where it has it.
struct Sample {
    std::uint64_t name_hash;
    std::uint32_t seen;
    std::uint32_t carried;
};

std::vector<Sample> samples_of(const Window& window, const std::vector<Event>& events,
                               const std::vector<Sighting>& sightings, const EvidenceRules& rules) {
    std::vector<Sample> samples;
    for (const Read* read : window.reads) {
        if (read->mapping_quality < rules.min_mapping_quality) continue;
        std::uint32_t seen = 0;
        for (std::size_t e = 0; e < events.size(); ++e) seen |= covers(*read, events[e]) ? 1U << e : 0U;
        samples.push_back({read->name_hash, seen, 0});
    }
    std::ranges::sort(samples, {}, &Sample::name_hash);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        if (kept > 0 && samples[kept - 1].name_hash == samples[i].name_hash) {
            samples[kept - 1].seen |= samples[i].seen;
        } else {
            samples[kept++] = samples[i];
        }
    }
    samples.resize(kept);
    for (const Sighting& sighting : sightings) {
        const auto event = std::ranges::lower_bound(events, sighting.variant, {}, &Event::variant);
        if (event == events.end() || event->variant != sighting.variant) continue;
        const auto sample = std::ranges::lower_bound(samples, sighting.name_hash, {}, &Sample::name_hash);
        const auto bit = 1U << (event - events.begin());
        sample->seen |= bit;
        sample->carried |= bit;
    }
    return samples;
}

bool compatible_after(const Variant& previous, const Variant& next) {
    if (next.position < previous.end()) return false;
    return next.position > previous.position; // two insertions, or an insertion and a deletion, at one place
}

/// All subsets of events that can stand on one haplotype, as bits, the empty one first.
std::vector<std::uint32_t> combinations(const std::vector<Event>& events) {
    std::vector<std::uint32_t> found = {0};
    for (std::size_t e = 0; e < events.size(); ++e) {
        const std::size_t before = found.size();
        for (std::size_t i = 0; i < before; ++i) {
            const auto last = found[i] == 0 ? -1 : 31 - std::countl_zero(found[i]);
            if (last < 0 || compatible_after(events[static_cast<std::size_t>(last)].variant, events[e].variant)) {
                found.push_back(found[i] | 1U << e);
            }
        }
    }
    return found;
}

/// All combinations, or those that templates agree with most, a template counting by how many events it sees.
std::vector<std::uint32_t> combinations_of(const std::vector<Event>& events, const std::vector<Sample>& samples) {
    auto masks = combinations(events);
    if (masks.size() <= max_haplotypes) return masks;
    std::vector<std::pair<std::int64_t, std::uint32_t>> ranked;
    for (const auto mask : masks) {
        std::int64_t support = 0;
        for (const Sample& sample : samples) {
            if (((sample.carried ^ mask) & sample.seen) == 0) support += std::popcount(sample.seen);
        }
        ranked.emplace_back(mask == 0 ? std::numeric_limits<std::int64_t>::min() : -support, mask);
    }
    std::ranges::sort(ranked);
    ranked.resize(max_haplotypes);
    masks.clear();
    for (const auto& [support, mask] : ranked) masks.push_back(mask);
    return masks;
}

/// Whether enough templates look as if their alignment hides something: clipped here, or with several differences.
bool puzzling(const Window& window, const std::vector<Sighting>& sightings, const EvidenceRules& rules) {
    std::vector<std::uint64_t> names;
    for (const Sighting& sighting : sightings) names.push_back(sighting.name_hash);
    std::int64_t depth = 0;
    for (const Read* read : window.reads) {
        if (read->mapping_quality < rules.min_mapping_quality) continue;
        depth += read->begin < window.end && read->end > window.begin ? 1 : 0;
        for_each_clip(*read, rules, [&](std::int64_t position, bool) {
            if (position < window.slice_begin() || position > window.slice_end()) return;
            for (int i = 0; i < many_differences; ++i) names.push_back(read->name_hash);
        });
    }
    std::ranges::sort(names);
    std::int64_t templates = 0;
    for (auto first = names.begin(); first != names.end();) {
        const auto last = std::upper_bound(first, names.end(), *first);
        templates += last - first >= many_differences ? 1 : 0;
        first = last;
    }
    return rules.enough(templates, depth, rules.min_share_spanning);
}

/// Variants of what the window's reads spell when put together.
std::vector<std::vector<Variant>> assembled_variants(const Window& window, const EvidenceRules& rules) {
    const Sequence contig(*window.reference);
    const std::int64_t slice_begin = window.slice_begin(), slice_end = window.slice_end();
    const std::int64_t begin = std::max<std::int64_t>(0, slice_begin - assembly_margin);
    const std::int64_t end = std::min(contig.size(), slice_end + assembly_margin);
    std::vector<AssemblyRead> reads;
    for (const Read* read : capped(window.reads, max_assembly_reads)) {
        if (read->mapping_quality < rules.min_mapping_quality) continue;
        reads.push_back({std::string_view(read->bases.data(), read->bases.size()), read->qualities});
    }
    const std::string stretch = contig.plain(begin, end), slice = contig.plain(slice_begin, slice_end);
    const std::string_view before = std::string_view(stretch).substr(0, static_cast<std::size_t>(slice_begin - begin));
    const std::string_view after = std::string_view(stretch).substr(before.size() + slice.size());
    std::vector<std::vector<Variant>> found;
    for (std::string& path : assemble(stretch, reads)) {
        // What differs beside the slice is another window's.
        if (path.size() < stretch.size() - slice.size() || !path.starts_with(before) || !path.ends_with(after))
            continue;
        const std::string haplotype = path.substr(before.size(), path.size() - before.size() - after.size());
        if (haplotype.empty()) continue;
        const auto alignment = spillway::align(haplotype, slice, alignment_scores, spillway::Span::query);
        found.push_back(variants_of(haplotype, alignment, slice_begin, contig));
    }
    return found;
}

/// The slice with the variants in it; none if they do not fit on one sequence.
std::optional<Haplotype> build(const Candidate& candidate, const std::vector<Variant>& variants,
                               std::int64_t slice_end) {
    const Sequence contig = candidate.sequence();
    Haplotype haplotype;
    std::int64_t at = candidate.slice_begin;
    for (const Variant& variant : variants) {
        if (variant.position < at || variant.end() > slice_end) return std::nullopt;
        haplotype.bases += contig.plain(at, variant.position) + variant.inserted;
        const auto event = std::ranges::lower_bound(candidate.events, variant);
        haplotype.events.push_back(static_cast<std::uint16_t>(event - candidate.events.begin()));
        at = variant.end();
    }
    haplotype.bases += contig.plain(at, slice_end);
    return haplotype;
}

} // namespace

Candidate make_candidate(const Window& window, const EvidenceRules& rules) {
    Candidate candidate;
    candidate.contig = window.contig;
    candidate.contig_size = static_cast<std::int64_t>(window.reference->size());
    candidate.begin = window.begin;
    candidate.end = window.end;
    candidate.slice_begin = window.slice_begin();
    candidate.reference_begin = std::max<std::int64_t>(0, window.slice_begin() - max_shift - 1);
    const auto reference_end = std::min(candidate.contig_size, window.slice_end() + 1);
    candidate.reference = window.reference->substr(static_cast<std::size_t>(candidate.reference_begin),
                                                   static_cast<std::size_t>(reference_end - candidate.reference_begin));

    const auto sightings = sightings_of(window, rules);
    const auto events = events_of(window, sightings, rules);
    std::vector<std::vector<Variant>> combined;
    for (const auto mask : combinations_of(events, samples_of(window, events, sightings, rules))) {
        combined.emplace_back();
        for (std::size_t e = 0; e < events.size(); ++e) {
            if ((mask >> e & 1U) != 0) combined.back().push_back(events[e].variant);
        }
    }
    if (puzzling(window, sightings, rules)) {
        for (auto& variants : assembled_variants(window, rules)) combined.push_back(std::move(variants));
    }
    for (const auto& variants : combined)
        candidate.events.insert(candidate.events.end(), variants.begin(), variants.end());
    std::ranges::sort(candidate.events);
    candidate.events.erase(std::unique(candidate.events.begin(), candidate.events.end()), candidate.events.end());
    for (const auto& variants : combined) {
        auto built = build(candidate, variants, window.slice_end());
        if (!built) continue;
        Haplotype& haplotype = *built;
        // Different events may spell one sequence: it stands once, with the fewest events.
        const auto same = std::ranges::find(candidate.haplotypes, haplotype.bases, &Haplotype::bases);
        if (same == candidate.haplotypes.end()) {
            candidate.haplotypes.push_back(std::move(haplotype));
        } else if (haplotype.events.size() < same->events.size()) {
            *same = std::move(haplotype);
        }
    }
    for (const Read* read : capped(window.reads, max_reads)) add_query(candidate, *read, window);
    return candidate;
}

std::int64_t place_on(const Candidate& candidate, const Haplotype& haplotype, std::int64_t position, bool after) {
    std::int64_t place = position - candidate.slice_begin;
    for (const auto e : haplotype.events) {
        const Variant& event = candidate.events[e];
        if (after ? event.end() <= position : event.position < position) {
            place += static_cast<std::int64_t>(event.inserted.size()) - event.deleted;
        }
    }
    return place;
}

} // namespace caller
