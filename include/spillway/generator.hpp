// A coroutine that yields values one at a time: what a fan-out may return.
//
//     spillway::generator<Site> sites(const Region& region) {
//         for (int position = region.begin; position < region.end; ++position) co_yield Site(position);
//     }
//
// g++ 12 and older miscompile `co_yield Site{name, position}` for an aggregate with members that own memory: they free
// them twice. Name the value first, as in `Site site{name, position}; co_yield std::move(site);`, or give the type a
// constructor.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace spillway {

/// Lazy: nothing runs before the first next(). Move-only. One thread at a time.
template <class T>
class generator {
public:
    struct promise_type {
        std::optional<T> value;
        std::exception_ptr error;

        generator get_return_object() { return generator(std::coroutine_handle<promise_type>::from_promise(*this)); }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        template <class U>
        std::suspend_always yield_value(U&& yielded) {
            value.emplace(std::forward<U>(yielded));
            return {};
        }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { error = std::current_exception(); }
    };

    generator(generator&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
    generator& operator=(generator&& other) noexcept {
        std::swap(coroutine_, other.coroutine_);
        return *this;
    }
    ~generator() {
        if (coroutine_) coroutine_.destroy();
    }

    /// The next value, or none at the end. Throws what the coroutine throws; after that it is at its end.
    [[nodiscard]] std::optional<T> next() {
        if (coroutine_.done()) return std::nullopt;
        coroutine_.promise().value.reset();
        coroutine_.resume();
        if (coroutine_.promise().error) std::rethrow_exception(std::exchange(coroutine_.promise().error, nullptr));
        return std::move(coroutine_.promise().value);
    }

private:
    explicit generator(std::coroutine_handle<promise_type> coroutine) noexcept : coroutine_(coroutine) {}

    std::coroutine_handle<promise_type> coroutine_;
};

} // namespace spillway
