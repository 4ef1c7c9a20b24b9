#include "spill/finished_items.hpp"

#include <algorithm>

namespace spillway {
namespace {

Key child(const Key& parent, std::uint64_t ordinal) noexcept {
    Key key = parent;
    key.ordinals[key.depth++] = ordinal;
    return key;
}

bool before(const Key& a, const Key& b) noexcept {
    return a.ordinals != b.ordinals ? a.ordinals < b.ordinals : a.depth < b.depth;
}

} // namespace

const FinishedItems::Place* FinishedItems::find(const Key& key) const noexcept {
    const auto at = std::lower_bound(places_.begin(), places_.end(), key, [](const Place& place, const Key& wanted) {
        return before(place.record.key, wanted);
    });
    return at != places_.end() && at->record.key == key ? &*at : nullptr;
}

bool FinishedItems::is_whole(const Place& place) const {
    if (place.record.kind != JournalKind::family) return true;
    // However many it claims: it ends at the first child that is missing.
    for (std::uint64_t i = 0; i < place.record.children; ++i) {
        const Place* const found = find(child(place.record.key, i));
        if (found == nullptr || !is_whole(*found)) return false;
    }
    return true;
}

void FinishedItems::keep_finished() {
    // Stable: of those with the same key the first added stays first.
    std::stable_sort(places_.begin(), places_.end(),
                     [](const Place& a, const Place& b) { return before(a.record.key, b.record.key); });
    places_.erase(std::unique(places_.begin(), places_.end(),
                              [](const Place& a, const Place& b) { return a.record.key == b.record.key; }),
                  places_.end());
    for (const Place& place : places_) {
        if (place.record.key.depth == 1 && is_whole(place)) items_.push_back(place.record.key.ordinals[0]);
    }
    std::erase_if(places_, [&](const Place& place) { return !contains(place.record.key.ordinals[0]); });
    places_.shrink_to_fit();
}

std::set<std::uint32_t> FinishedItems::files() const {
    std::set<std::uint32_t> files;
    for (const Place& place : places_) files.insert(place.file);
    return files;
}

bool FinishedItems::contains(std::uint64_t source_item) const noexcept {
    return std::binary_search(items_.begin(), items_.end(), source_item);
}

void FinishedItems::visit(std::uint64_t source_item, const std::function<void(const Place&)>& on_result,
                          const std::function<void(const Key&)>& on_end) const {
    Key key;
    key.ordinals[0] = source_item;
    key.depth = 1;
    visit(*find(key), on_result, on_end);
}

void FinishedItems::visit(const Place& place, const std::function<void(const Place&)>& on_result,
                          const std::function<void(const Key&)>& on_end) const {
    if (place.record.kind == JournalKind::result) on_result(place);
    if (place.record.kind != JournalKind::family) return;
    for (std::uint64_t i = 0; i < place.record.children; ++i)
        visit(*find(child(place.record.key, i)), on_result, on_end);
    on_end(place.record.key);
}

} // namespace spillway
