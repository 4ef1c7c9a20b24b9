// Which source items earlier runs finished, and where their results lie.
//
//     FinishedItems items;
//     items.add(file, record) ... ; items.keep_finished();
//     if (items.contains(ordinal)) items.visit(ordinal, on_result, on_end);
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

    /// Forgets what does not belong to an item whose whole tree is there: below each family all of its children.
    void keep_finished();

    [[nodiscard]] bool contains(std::uint64_t source_item) const noexcept;
    /// Numbers of the files that results are to be read from, or that say that there are none.
    [[nodiscard]] std::set<std::uint32_t> files() const;
    [[nodiscard]] std::uint64_t size() const noexcept { return items_.size(); }

    /// The item's results in order, and the end of each family after its last. The item must be contained.
    void visit(std::uint64_t source_item, const std::function<void(const Place&)>& on_result,
               const std::function<void(const Key&)>& on_end) const;

private:
    [[nodiscard]] const Place* find(const Key& key) const noexcept;
    [[nodiscard]] bool is_whole(const Place& place) const;
    void visit(const Place& place, const std::function<void(const Place&)>& on_result,
               const std::function<void(const Key&)>& on_end) const;

    std::vector<Place> places_;        ///< By key, parents before their children.
    std::vector<std::uint64_t> items_; ///< In order.
};

} // namespace spillway
