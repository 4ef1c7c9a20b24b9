// How a value becomes bytes when it spills, and how many bytes it holds while in memory.
//
//     struct Call { int position; std::string ref, alt; std::vector<double> likelihoods; };   // needs nothing
//
//     struct Site { std::int64_t position; Window window; };          // Window is a class of yours:
//     template <> struct spillway::codec<Window> {
//         static void encode(Writer& out, const Window& w) { out(w.begin(), w.bases(), w.qualities()); }
//         static Window decode(Reader& in) { auto begin = in.get<long>(); ... return Window(...); }
//         static std::size_t footprint(const Window& w) { return w.capacity(); }     // optional: heap bytes
//     };
//
// Arithmetic types, enums, std::string, vectors, arrays, optionals, pairs, tuples, unique_ptrs, maps and sets of coded
// types, and aggregates of up to 16 coded members without base classes need no codec; std::pmr containers are made on
// the reader's memory resource. Pointers, views and spans are never coded. Bytes are in the machine's order: they never
// leave it.
#pragma once

#include "spillway/aggregate.hpp"
#include "spillway/error.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace spillway {

class Writer;
class Reader;

/// Specialise for your own type: static void encode(Writer&, const T&), static T decode(Reader&), and, if you know
/// better than 1.5 times the encoded size, static std::size_t footprint(const T&): the heap bytes that the value holds.
template <typename T>
struct codec;

/// T can be written and read back.
template <typename T>
concept Coded = requires(Writer& out, Reader& in, const T& value) {
    codec<T>::encode(out, value);
    { codec<T>::decode(in) } -> std::same_as<T>;
};

/// Appends values to a buffer, or only counts their bytes. Thread safety: one thread at a time.
class Writer {
public:
    /// Appends to `out`, which must outlive the writer.
    explicit Writer(std::vector<std::byte>& out) noexcept : out_(&out) {}
    /// Counts only.
    Writer() noexcept = default;

    /// Writes values one after the other; read them back in the same order.
    template <typename... Ts>
    void operator()(const Ts&... values) {
        (codec<Ts>::encode(*this, values), ...);
    }

    /// Writes raw bytes, without their number.
    void bytes(std::span<const std::byte> raw) {
        size_ += raw.size();
        if (out_ != nullptr) out_->insert(out_->end(), raw.begin(), raw.end());
    }

    /// Bytes written so far by this writer.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

private:
    std::vector<std::byte>* out_ = nullptr;
    std::size_t size_ = 0;
};

/// Takes values from bytes. Every read is checked: whatever the bytes are, the outcome is a value or Error(disk),
/// "record malformed". Thread safety: one thread at a time.
class Reader {
public:
    /// `parent` is handed to codecs that need to know where the value belongs; `resource` is what pmr containers are
    /// made on.
    explicit Reader(std::span<const std::byte> in, void* parent = nullptr,
                    std::pmr::memory_resource* resource = nullptr) noexcept
        : rest_(in), parent_(parent), resource_(resource != nullptr ? resource : std::pmr::get_default_resource()) {}

    template <typename T>
    [[nodiscard]] T get() {
        return codec<T>::decode(*this);
    }

    /// The next `count` bytes; valid as long as the bytes given to the constructor.
    [[nodiscard]] std::span<const std::byte> bytes(std::size_t count) {
        if (count > rest_.size()) malformed("it ends too early");
        const auto taken = rest_.first(count);
        rest_ = rest_.subspan(count);
        return taken;
    }

    [[nodiscard]] std::size_t remaining() const noexcept { return rest_.size(); }
    /// Throws unless everything was taken.
    void expect_end() const {
        if (!rest_.empty()) malformed("bytes are left over");
    }
    [[noreturn]] static void malformed(const char* how) {
        throw Error(ErrorCode::disk, "decoding a candidate", "", std::string("record malformed: ") + how);
    }

    [[nodiscard]] void* parent() const noexcept { return parent_; }
    [[nodiscard]] std::pmr::memory_resource* resource() const noexcept { return resource_; }

private:
    std::span<const std::byte> rest_;
    void* parent_;
    std::pmr::memory_resource* resource_;
};

namespace detail {

template <typename T>
consteval bool raw();

template <typename... Ms>
consteval bool all_raw(Types<Ms...>) {
    return (raw<Ms>() && ...);
}

/// The bytes are the value: numbers and enums, and arrays and aggregates of nothing else. Trivially copyable is not
/// enough, since a pointer is that too; and a type with a codec of its own may mean something else by its bytes.
template <typename T>
consteval bool raw() {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
        return true;
    } else if constexpr (std::is_array_v<T>) {
        return raw<std::remove_all_extents_t<T>>();
    } else if constexpr (!std::is_trivially_copyable_v<T>) {
        return false;
    } else if constexpr (IsStdArray<T>::value) {
        return raw<typename T::value_type>();
    } else if constexpr (Aggregate<T> && requires { codec<T>::of_members; }) {
        return all_raw(members_of<T>{});
    } else {
        return false;
    }
}

template <typename... Ms>
consteval bool all_coded(Types<Ms...>) {
    return ((Coded<Ms> || (std::is_array_v<Ms> && raw<Ms>())) && ...);
}

/// An empty container, on the reader's memory resource if it can be.
template <typename C>
C make_container(const Reader& in) {
    if constexpr (std::is_constructible_v<typename C::allocator_type, std::pmr::memory_resource*>) {
        return C(typename C::allocator_type(in.resource()));
    } else {
        return C();
    }
}

/// Without making zeros of it first, which for large payloads is a good part of what reading them back costs.
template <typename C>
void assign_bytes(C& value, std::span<const std::byte> bytes) {
    // Any object may be looked at through these types.
    const auto* first = reinterpret_cast<const typename C::value_type*>(bytes.data());
    value.assign(first, first + bytes.size());
}

inline std::size_t get_size(Reader& in) {
    const auto size = in.get<std::uint64_t>();
    if (size > std::numeric_limits<std::size_t>::max()) Reader::malformed("a length is out of range");
    return static_cast<std::size_t>(size);
}

} // namespace detail

/// T owns no memory beside its own bytes.
template <typename T>
inline constexpr bool is_plain = detail::raw<T>();

/// Bytes that encoding `value` takes. Cost: like encoding it, without the copies.
template <Coded T>
[[nodiscard]] std::size_t encoded_size(const T& value) {
    if constexpr (is_plain<T>) {
        return sizeof(T);
    } else {
        Writer counter;
        counter(value);
        return counter.size();
    }
}

/// An estimate of the heap bytes that `value` holds beside its own sizeof: 0 for plain types, else its codec's answer,
/// else 1.5 times its encoded size.
template <typename T>
[[nodiscard]] std::size_t footprint(const T& value) {
    if constexpr (requires {
                      { codec<T>::footprint(value) } -> std::convertible_to<std::size_t>;
                  }) {
        return codec<T>::footprint(value);
    } else if constexpr (is_plain<T>) {
        return 0;
    } else {
        const std::size_t size = encoded_size(value);
        return size + size / 2;
    }
}

template <typename T>
requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) struct codec<T> {
    static void encode(Writer& out, const T& value) { out.bytes(std::as_bytes(std::span(&value, 1))); }
    static T decode(Reader& in) {
        T value;
        std::memcpy(&value, in.bytes(sizeof(T)).data(), sizeof(T));
        return value;
    }
};

/// Any byte but 0 is true: copied as it stands, another value would be no bool at all.
template <>
struct codec<bool> {
    static void encode(Writer& out, const bool& value) { out(static_cast<std::uint8_t>(value)); }
    static bool decode(Reader& in) { return in.get<std::uint8_t>() != 0; }
};

template <detail::Aggregate T>
requires(detail::all_coded(detail::members_of<T>{})) struct codec<T> {
    /// Tells this codec from a user's.
    static constexpr bool of_members = true;

    static void encode(Writer& out, const T& value) {
        if constexpr (detail::raw<T>()) {
            out.bytes(std::as_bytes(std::span(&value, 1)));
        } else {
            detail::with_members(value, [&](const auto&... members) { out(members...); });
        }
    }
    static T decode(Reader& in) {
        if constexpr (detail::raw<T>()) {
            std::array<std::byte, sizeof(T)> bytes;
            std::memcpy(bytes.data(), in.bytes(sizeof(T)).data(), sizeof(T));
            return std::bit_cast<T>(bytes);
        } else {
            // Braces make the members in their order, in place: they need no default constructor and keep their memory
            // resource.
            return []<typename... Ms>(Reader& from, detail::Types<Ms...>) {
                static_assert((!std::is_array_v<Ms> && ...),
                              "a built-in array beside strings or vectors: use std::array");
                return T{from.get<std::remove_const_t<Ms>>()...};
            }(in, detail::members_of<T>{});
        }
    }
};

template <typename Traits, typename Allocator>
struct codec<std::basic_string<char, Traits, Allocator>> {
    using String = std::basic_string<char, Traits, Allocator>;

    static void encode(Writer& out, const String& value) {
        out(std::uint64_t{value.size()});
        out.bytes(std::as_bytes(std::span(value)));
    }
    static String decode(Reader& in) {
        const auto bytes = in.bytes(detail::get_size(in));
        auto value = detail::make_container<String>(in);
        detail::assign_bytes(value, bytes);
        return value;
    }
};

template <Coded T, typename Allocator>
struct codec<std::vector<T, Allocator>> {
    using Vector = std::vector<T, Allocator>;
    static constexpr bool copied = detail::raw<T>() && !std::same_as<T, bool> && std::default_initializable<T>;

    static void encode(Writer& out, const Vector& value) {
        out(std::uint64_t{value.size()});
        if constexpr (copied) {
            out.bytes(std::as_bytes(std::span(value)));
        } else {
            for (const auto& element : value) out(static_cast<const T&>(element));
        }
    }
    static Vector decode(Reader& in) {
        const std::size_t size = detail::get_size(in);
        auto value = detail::make_container<Vector>(in);
        if constexpr (copied) {
            if (size > in.remaining() / sizeof(T)) Reader::malformed("it ends too early");
            const auto bytes = in.bytes(size * sizeof(T));
            if constexpr (std::same_as<T, char> || std::same_as<T, unsigned char> || std::same_as<T, std::byte>) {
                detail::assign_bytes(value, bytes);
            } else {
                value.resize(size);
                if (size != 0) std::memcpy(static_cast<void*>(value.data()), bytes.data(), bytes.size());
            }
        } else {
            // Not the size as it stands: it may be wrong, and memory for it must not be asked for before the elements
            // are there.
            value.reserve(std::min(size, in.remaining()));
            for (std::size_t i = 0; i != size; ++i) value.push_back(in.get<T>());
        }
        return value;
    }
};

template <Coded T, std::size_t N>
struct codec<std::array<T, N>> {
    static void encode(Writer& out, const std::array<T, N>& value) {
        for (const T& element : value) out(element);
    }
    static std::array<T, N> decode(Reader& in) {
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return std::array<T, N>{(static_cast<void>(I), in.get<T>())...};
        }
        (std::make_index_sequence<N>{});
    }
};

template <Coded T>
struct codec<std::optional<T>> {
    static void encode(Writer& out, const std::optional<T>& value) {
        out(value.has_value());
        if (value) out(*value);
    }
    static std::optional<T> decode(Reader& in) {
        if (!in.get<bool>()) return std::nullopt;
        return std::optional<T>(in.get<T>());
    }
};

template <Coded T>
requires(!std::is_polymorphic_v<T> && !std::is_array_v<T>) struct codec<std::unique_ptr<T>> {
    static void encode(Writer& out, const std::unique_ptr<T>& value) {
        out(value != nullptr);
        if (value) out(*value);
    }
    static std::unique_ptr<T> decode(Reader& in) {
        if (!in.get<bool>()) return nullptr;
        return std::make_unique<T>(in.get<T>());
    }
};

template <Coded A, Coded B>
struct codec<std::pair<A, B>> {
    static void encode(Writer& out, const std::pair<A, B>& value) { out(value.first, value.second); }
    static std::pair<A, B> decode(Reader& in) {
        auto first = in.get<A>(); // The order in which arguments of a call are evaluated is open.
        return {std::move(first), in.get<B>()};
    }
};

template <Coded... Ts>
struct codec<std::tuple<Ts...>> {
    static void encode(Writer& out, const std::tuple<Ts...>& value) {
        std::apply([&](const Ts&... parts) { out(parts...); }, value);
    }
    static std::tuple<Ts...> decode(Reader& in) { return std::tuple<Ts...>{in.get<Ts>()...}; }
};

namespace detail {

/// Maps and sets, ordered or not.
template <typename C>
concept Associative = requires(C& container, typename C::value_type element) {
    typename C::key_type;
    typename C::allocator_type;
    container.insert(std::move(element));
};

template <Associative C>
struct Element {
    using type = typename C::value_type;
};
/// A map's own value_type has a const key: it cannot be moved from.
template <Associative C>
requires requires {
    typename C::mapped_type;
}
struct Element<C> {
    using type = std::pair<typename C::key_type, typename C::mapped_type>;
};

} // namespace detail

template <detail::Associative C>
requires Coded<typename detail::Element<C>::type>
struct codec<C> {
    using Element = typename detail::Element<C>::type;

    static void encode(Writer& out, const C& value) {
        out(std::uint64_t{value.size()});
        for (const auto& element : value) {
            if constexpr (requires { typename C::mapped_type; }) {
                out(element.first, element.second);
            } else {
                out(element);
            }
        }
    }
    static C decode(Reader& in) {
        const std::size_t size = detail::get_size(in);
        auto value = detail::make_container<C>(in);
        for (std::size_t i = 0; i != size; ++i) value.insert(in.get<Element>());
        return value;
    }
};

} // namespace spillway
