// The members of a plain struct, listed at compile time: what lets structs be coded without a codec.
//
//     struct Call { int position; std::string allele; };
//     static_assert(spillway::detail::member_count<Call> == 2);
//     spillway::detail::with_members(call, [](auto&... members) { (print(members), ...); });
//
// Members are counted by asking with how many initialisers the struct can be made, and taken by structured bindings.
// Base classes cannot be told from members, so structs with bases are not for this.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <type_traits>
#include <utility>

namespace spillway::detail {

/// Stands for a value of any type when an aggregate's members are counted.
struct AnyValue {
    template <typename T>
    operator T() const { // Never called: only asked about. Defined, since clang wants that for types without linkage.
        std::terminate();
    }
};

template <std::size_t>
using AnyAt = AnyValue;

/// T{any, ... Before times, {any, ... Nested times}, any, ... After times} is well-formed; no nested braces if Nested
/// is 0.
template <typename T, std::size_t Before, std::size_t Nested, std::size_t After>
consteval bool brace_constructible() {
    return []<std::size_t... B, std::size_t... N, std::size_t... A>(
        std::index_sequence<B...>, std::index_sequence<N...>, std::index_sequence<A...>) {
        if constexpr (sizeof...(N) == 0) {
            return requires {
                T{AnyAt<B>{}..., AnyAt<A>{}...};
            };
        } else {
            return requires {
                T{AnyAt<B>{}..., {AnyAt<N>{}...}, AnyAt<A>{}...};
            };
        }
    }
    (std::make_index_sequence<Before>{}, std::make_index_sequence<Nested>{}, std::make_index_sequence<After>{});
}

inline constexpr std::size_t max_members = 16;
/// Built-in array members take one initialiser for each element, so that more initialisers than members are looked for.
inline constexpr std::size_t max_initialisers = 64;

template <typename T, std::size_t N = std::min(sizeof(T), max_initialisers)>
consteval std::size_t initialiser_count() {
    if constexpr (N == 0) {
        return 0;
    } else if constexpr (brace_constructible<T, N, 0, 0>()) {
        return N;
    } else {
        return initialiser_count<T, N - 1>();
    }
}

/// How many of the T's Total initialisers, from initialiser First on, belong to one member: more than one for a
/// built-in array. An array of N elements takes {any x N} and then exactly the rest; a class member would leave room
/// for more.
template <typename T, std::size_t Total, std::size_t First, std::size_t N>
consteval std::size_t initialisers_of_member() {
    if constexpr (N <= 1) {
        return 1;
    } else if constexpr (brace_constructible<T, First, N, Total - First - N>() &&
                         !brace_constructible<T, First, N, Total - First - N + 1>()) {
        return N;
    } else {
        return initialisers_of_member<T, Total, First, N - 1>();
    }
}

template <typename T, std::size_t Total, std::size_t First = 0>
consteval std::size_t count_members() {
    if constexpr (First >= Total) {
        return 0;
    } else {
        return 1 + count_members<T, Total, First + initialisers_of_member<T, Total, First, Total - First>()>();
    }
}

template <typename T>
inline constexpr std::size_t member_count = count_members<T, initialiser_count<T>()>();

/// Calls f with every member of an aggregate, in order.
template <typename T, typename F>
constexpr decltype(auto) with_members(T& value, F&& f) {
    constexpr std::size_t count = member_count<std::remove_const_t<T>>;
    static_assert(count <= max_members, "an aggregate of more than 16 members needs a codec of its own");
    if constexpr (count == 0) {
        return f();
    } else if constexpr (count == 1) {
        auto& [a] = value;
        return f(a);
    } else if constexpr (count == 2) {
        auto& [a, b] = value;
        return f(a, b);
    } else if constexpr (count == 3) {
        auto& [a, b, c] = value;
        return f(a, b, c);
    } else if constexpr (count == 4) {
        auto& [a, b, c, d] = value;
        return f(a, b, c, d);
    } else if constexpr (count == 5) {
        auto& [a, b, c, d, e] = value;
        return f(a, b, c, d, e);
    } else if constexpr (count == 6) {
        auto& [a, b, c, d, e, g] = value;
        return f(a, b, c, d, e, g);
    } else if constexpr (count == 7) {
        auto& [a, b, c, d, e, g, h] = value;
        return f(a, b, c, d, e, g, h);
    } else if constexpr (count == 8) {
        auto& [a, b, c, d, e, g, h, i] = value;
        return f(a, b, c, d, e, g, h, i);
    } else if constexpr (count == 9) {
        auto& [a, b, c, d, e, g, h, i, j] = value;
        return f(a, b, c, d, e, g, h, i, j);
    } else if constexpr (count == 10) {
        auto& [a, b, c, d, e, g, h, i, j, k] = value;
        return f(a, b, c, d, e, g, h, i, j, k);
    } else if constexpr (count == 11) {
        auto& [a, b, c, d, e, g, h, i, j, k, l] = value;
        return f(a, b, c, d, e, g, h, i, j, k, l);
    } else if constexpr (count == 12) {
        auto& [a, b, c, d, e, g, h, i, j, k, l, m] = value;
        return f(a, b, c, d, e, g, h, i, j, k, l, m);
    } else if constexpr (count == 13) {
        auto& [a, b, c, d, e, g, h, i, j, k, l, m, n] = value;
        return f(a, b, c, d, e, g, h, i, j, k, l, m, n);
    } else if constexpr (count == 14) {
        auto& [a, b, c, d, e, g, h, i, j, k, l, m, n, o] = value;
        return f(a, b, c, d, e, g, h, i, j, k, l, m, n, o);
    } else if constexpr (count == 15) {
        auto& [a, b, c, d, e, g, h, i, j, k, l, m, n, o, p] = value;
        return f(a, b, c, d, e, g, h, i, j, k, l, m, n, o, p);
    } else {
        auto& [a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q] = value;
        return f(a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q);
    }
}

template <typename... Ts>
struct Types {};

template <typename T>
struct IsStdArray : std::false_type {};
template <typename T, std::size_t N>
struct IsStdArray<std::array<T, N>> : std::true_type {};

/// A struct whose members can be listed. What cannot be assigned is left out: it may hold references, which look like
/// values here.
template <typename T>
concept Aggregate =
    std::is_class_v<T> && std::is_aggregate_v<T> && std::is_move_assignable_v<T> && !IsStdArray<T>::value;

struct ListTypes {
    template <typename... Ms>
    constexpr Types<Ms...> operator()(Ms&...) const {
        return {};
    }
};

template <Aggregate T>
using members_of = decltype(with_members(std::declval<T&>(), ListTypes{}));

} // namespace spillway::detail
