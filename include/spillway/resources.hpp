// A few things that stages borrow, one worker at a time: streams, models, connections.
//
//     spillway::resources<Model> models(2, load_model);                 // load_model() -> Model, twice
//     ... .map("infer", [](Site& site, Model& model) { ... }).resource(models) ...
//
// Guarantee: a thing is used by one worker at a time, and a stage that finds none free is left alone until one comes
// back. Several stages, and several pipelines, may borrow from the same resources, which must outlive their runs.
#pragma once

#include "spillway/detail/stage.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace spillway {

/// `Atomic` is what tests put in the place of the machine's atomics.
template <class T, template <class> class Atomic = std::atomic>
class resources final : public detail::Lender {
public:
    /// `count` things, each made by `factory() -> T`, here and now.
    template <class Factory>
    resources(std::size_t count, Factory factory) : taken_(count) {
        for (std::size_t i = 0; i < count; ++i)
            things_.push_back(std::make_unique<detail::LocalOf<T>>(std::in_place, factory));
    }

    [[nodiscard]] std::size_t size() const noexcept { return things_.size(); }

    [[nodiscard]] detail::Local* try_borrow() noexcept override {
        for (std::size_t i = 0; i < things_.size(); ++i) {
            // Acquire: pairs with give_back(), so that the borrower sees what the last one left.
            if (!taken_[i].load(std::memory_order_relaxed) && !taken_[i].exchange(true, std::memory_order_acquire))
                return things_[i].get();
        }
        return nullptr;
    }
    void give_back(detail::Local* thing) noexcept override {
        for (std::size_t i = 0; i < things_.size(); ++i) {
            if (things_[i].get() == thing) taken_[i].store(false, std::memory_order_release);
        }
    }

private:
    std::vector<std::unique_ptr<detail::LocalOf<T>>> things_;
    std::vector<Atomic<bool>> taken_;
};

} // namespace spillway
