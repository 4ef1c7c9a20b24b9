// The device form of a batched stage, erased: what a feeder calls to take a batch through a device.
//
//     struct AlignOnGpu {
//         std::size_t bytes(const Candidate& c) const;                          // of staging that c takes
//         void pack(spillway::batch<Candidate>& candidates, spillway::Staging& staging);
//         void launch(spillway::Staging& staging, spillway::Stream& stream);    // copies and runs; does not wait
//         void unpack(spillway::Staging& staging, spillway::batch<Candidate>& candidates);
//     };
//     auto form = make_device_form<Candidate>(AlignOnGpu{});
//
// A plain function of batch<Candidate>& is taken too: it is called and waited for, so nothing overlaps.
#pragma once

#include "spillway/detail/stage.hpp"
#include "spillway/detail/typed.hpp"
#include "spillway/device.hpp"

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace spillway::detail {

/// Order for each staging: pack, launch, synchronise of the stream, unpack; several stagings are under way at once, so
/// what unpack must know of its batch lies in the staging itself (the form writes a header there). Called by one thread
/// for each feeder of each device, with stagings of its own. pack and launch leave candidates as they were, and so does
/// whatever throws: the same candidates are then done on the CPU.
class DeviceForm {
public:
    explicit DeviceForm(bool form_overlaps) noexcept : overlaps(form_overlaps) {}
    DeviceForm(const DeviceForm&) = delete;
    DeviceForm& operator=(const DeviceForm&) = delete;
    virtual ~DeviceForm() = default;

    /// Bytes of staging that one candidate takes, at most; what it shares with others may be counted for each.
    [[nodiscard]] virtual std::size_t bytes(const Payload& payload) const = 0;
    /// Bytes of staging that a batch takes beside its candidates.
    [[nodiscard]] virtual std::size_t header_bytes() const = 0;
    virtual void pack(std::span<Item> items, Staging& staging) = 0;
    virtual void launch(Staging& staging, Stream& stream) = 0;
    virtual void unpack(Staging& staging, std::span<Item> items) = 0;

    /// All of it, where the form is a plain function; the others are then not to be called.
    virtual void run(std::span<Item> items) = 0;

    const bool overlaps; ///< False: only run() is there.
};

template <class F, class T>
concept SynchronousForm = std::invocable < F&,
        batch<T>
& > ;
template <class F, class T>
concept HasBytes = requires(const F& f, const T& candidate) {
    { f.bytes(candidate) } -> std::convertible_to<std::size_t>;
};
/// Optional: the header of a batch.
template <class F>
concept HasHeaderBytes = requires(const F& f) {
    { f.header_bytes() } -> std::convertible_to<std::size_t>;
};
template <class F, class T>
concept HasPack = requires(F& f, batch<T>& candidates, Staging& staging) {
    f.pack(candidates, staging);
};
template <class F>
concept HasLaunch = requires(F& f, Staging& staging, Stream& stream) {
    f.launch(staging, stream);
};
template <class F, class T>
concept HasUnpack = requires(F& f, batch<T>& candidates, Staging& staging) {
    f.unpack(staging, candidates);
};

template <class T, class F>
class StagedForm final : public DeviceForm {
public:
    explicit StagedForm(F f) : DeviceForm(true), f_(std::move(f)) {}
    [[nodiscard]] std::size_t bytes(const Payload& payload) const override {
        return static_cast<std::size_t>(f_.bytes(payload.as<T>()));
    }
    [[nodiscard]] std::size_t header_bytes() const override {
        if constexpr (HasHeaderBytes<F>) return static_cast<std::size_t>(f_.header_bytes());
        return 0;
    }
    void pack(std::span<Item> items, Staging& staging) override {
        batch<T> together(items);
        f_.pack(together, staging);
    }
    void launch(Staging& staging, Stream& stream) override { f_.launch(staging, stream); }
    void unpack(Staging& staging, std::span<Item> items) override {
        batch<T> together(items);
        f_.unpack(staging, together);
    }
    void run(std::span<Item>) override {
        throw Error(ErrorCode::runtime, "running a device form", "", "it goes through staging");
    }

private:
    F f_;
};

template <class T, class F>
class FunctionForm final : public DeviceForm {
public:
    explicit FunctionForm(F f) : DeviceForm(false), f_(std::move(f)) {}
    [[nodiscard]] std::size_t bytes(const Payload&) const override { return 0; }
    [[nodiscard]] std::size_t header_bytes() const override { return 0; }
    void pack(std::span<Item>, Staging&) override { refuse(); }
    void launch(Staging&, Stream&) override { refuse(); }
    void unpack(Staging&, std::span<Item>) override { refuse(); }
    void run(std::span<Item> items) override {
        batch<T> together(items);
        std::invoke(f_, together);
    }

private:
    [[noreturn]] static void refuse() {
        throw Error(ErrorCode::runtime, "running a device form", "", "a plain function has no staging");
    }
    F f_;
};

template <class T, class F>
[[nodiscard]] std::unique_ptr<DeviceForm> make_device_form(F f) {
    if constexpr (SynchronousForm<F, T>) {
        return std::make_unique<FunctionForm<T, F>>(std::move(f));
    } else {
        static_assert(HasBytes<F, T>,
                      "a device form is a function of batch<Candidate>&, or an object; the object needs "
                      "bytes(const Candidate&) const -> size_t: the staging that one candidate takes");
        static_assert(HasPack<F, T>, "a device form needs pack(batch<Candidate>&, Staging&): writes the batch to "
                                     "staging.host()");
        static_assert(HasLaunch<F>, "a device form needs launch(Staging&, Stream&): copies, runs, and does not wait");
        static_assert(HasUnpack<F, T>,
                      "a device form needs unpack(Staging&, batch<Candidate>&): reads the results from "
                      "staging.host() into the batch");
        return std::make_unique<StagedForm<T, F>>(std::move(f));
    }
}

} // namespace spillway::detail
