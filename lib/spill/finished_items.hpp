// Which candidates earlier runs finished, with all that came of them, and where their results lie.
//
//     FinishedItems items;
//     items.add(file, record) ... ; items.keep_finished();
//     if (items.contains(key)) items.visit(key, on_result, on_end);
#pragma once

#include "spill/journal_file.hpp"

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

namespace spillway {

/// Thread safety: add and keep_finished by one thread, before all else; then any number of readers.
class FinishedItems {
public:
    struct Place {
        std::uint32_t file = 0;
        JournalRecord record;
    };

    /// `file` is a number of the caller's own. Of records with the same key the first counts.
    void add(std::uint32_t file, const JournalRecord& record) { places_.push_back({file, record}); }

    /// Forgets what is in no whole tree: one of a candidate whose children are all there, if it is a family, and whole.
    void keep_finished();

    /// Whether the candidate's whole tree is there.
    [[nodiscard]] bool contains(const Key& key) const noexcept { return find(key) != nullptr; }
    /// Numbers of the files that results are to be read from, or that say that there are none.
    [[nodiscard]] std::set<std::uint32_t> files() const;
    /// Source items.
    [[nodiscard]] std::uint64_t size() const noexcept { return source_items_; }

    /// The candidate's results in order, and the end of each family after its last. It must be contained.
    void visit(const Key& key, const std::function<void(const Place&)>& on_result,
               const std::function<void(const Key&)>& on_end) const {
        visit(*find(key), on_result, on_end);
    }

private:
    [[nodiscard]] const Place* find(const Key& key) const noexcept;
    [[nodiscard]] bool is_whole(const Place& place) const;
    void visit(const Place& place, const std::function<void(const Place&)>& on_result,
               const std::function<void(const Key&)>& on_end) const;

    std::vector<Place> places_; ///< By key, parents before their children.
    std::uint64_t source_items_ = 0;
};

} // namespace spillway
