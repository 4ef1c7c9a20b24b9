#include "assembly.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

namespace caller {

namespace {

/// Tried in turn; a longer one tells apart what a shorter one confuses. 31 bases are what a word holds.
constexpr std::array<std::size_t, 2> kmer_sizes = {25, 31};

/// K-mers with a worse base are not trusted.
constexpr std::uint8_t min_quality = 10;

/// A k-mer beside the reference is followed if so many reads have it, and so many of 1000 of the mean depth.
constexpr std::uint32_t min_support = 2;
constexpr std::uint64_t min_support_share = 60;

/// What bounds the search in a graph that is all branches.
constexpr std::size_t max_steps = 20'000;
constexpr std::size_t max_growth = 400;

int code(char base) {
    switch (base) {
    case 'A':
        return 0;
    case 'C':
        return 1;
    case 'G':
        return 2;
    case 'T':
        return 3;
    default:
        return -1;
    }
}

/// Calls `visit(k-mer, position)` for each stretch of k known, trusted bases.
template <class Visit>
void for_each_kmer(std::string_view bases, std::span<const std::uint8_t> qualities, std::size_t k, Visit&& visit) {
    const std::uint64_t mask = (std::uint64_t{1} << 2 * k) - 1;
    std::uint64_t kmer = 0;
    std::size_t good = 0;
    for (std::size_t i = 0; i < bases.size(); ++i) {
        const int next = code(bases[i]);
        if (next < 0 || (!qualities.empty() && qualities[i] < min_quality)) {
            good = 0;
            continue;
        }
        kmer = (kmer << 2 | static_cast<std::uint64_t>(next)) & mask;
        if (++good >= k) visit(kmer, i + 1 - k);
    }
}

struct Path {
    std::uint32_t weakest; ///< Least support of its k-mers beside the reference.
    std::string bases;
};

class Graph {
public:
    Graph(std::string_view reference, std::span<const AssemblyRead> reads, std::size_t k)
        : reference_(reference), k_(k) {
        std::uint64_t total = 0;
        for (const AssemblyRead& read : reads) {
            for_each_kmer(read.bases, read.qualities, k, [&](std::uint64_t kmer, std::size_t) {
                ++support_[kmer];
                ++total;
            });
        }
        // Reads overlap the stretch in part only: this is a low estimate of depth, which is what a threshold wants.
        const std::uint64_t depth = total / std::max<std::size_t>(1, reference.size() + 2 * 100);
        threshold_ = std::max(min_support, static_cast<std::uint32_t>(depth * min_support_share / 1000));
    }

    /// None where the reference is ambiguous at this k.
    std::optional<std::vector<Path>> paths() {
        std::size_t kmers = 0;
        for_each_kmer(reference_, {}, k_, [&](std::uint64_t kmer, std::size_t) {
            ++kmers;
            on_reference_.emplace(kmer, false);
            last_ = kmer;
        });
        if (kmers != reference_.size() + 1 - k_ || on_reference_.size() != kmers) return std::nullopt;
        std::uint64_t first = 0;
        for (std::size_t i = 0; i < k_; ++i) first = first << 2 | static_cast<std::uint64_t>(code(reference_[i]));
        bases_ = std::string(reference_.substr(0, k_));
        visited_.emplace(first, true);
        walk(first, ~std::uint32_t{0});
        if (steps_ > max_steps) return std::nullopt;
        return std::move(found_);
    }

private:
    void walk(std::uint64_t kmer, std::uint32_t weakest) {
        if (kmer == last_) {
            if (bases_ != reference_) found_.push_back({weakest, bases_});
            return;
        }
        if (++steps_ > max_steps || bases_.size() > reference_.size() + max_growth) return;
        const std::uint64_t mask = (std::uint64_t{1} << 2 * k_) - 1;
        for (std::uint64_t base = 0; base < 4; ++base) {
            const std::uint64_t next = (kmer << 2 | base) & mask;
            const bool reference = on_reference_.contains(next);
            const auto support = support_.find(next);
            const std::uint32_t reads = support == support_.end() ? 0 : support->second;
            if (!reference && reads < threshold_) continue;
            if (!visited_.emplace(next, true).second) continue; // A loop: no path of ours goes round it.
            bases_.push_back("ACGT"[base]);
            walk(next, reference ? weakest : std::min(weakest, reads));
            bases_.pop_back();
            visited_.erase(next);
        }
    }

    std::string_view reference_;
    std::size_t k_;
    std::uint32_t threshold_ = min_support;
    std::unordered_map<std::uint64_t, std::uint32_t> support_;
    std::unordered_map<std::uint64_t, bool> on_reference_, visited_;
    std::uint64_t last_ = 0;
    std::string bases_;
    std::size_t steps_ = 0;
    std::vector<Path> found_;
};

} // namespace

std::vector<std::string> assemble(std::string_view reference, std::span<const AssemblyRead> reads) {
    for (const std::size_t k : kmer_sizes) {
        if (reference.size() < 2 * k) continue;
        auto paths = Graph(reference, reads, k).paths();
        if (!paths) continue;
        std::ranges::sort(*paths, [](const Path& a, const Path& b) {
            return a.weakest != b.weakest ? a.weakest > b.weakest : a.bases < b.bases;
        });
        std::vector<std::string> sequences;
        for (Path& path : *paths) {
            if (sequences.size() < max_assembled) sequences.push_back(std::move(path.bases));
        }
        return sequences;
    }
    return {};
}

} // namespace caller
