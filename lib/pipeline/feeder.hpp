// Takes a routed stage's candidates through a device: a thread with several batches under way at once, one or more of
// them for each device.
//
// Guarantee: every candidate that a feeder takes is handed on with the device's result, or goes to the workers as it
// was. Where the stage's forms are equivalent it is tried again instead, and at last the run fails. Mechanism: devices
// write to staging only; the feeder holds the slots until the stream has synchronised. A lost device is reset when all
// feeders, of whatever stage and pipeline, have let go of it.
#pragma once

#include "pool/event_count.hpp"
#include "router/device_use.hpp"
#include "spillway/detail/device_form.hpp"
#include "spillway/device.hpp"
#include "spillway/options.hpp"
#include "spillway/router.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace spillway::detail {

class Core;
struct SeatState;
struct Slot;

class Feeder {
public:
    /// Batches under way at once: one is being packed or unpacked while one is copied and one computed.
    static constexpr std::size_t lanes_a_device = 3;

    /// For the stage's router it is a device of its own, the `number`-th. `seat` belongs to this feeder alone.
    Feeder(Core& core, std::size_t stage, std::size_t number, std::shared_ptr<Device> device, std::uint16_t seat,
           const Options& options);
    Feeder(const Feeder&) = delete;
    Feeder& operator=(const Feeder&) = delete;
    ~Feeder();

    void start();
    /// The run must be over and the feeder woken.
    void join();

private:
    struct Lane;

    void run();
    void wait();
    bool step(SeatState& seat);
    bool begin(SeatState& seat);
    void end(SeatState& seat, Lane& lane);
    [[nodiscard]] Lane* free_lane() const;
    [[nodiscard]] Lane* take_by_load(SeatState& seat);
    [[nodiscard]] Lane* take_by_key(SeatState& seat);
    void take_back(SeatState& seat, Lane& lane);
    void give_up(SeatState& seat, Lane& lane, const DeviceError& error);
    void failed(const DeviceError& error);
    bool make_lanes();
    [[nodiscard]] bool enter();
    void let_go();
    void let_go_of_lost(SeatState& seat);
    void set_cells(Lane& lane, std::size_t cells);
    [[nodiscard]] std::size_t cells_of_others() const;
    [[nodiscard]] std::size_t staging_cells() const;
    void tell_staging();

    Core& core_;
    std::size_t stage_, number_;
    std::shared_ptr<Device> device_;
    DeviceUse<> use_; // entered while there are lanes
    std::uint16_t seat_;
    std::vector<std::unique_ptr<Lane>> lanes_;
    std::atomic<std::size_t> cells_in_flight_{0}; // of all lanes; read by those who share the device
    LoadAverage load_;
    std::uint64_t launches_ = 0;
    double bytes_a_cell_ = 0;                       // of the last batch packed
    std::size_t told_staging_ = 0;                  // cells of all lanes that the stage counts
    std::uint32_t failures_in_a_row_ = 0, retries_; // where it is routed by key
    std::chrono::nanoseconds retry_;
    std::size_t sharers_;                   // of the device in this stage
    std::vector<std::vector<Slot*>> again_; // batches by key that failed
    std::thread thread_;
};

} // namespace spillway::detail
