// What a stage meets of a candidate: its key, and the parent that it shares with its family.
//
//     spillway::generator<Site> sites_of(spillway::shared<Region> region);       // one region, read once
//     struct Site { int position; spillway::shared<Region> region; };           // every site looks into it
//     ... site.region->reads ...
#pragma once

#include "spillway/codec.hpp"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

namespace spillway {

/// Most levels of a key: one for the source and one for each fan-out below it.
inline constexpr std::size_t max_key_depth = 4;

/// The place of a candidate in the order of the output: source ordinal, then one ordinal for each fan-out.
/// A plain value; keys of one stage have the same depth and compare as paths.
struct Key {
    std::array<std::uint64_t, max_key_depth> ordinals{};
    std::uint32_t depth = 0; ///< How many ordinals count.

    friend auto operator<=>(const Key& a, const Key& b) noexcept { return a.ordinals <=> b.ordinals; }
    friend bool operator==(const Key& a, const Key& b) noexcept {
        return a.ordinals == b.ordinals && a.depth == b.depth;
    }
};

/// "17.3": for messages.
[[nodiscard]] std::string to_string(const Key& key);

namespace detail {

/// How the type-erased core treats the payloads of one type.
struct PayloadType {
    bool plain;                                           ///< Owns no heap: its slot is all that it takes.
    void (*destroy)(void* object, bool on_heap) noexcept; ///< None: nothing to do.
    std::size_t (*footprint)(const void* object);         ///< Heap bytes, an estimate.
    void (*encode)(Writer& out, const void* object);
    void (*decode)(Reader& in, class Payload& payload); ///< Into an empty payload.
};

/// One object of any type: inside the slot where it is small, else on the heap. In memory it stays the object it is.
class Payload {
public:
    static constexpr std::size_t inline_bytes = 32;

    Payload() = default;
    Payload(const Payload&) = delete;
    Payload& operator=(const Payload&) = delete;
    ~Payload() { reset(); }

    template <class T, class... Arguments>
    T& emplace(Arguments&&... arguments);

    template <class T>
    [[nodiscard]] T& as() noexcept {
        return *static_cast<T*>(object_);
    }

    template <class T>
    [[nodiscard]] const T& as() const noexcept {
        return *static_cast<const T*>(object_);
    }

    void reset() noexcept {
        if (object_ != nullptr && type_->destroy != nullptr)
            type_->destroy(object_, object_ != static_cast<void*>(storage_));
        object_ = nullptr;
    }

    [[nodiscard]] void* object() const noexcept { return object_; }
    [[nodiscard]] const PayloadType* type() const noexcept { return type_; }

private:
    void* object_ = nullptr;
    const PayloadType* type_ = nullptr;
    alignas(16) std::byte storage_[inline_bytes];
};

template <class T>
inline constexpr bool fits_inline = sizeof(T) <= Payload::inline_bytes && alignof(T) <= 16;

template <class T>
inline const PayloadType payload_type{
    .plain = is_plain<T>,
    .destroy = std::is_trivially_destructible_v<T> && fits_inline<T>
                   ? nullptr
                   : +[](void* object, bool on_heap) noexcept {
                         if (on_heap) {
                             delete static_cast<T*>(object);
                         } else {
                             std::destroy_at(static_cast<T*>(object));
                         }
                     },
    .footprint =
        [](const void* object) {
            const auto heap = static_cast<std::size_t>(footprint(*static_cast<const T*>(object)));
            return fits_inline<T> ? heap : heap + sizeof(T);
        },
    .encode = [](Writer& out, const void* object) { codec<T>::encode(out, *static_cast<const T*>(object)); },
    .decode = [](Reader& in, Payload& payload) { payload.emplace<T>(codec<T>::decode(in)); },
};

template <class T, class... Arguments>
T& Payload::emplace(Arguments&&... arguments) {
    reset();
    T* made = nullptr;
    if constexpr (fits_inline<T>) {
        made = std::construct_at(reinterpret_cast<T*>(storage_), std::forward<Arguments>(arguments)...);
    } else {
        made = std::make_unique<T>(std::forward<Arguments>(arguments)...).release();
    }
    object_ = made;
    type_ = &payload_type<T>;
    return *made;
}

/// A family's hold on its parent's payload; outlives every child.
struct Parent {
    Payload payload;
    Parent* above = nullptr; ///< The parent's own parent, where it is a child itself.
    bool kept = false;       ///< For the children to look into, as long as one of them is pinned; else its maker's own.
};

/// The nearest one that is kept and a T; null: there is none. The parents are pinned.
template <class T>
[[nodiscard]] Parent* nearest_parent(Parent* parent) noexcept {
    while (parent != nullptr && !(parent->kept && parent->payload.type() == &payload_type<T>)) parent = parent->above;
    return parent;
}

} // namespace detail

/// A child's view of the parent it was made from: one pointer, kept alive and in memory while a stage has the child,
/// counted and spilled once for the whole family. Costs nothing to copy, never owns. Not for use outside the pipeline
/// that made it, nor in a codec or a footprint(): the parent may be on disk then.
template <class T>
class shared {
public:
    shared() = default;
    explicit shared(detail::Parent& parent) noexcept : parent_(&parent) {}

    [[nodiscard]] T& operator*() const noexcept { return parent_->payload.as<T>(); }
    [[nodiscard]] T* operator->() const noexcept { return &**this; }

private:
    detail::Parent* parent_ = nullptr;
};

/// A shared parent takes no bytes: after a restore the child looks into the same family again.
template <class T>
struct codec<shared<T>> {
    static void encode(Writer&, const shared<T>&) {}
    static shared<T> decode(Reader& in) {
        auto* parent = detail::nearest_parent<T>(static_cast<detail::Parent*>(in.parent()));
        if (parent == nullptr) in.malformed("a shared parent of a type that the family does not have");
        return shared<T>(*parent);
    }
};

template <class T>
inline constexpr bool is_plain<shared<T>> = true;

} // namespace spillway
