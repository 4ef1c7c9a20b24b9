#include "hts/sam_builder.hpp"

#include "hts/handles.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <stdexcept>

namespace spillway::test {
namespace {

void require(bool true_, const std::string& what) {
    if (!true_) throw std::runtime_error(what);
}

/// "100M" as {{100, 'M'}}.
std::vector<std::pair<std::int64_t, char>> elements(const std::string& cigar) {
    std::vector<std::pair<std::int64_t, char>> result;
    std::int64_t length = 0;
    for (const char c : cigar) {
        if (c >= '0' && c <= '9') {
            length = length * 10 + (c - '0');
        } else {
            result.emplace_back(length, c);
            length = 0;
        }
    }
    return result;
}

/// Where each base of a haplotype comes from: its reference position, or 0 where it is inserted.
struct Haplotype {
    std::string bases;
    std::vector<std::int64_t> origins;
};

Haplotype haplotype_of(const std::string& reference, const std::vector<Variant>& variants) {
    Haplotype haplotype;
    std::int64_t position = 1;
    const auto copy_to = [&](std::int64_t end) {
        for (; position < end; ++position) {
            haplotype.bases += reference.at(static_cast<std::size_t>(position - 1));
            haplotype.origins.push_back(position);
        }
    };
    for (const Variant& variant : variants) {
        copy_to(variant.position);
        const auto length = static_cast<std::int64_t>(variant.reference.size());
        require(
            reference.compare(static_cast<std::size_t>(position - 1), variant.reference.size(), variant.reference) == 0,
            "REF differs from the genome at " + std::to_string(variant.position));
        for (std::size_t i = 0; i < variant.alternate.size(); ++i) {
            haplotype.bases += variant.alternate[i];
            haplotype.origins.push_back(i < variant.reference.size() ? position + static_cast<std::int64_t>(i) : 0);
        }
        position += length;
    }
    copy_to(static_cast<std::int64_t>(reference.size()) + 1);
    return haplotype;
}

/// POS and CIGAR of bases [begin, begin + length) of a haplotype; inserted bases at the ends are soft-clipped.
std::pair<std::int64_t, std::string> alignment_of(const Haplotype& haplotype, std::size_t begin, std::size_t length) {
    std::size_t first = begin, last = begin + length;
    while (first < last && haplotype.origins[first] == 0) ++first;
    while (last > first && haplotype.origins[last - 1] == 0) --last;
    std::vector<std::pair<std::int64_t, char>> cigar;
    const auto append = [&](std::int64_t count, char operation) {
        if (count == 0) return;
        if (!cigar.empty() && cigar.back().second == operation)
            cigar.back().first += count;
        else
            cigar.emplace_back(count, operation);
    };
    append(static_cast<std::int64_t>(first - begin), 'S');
    std::int64_t previous = haplotype.origins[first] - 1;
    for (std::size_t i = first; i < last; ++i) {
        if (haplotype.origins[i] == 0) {
            append(1, 'I');
            continue;
        }
        append(haplotype.origins[i] - previous - 1, 'D');
        append(1, 'M');
        previous = haplotype.origins[i];
    }
    append(static_cast<std::int64_t>(begin + length - last), 'S');
    std::string text;
    for (const auto& [count, operation] : cigar) text += std::to_string(count) + operation;
    return {haplotype.origins[first], text};
}

} // namespace

Genome& Genome::add(std::string name, std::string bases) {
    contigs_.push_back({std::move(name), std::move(bases)});
    return *this;
}

Genome& Genome::random(std::string name, std::size_t length, std::uint64_t seed) {
    constexpr std::size_t k = 12;
    std::mt19937_64 generator(seed);
    std::string bases;
    std::set<std::string> seen;
    while (bases.size() < length) {
        bases += "ACGT"[generator() >> 62];
        if (bases.size() >= k && !seen.insert(bases.substr(bases.size() - k)).second) bases.pop_back();
    }
    return add(std::move(name), std::move(bases));
}

const std::string& Genome::bases(const std::string& contig) const {
    for (const Contig& c : contigs_)
        if (c.name == contig) return c.bases;
    throw std::runtime_error("no contig " + contig);
}

char Genome::at(const std::string& contig, std::int64_t position) const {
    return bases(contig).at(static_cast<std::size_t>(position - 1));
}

std::string Genome::slice(const std::string& contig, std::int64_t from, std::int64_t to) const {
    return bases(contig).substr(static_cast<std::size_t>(from - 1), static_cast<std::size_t>(to - from + 1));
}

std::vector<Variant> Genome::snvs(const std::string& contig, std::int64_t from, std::int64_t to,
                                  std::int64_t step) const {
    std::vector<Variant> variants;
    for (std::int64_t at = from; at <= to; at += step)
        variants.push_back({contig, at, std::string(1, this->at(contig, at)), std::string(1, other(contig, at))});
    return variants;
}

char Genome::other(const std::string& contig, std::int64_t position) const {
    switch (at(contig, position)) {
    case 'A':
        return 'G';
    case 'C':
        return 'T';
    case 'G':
        return 'A';
    default:
        return 'C';
    }
}

std::string Genome::write(const TemporaryDirectory& directory, const std::string& name) const {
    constexpr std::size_t width = 60;
    std::string text;
    for (const Contig& contig : contigs_) {
        text += ">" + contig.name + "\n";
        for (std::size_t at = 0; at < contig.bases.size(); at += width) text += contig.bases.substr(at, width) + "\n";
    }
    const std::string path = directory.write(name, text);
    require(fai_build(path.c_str()) == 0, "indexing " + path);
    return path;
}

SamBuilder& SamBuilder::read_group(std::string id, std::string sample) {
    return header_line("@RG\tID:" + id + (sample.empty() ? "" : "\tSM:" + sample));
}

SamBuilder& SamBuilder::sort_order(std::string order) {
    order_ = std::move(order);
    return *this;
}

SamBuilder& SamBuilder::keep_order() {
    sorted_ = false;
    return *this;
}

SamBuilder& SamBuilder::header_line(std::string line) {
    header_lines_.push_back(std::move(line));
    return *this;
}

void SamBuilder::add(const std::string& contig, std::int64_t position, std::string text) {
    std::size_t index = genome_.contigs().size();
    for (std::size_t i = 0; i < genome_.contigs().size(); ++i)
        if (genome_.contigs()[i].name == contig) index = i;
    lines_.push_back({index, position, std::move(text)});
}

SamBuilder& SamBuilder::read(const ReadSpec& spec) {
    std::string bases = spec.bases;
    if (bases.empty()) {
        std::int64_t position = spec.position;
        for (const auto& [length, operation] : elements(spec.cigar)) {
            for (std::int64_t i = 0; i < length; ++i) {
                if (operation == 'M' || operation == '=' || operation == 'X') {
                    const std::string& reference = genome_.bases(spec.contig);
                    const auto at = static_cast<std::size_t>(position - 1);
                    char base = at < reference.size() ? reference[at] : spec.filling;
                    for (const auto& [place, alternate] : spec.snvs)
                        if (place == position) base = alternate;
                    bases += base;
                    ++position;
                } else if (operation == 'I' || operation == 'S') {
                    bases += spec.filling;
                } else if (operation == 'D' || operation == 'N') {
                    ++position;
                }
            }
        }
        if (bases.empty()) bases = "*";
    }
    std::string qualities = spec.qualities;
    if (qualities.empty()) qualities = bases == "*" ? "*" : std::string(bases.size(), spec.quality);
    std::string text = spec.name + "\t" + std::to_string(spec.flags) + "\t" + spec.contig + "\t" +
                       std::to_string(spec.position) + "\t" + std::to_string(spec.mapping_quality) + "\t" + spec.cigar +
                       "\t" + spec.mate_contig + "\t" + std::to_string(spec.mate_position) + "\t0\t" + bases + "\t" +
                       qualities;
    if (!spec.read_group.empty()) text += "\tRG:Z:" + spec.read_group;
    add(spec.contig, spec.position, std::move(text));
    return *this;
}

SamBuilder& SamBuilder::cover(const std::string& contig, const Coverage& coverage,
                              const std::vector<std::vector<Variant>>& haplotypes) {
    for (std::size_t h = 0; h < haplotypes.size(); ++h) {
        const Haplotype haplotype = haplotype_of(genome_.bases(contig), haplotypes[h]);
        const auto length = static_cast<std::size_t>(coverage.length);
        std::size_t ordinal = 0;
        for (std::size_t begin = 0; begin + length <= haplotype.bases.size();) {
            // What lies well before needs no CIGAR to be passed over.
            if (haplotype.origins[begin] != 0 && haplotype.origins[begin] < coverage.from) {
                ++begin;
                continue;
            }
            const auto [position, cigar] = alignment_of(haplotype, begin, length);
            if (position < coverage.from) {
                ++begin;
                continue;
            }
            if (haplotype.origins[begin + length - 1] > coverage.to) break;
            read({.name = "h" + std::to_string(h) + "." + std::to_string(ordinal),
                  .contig = contig,
                  .position = position,
                  .cigar = cigar,
                  .bases = haplotype.bases.substr(begin, length),
                  .quality = coverage.quality,
                  .flags = ordinal % 4 >= 2 ? 16 : 0,
                  .read_group = coverage.read_group});
            ++ordinal;
            begin += static_cast<std::size_t>(coverage.step);
        }
    }
    return *this;
}

std::string SamBuilder::text() const {
    std::string text = "@HD\tVN:1.6\tSO:" + order_ + "\n";
    for (const Genome::Contig& contig : genome_.contigs())
        text += "@SQ\tSN:" + contig.name + "\tLN:" + std::to_string(contig.bases.size()) + "\n";
    for (const std::string& line : header_lines_) text += line + "\n";
    std::vector<const Line*> order;
    for (const Line& line : lines_) order.push_back(&line);
    if (sorted_)
        std::stable_sort(order.begin(), order.end(), [](const Line* a, const Line* b) {
            return std::pair(a->contig, a->position) < std::pair(b->contig, b->position);
        });
    for (const Line* line : order) text += line->text + "\n";
    return text;
}

std::string SamBuilder::sam(const TemporaryDirectory& directory, const std::string& name) const {
    return directory.write(name, text());
}

std::string SamBuilder::bam(const TemporaryDirectory& directory, const std::string& name) const {
    convert_sam(sam(directory, name + ".sam"), directory.file(name), {}, sorted_);
    return directory.file(name);
}

std::string SamBuilder::cram(const TemporaryDirectory& directory, const std::string& name, const std::string& fasta,
                             int reads_in_slice) const {
    convert_sam(sam(directory, name + ".sam"), directory.file(name), fasta, sorted_, reads_in_slice);
    return directory.file(name);
}

void convert_sam(const std::string& sam, const std::string& target, const std::string& fasta, bool index,
                 int reads_in_slice) {
    const hts::File in(hts_open(sam.c_str(), "r"));
    const bool to_cram = target.ends_with(".cram");
    hts::File out(hts_open(target.c_str(), to_cram ? "wc" : "wb"));
    require(in && out, "opening " + sam + " or " + target);
    if (to_cram) require(hts_set_fai_filename(out.get(), fasta.c_str()) == 0, "setting " + fasta);
    if (reads_in_slice > 0)
        require(hts_set_opt(out.get(), CRAM_OPT_SEQS_PER_SLICE, reads_in_slice) == 0, "cutting slices of " + target);
    const hts::Header header(sam_hdr_read(in.get()));
    require(header && sam_hdr_write(out.get(), header.get()) == 0, "writing the header of " + target);
    const std::string index_path = target + (to_cram ? ".crai" : ".bai");
    if (index) require(sam_idx_init(out.get(), header.get(), 0, index_path.c_str()) == 0, "indexing " + target);
    const hts::Record record(bam_init1());
    int got = 0;
    while ((got = sam_read1(in.get(), header.get(), record.get())) >= 0)
        require(sam_write1(out.get(), header.get(), record.get()) >= 0, "writing a record to " + target);
    require(got == -1, "reading " + sam);
    if (index) require(sam_idx_save(out.get()) == 0, "saving " + index_path);
    require(hts_close(out.release()) == 0, "closing " + target);
}

} // namespace spillway::test
