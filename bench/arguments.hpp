// Command lines of the benchmarks. What is not understood ends a program with its usage on stderr and exit code 2:
// figures of a run that one did not ask for are taken for those of the run that one did.
//
//     constexpr char usage[] = "spillway-bench-x [--pairs N] [--seconds S]";
//     bench::read_options(argc, argv, usage, {{"--pairs", &pairs}, {"--seconds", &seconds}});
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace bench {

[[noreturn]] inline void refuse(const std::string& why, const char* usage) {
    std::fprintf(stderr, "%s\nusage: %s\n", why.c_str(), usage);
    std::exit(2);
}

/// Above 0 and finite; whole where T is. All else is refused.
template <class T>
[[nodiscard]] T number(std::string_view text, const char* usage) {
    T value{};
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stopped != end || !(value > 0) || !(value <= std::numeric_limits<T>::max())) {
        const char* const wanted = std::is_integral_v<T> ? "not a whole number above 0: " : "not a number above 0: ";
        refuse(wanted + std::string(text), usage);
    }
    return value;
}

/// An option that takes a value, and where it goes.
struct Option {
    std::string_view name;
    std::variant<std::uint64_t*, double*, std::string*> value;
};

inline void read_options(int argc, char** argv, const char* usage, std::initializer_list<Option> options) {
    for (int i = 1; i < argc; i += 2) {
        const auto* const option =
            std::find_if(options.begin(), options.end(), [&](const Option& o) { return o.name == argv[i]; });
        if (option == options.end()) refuse(std::string("no such option: ") + argv[i], usage);
        if (i + 1 == argc) refuse(std::string("no value after ") + argv[i], usage);
        std::visit(
            [&](auto* to) {
                using T = std::remove_pointer_t<decltype(to)>;
                if constexpr (std::is_same_v<T, std::string>) {
                    *to = argv[i + 1];
                } else {
                    *to = number<T>(argv[i + 1], usage);
                }
            },
            option->value);
    }
}

} // namespace bench
