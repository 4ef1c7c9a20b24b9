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

/// Or is it itself.
bool is_below(const Key& key, const Key& root) noexcept {
    return key.depth >= root.depth &&
           std::equal(root.ordinals.begin(), root.ordinals.begin() + root.depth, key.ordinals.begin());
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
    // Of a whole tree all is kept: what is below its root comes right after it.
    std::vector<bool> kept(places_.size());
    const Key* root = nullptr;
    for (std::size_t i = 0; i != places_.size(); ++i) {
        const Key& key = places_[i].record.key;
        if ((root == nullptr || !is_below(key, *root)) && is_whole(places_[i])) {
            root = &key;
            source_items_ += key.depth == 1 ? 1 : 0;
        }
        kept[i] = root != nullptr && is_below(key, *root);
    }
    std::size_t next = 0;
    std::erase_if(places_, [&](const Place&) { return !kept[next++]; });
    places_.shrink_to_fit();
}

std::set<std::uint32_t> FinishedItems::files() const {
    std::set<std::uint32_t> files;
    for (const Place& place : places_) files.insert(place.file);
    return files;
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
