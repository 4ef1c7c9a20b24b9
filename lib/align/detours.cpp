#include "align/detours.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace spillway {

namespace {

/// With more mismatches than this, aligning in the band is as fast.
constexpr std::size_t most_mismatches = 4;

class Detours {
public:
    Detours(const CodedBases& query, const CodedBases& target, std::ptrdiff_t diagonal, const Certificate& certificate,
            const Freedom& freedom)
        : query_(query), target_(target), diagonal_(diagonal), certificate_(certificate), deleted_(freedom.deleted),
          inserted_(freedom.inserted), clipped_(freedom.clipped),
          query_size_(static_cast<std::ptrdiff_t>(query.size())) {}

    [[nodiscard]] bool excluded() {
        for (std::ptrdiff_t at = 0;; ++at) {
            at += equal_after(query_.at(at), target_.at(at + diagonal_));
            if (at >= query_size_) break;
            if (count_ == most_mismatches) return false;
            mismatches_[count_++] = at;
        }
        return before_excluded() && after_excluded() && between_excluded();
    }

private:
    /// The end of the longest exact stretch from `at` on, on a diagonal `low` to `high` away.
    [[nodiscard]] std::ptrdiff_t reach_after(std::ptrdiff_t at, std::ptrdiff_t low, std::ptrdiff_t high) const {
        std::ptrdiff_t longest = 0;
        const auto target_size = static_cast<std::ptrdiff_t>(target_.size());
        const std::ptrdiff_t first = std::max(low, -(at + diagonal_));
        const std::ptrdiff_t last = std::min(high, target_size - (at + diagonal_));
        for (std::ptrdiff_t away = first; away <= last; ++away) {
            if (away != 0) longest = std::max(longest, equal_after(query_.at(at), target_.at(at + diagonal_ + away)));
        }
        return at + longest;
    }

    [[nodiscard]] std::ptrdiff_t reach_before(std::ptrdiff_t at, std::ptrdiff_t low, std::ptrdiff_t high) const {
        std::ptrdiff_t longest = 0;
        const auto target_size = static_cast<std::ptrdiff_t>(target_.size());
        const std::ptrdiff_t first = std::max(low, -(at + diagonal_));
        const std::ptrdiff_t last = std::min(high, target_size - (at + diagonal_));
        for (std::ptrdiff_t away = first; away <= last; ++away) {
            if (away != 0) longest = std::max(longest, equal_before(query_.at(at), target_.at(at + diagonal_ + away)));
        }
        return at - longest;
    }

    /// Bases of the query that what stands between two stretches can use up: a mismatch, or inserted ones.
    [[nodiscard]] std::ptrdiff_t joint() const { return std::max<std::ptrdiff_t>(1, inserted_); }

    // Before the first contact: from the query's begin, after bases clipped or inserted, over mismatches 0 to k - 1.
    // The last gap, which leads to the diagonal, may insert bases as well.
    [[nodiscard]] bool before_excluded() const {
        std::ptrdiff_t reach = clipped_ + inserted_;
        std::int64_t stretches = 0;
        for (std::size_t k = 1; k <= count_; ++k) {
            const std::int64_t budget = certificate_.most_lost(k);
            if (budget < certificate_.least_gap()) continue;
            for (; stretches < certificate_.most_events(budget); ++stretches) {
                if (stretches > 0) reach += joint();
                if (reach >= query_size_) return false;
                reach = reach_after(reach, -deleted_, inserted_);
            }
            if (reach + inserted_ > mismatches_[k - 1]) return false;
        }
        return true;
    }

    // After the last contact: the same from the query's end.
    [[nodiscard]] bool after_excluded() const {
        std::ptrdiff_t reach = query_size_ - clipped_ - inserted_;
        std::int64_t stretches = 0;
        for (std::size_t k = 1; k <= count_; ++k) {
            const std::int64_t budget = certificate_.most_lost(k);
            if (budget < certificate_.least_gap()) continue;
            for (; stretches < certificate_.most_events(budget); ++stretches) {
                if (stretches > 0) reach -= joint();
                if (reach <= 0) return false;
                reach = reach_before(reach, -inserted_, deleted_);
            }
            if (reach - inserted_ <= mismatches_[count_ - k]) return false;
        }
        return true;
    }

    // Between two contacts: over mismatches i to j, with a deletion and an insertion at least.
    [[nodiscard]] bool between_excluded() const {
        const std::ptrdiff_t drift = std::max(deleted_, inserted_);
        for (std::size_t i = 0; i < count_; ++i) {
            for (std::size_t j = i; j < count_; ++j) {
                const std::int64_t budget = certificate_.most_lost(j - i + 1);
                if (budget < certificate_.least_detour()) continue;
                std::ptrdiff_t reach = mismatches_[i] + inserted_;
                for (std::int64_t stretch = 1; stretch < certificate_.most_events(budget); ++stretch) {
                    if (stretch > 1) reach += joint();
                    if (reach >= query_size_) return false;
                    reach = reach_after(reach, -drift, drift);
                }
                if (reach + inserted_ > mismatches_[j]) return false;
            }
        }
        return true;
    }

    const CodedBases& query_;
    const CodedBases& target_;
    std::ptrdiff_t diagonal_;
    const Certificate& certificate_;
    std::ptrdiff_t deleted_, inserted_, clipped_, query_size_;
    std::array<std::ptrdiff_t, most_mismatches> mismatches_{};
    std::size_t count_ = 0;
};

} // namespace

bool detours_excluded(const CodedBases& query, const CodedBases& target, std::ptrdiff_t diagonal,
                      const Certificate& certificate, const Freedom& freedom) {
    return Detours(query, target, diagonal, certificate, freedom).excluded();
}

} // namespace spillway
