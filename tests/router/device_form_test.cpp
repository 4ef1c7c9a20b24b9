#include "spillway/detail/device_form.hpp"
#include "spillway/device.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <numeric>
#include <vector>

using namespace spillway;
using detail::DeviceForm;
using detail::Item;
using detail::Payload;

namespace {

struct Number {
    std::uint32_t value = 0;
    std::uint32_t square = 0;
};

void square_on_cpu(batch<Number>& numbers) {
    for (Number& number : numbers) number.square = number.value * number.value;
}

// The header of a batch is how many numbers it has.
struct SquareOnDevice {
    static constexpr std::size_t header = sizeof(std::uint64_t);
    [[nodiscard]] std::size_t header_bytes() const { return header; }
    [[nodiscard]] std::size_t bytes(const Number&) const { return sizeof(std::uint32_t); }

    void pack(batch<Number>& numbers, Staging& staging) {
        const std::uint64_t count = numbers.size();
        std::memcpy(staging.host().data(), &count, header);
        std::byte* at = staging.host().data() + header;
        for (const Number& number : numbers) {
            std::memcpy(at, &number.value, sizeof(number.value));
            at += sizeof(number.value);
        }
    }
    void launch(Staging& staging, Stream& stream) {
        stream.copy_in(staging, 0, staging.size());
        stream.run(1, [&staging](void*) {
            std::uint64_t count = 0;
            std::memcpy(&count, staging.device(), header);
            auto* values = reinterpret_cast<std::uint32_t*>(static_cast<std::byte*>(staging.device()) + header);
            for (std::uint64_t i = 0; i < count; ++i) values[i] *= values[i];
        });
        stream.copy_out(staging, 0, staging.size());
    }
    void unpack(Staging& staging, batch<Number>& numbers) {
        const std::byte* at = staging.host().data() + header;
        for (Number& number : numbers) {
            std::memcpy(&number.square, at, sizeof(number.square));
            at += sizeof(number.square);
        }
    }
};

struct Numbers {
    explicit Numbers(std::size_t count) : payloads(count) {
        for (std::size_t i = 0; i < count; ++i) {
            payloads[i].emplace<Number>(Number{static_cast<std::uint32_t>(i + 1), 0});
            items.push_back({&payloads[i]});
        }
    }
    [[nodiscard]] bool squared() const {
        for (const Payload& payload : payloads) {
            const auto& number = payload.as<Number>();
            if (number.square != number.value * number.value) return false;
        }
        return true;
    }
    std::vector<Payload> payloads;
    std::vector<Item> items;
};

/// As a feeder does it: every batch through the device, and on the CPU where that fails. How many went which way.
std::pair<int, int> feed(Device& device, DeviceForm& form, std::span<Item> items, std::size_t batch_size) {
    int on_device = 0, on_cpu = 0;
    std::unique_ptr<Staging> staging;
    std::unique_ptr<Stream> stream;
    for (; !items.empty(); items = items.subspan(std::min(batch_size, items.size()))) {
        const std::span<Item> some = items.first(std::min(batch_size, items.size()));
        try {
            if (!staging)
                staging = device.make_staging(form.header_bytes() + batch_size * form.bytes(*some[0].payload));
            if (!stream) stream = device.make_stream();
            form.pack(some, *staging);
            form.launch(*staging, *stream);
            stream->synchronise();
            form.unpack(*staging, some);
            ++on_device;
        } catch (const DeviceError& error) {
            if (error.fault() == DeviceFault::lost) {
                stream.reset();
                staging.reset();
                device.reset();
            }
            batch<Number> numbers(some);
            square_on_cpu(numbers);
            ++on_cpu;
        }
    }
    return {on_device, on_cpu};
}

} // namespace

TEST_CASE("an object with pack, launch and unpack becomes a form that overlaps") {
    const auto form = detail::make_device_form<Number>(SquareOnDevice{});
    CHECK(form->overlaps);
    CHECK(form->header_bytes() == 8);
    Numbers numbers(1000);
    CHECK(form->bytes(numbers.payloads[0]) == 4);
    HostDevice device;
    CHECK(feed(device, *form, numbers.items, 100) == std::pair(10, 0));
    CHECK(numbers.squared());
    CHECK_THROWS_AS(form->run(numbers.items), Error);
}

TEST_CASE("a plain function becomes a form that does not overlap") {
    const auto form = detail::make_device_form<Number>(square_on_cpu);
    CHECK_FALSE(form->overlaps);
    Numbers numbers(10);
    CHECK(form->bytes(numbers.payloads[0]) == 0);
    form->run(numbers.items);
    CHECK(numbers.squared());
    HostDevice device;
    const auto staging = device.make_staging(1);
    CHECK_THROWS_AS(form->pack(numbers.items, *staging), Error);
}

TEST_CASE("a form without a header needs none") {
    struct NoHeader {
        [[nodiscard]] int bytes(const Number&) const { return 4; }
        void pack(batch<Number>&, Staging&) {}
        void launch(Staging&, Stream&) {}
        void unpack(Staging&, batch<Number>&) {}
    };
    CHECK(detail::make_device_form<Number>(NoHeader{})->header_bytes() == 0);
    STATIC_REQUIRE(detail::HasBytes<NoHeader, Number>);
    STATIC_REQUIRE_FALSE(detail::SynchronousForm<NoHeader, Number>);
    STATIC_REQUIRE_FALSE(detail::HasBytes<NoHeader, std::vector<int>>);
}

TEST_CASE("with a fault at every k-th call each result is that of the CPU form") {
    const auto form = detail::make_device_form<Number>(SquareOnDevice{});
    for (const bool asynchronous : {false, true}) {
        for (const DeviceFault fault :
             {DeviceFault::no_driver, DeviceFault::out_of_memory, DeviceFault::launch_failed, DeviceFault::lost}) {
            for (std::uint64_t k = 1; k <= 20; ++k) {
                CAPTURE(asynchronous, to_string(fault), k);
                HostDeviceOptions options;
                options.asynchronous = asynchronous;
                FaultyDevice device(std::make_shared<HostDevice>(options), FaultyDevice::every(k, fault));
                Numbers numbers(600);
                const auto [on_device, on_cpu] = feed(device, *form, numbers.items, 20);
                REQUIRE(numbers.squared());
                CHECK(on_device + on_cpu == 30);
                CHECK(static_cast<std::uint64_t>(on_cpu) == device.faults());
                if (k == 1) CHECK(on_device == 0);
            }
        }
    }
}
