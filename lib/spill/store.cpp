#include "spill/store.hpp"

#include "spillway/error.hpp"

#include <atomic>
#include <cerrno>
#include <limits>

namespace spillway {
namespace {

/// A disk that did not take a record is passed over so many times before it is tried again.
constexpr int rest = 256;

constexpr std::size_t most_directories = 64;

struct Disk {
    Disk(const std::string& directory, const SpillOptions& options, unsigned seats, std::shared_ptr<FileSystem> files,
         const SegmentShape& shape)
        : disk(directory, options, seats, std::move(files), shape) {}

    SpillDisk disk;
    std::atomic<int> resting{0}; ///< Times that it is still to be passed over. A lost update costs nothing.
};

} // namespace

struct SpillStore::State {
    std::vector<std::unique_ptr<Disk>> disks;
    std::atomic<std::uint64_t> records_written{0}, records_read{0}, bytes_written{0}, bytes_stored{0}, bytes_read{0};
    std::atomic<std::uint64_t> bytes_live{0}, failed_writes{0};
    std::atomic<int> last_error{0};

    SpillResult write(unsigned seat, const RecordKey& key, std::span<const std::byte> payload) {
        SpillResult result{{}, ENOSPC};
        std::uint64_t passed_over = 0;
        const auto takes = [&](std::size_t number) {
            result = disks[number]->disk.write(seat, key, payload);
            result.place.disk = static_cast<std::uint32_t>(number);
            disks[number]->resting.store(result ? 0 : rest, std::memory_order_relaxed);
            return static_cast<bool>(result);
        };
        for (std::size_t i = 0; i < disks.size(); ++i) {
            const std::size_t number = (seat + i) % disks.size();
            const int resting = disks[number]->resting.load(std::memory_order_relaxed);
            if (resting > 0) {
                disks[number]->resting.store(resting - 1, std::memory_order_relaxed);
                passed_over |= std::uint64_t{1} << number;
            } else if (takes(number)) {
                return result;
            }
        }
        // None takes it: those that were passed over may have room again.
        for (std::size_t number = 0; number < disks.size(); ++number) {
            if ((passed_over >> number & 1U) != 0 && takes(number)) break;
        }
        return result;
    }
};

SpillStore::SpillStore(const SpillOptions& options, unsigned seats, const std::shared_ptr<FileSystem>& files,
                       const SegmentShape& shape)
    : state_(std::make_unique<State>()) {
    state_->disks.push_back(std::make_unique<Disk>(options.directory, options, seats, files, shape));
    if (options.more_directories.size() >= most_directories)
        throw Error(ErrorCode::usage, "opening the spill directories", "", "more than 64 are named");
    for (const std::string& directory : options.more_directories)
        state_->disks.push_back(std::make_unique<Disk>(directory, options, seats, files, shape));
}

SpillStore::~SpillStore() = default;

SpillResult SpillStore::write(unsigned seat, const RecordKey& key, std::span<const std::byte> payload) {
    State& state = *state_;
    SpillResult result;
    if (payload.size() > std::numeric_limits<std::uint32_t>::max()) {
        result.error = EFBIG;
    } else {
        result = state.write(seat, key, payload);
    }
    if (!result) {
        state.failed_writes.fetch_add(1, std::memory_order_relaxed);
        state.last_error.store(result.error, std::memory_order_relaxed);
        return result;
    }
    state.records_written.fetch_add(1, std::memory_order_relaxed);
    state.bytes_written.fetch_add(payload.size(), std::memory_order_relaxed);
    state.bytes_stored.fetch_add(result.place.length, std::memory_order_relaxed);
    state.bytes_live.fetch_add(result.place.length, std::memory_order_relaxed);
    return result;
}

void SpillStore::read(const SpillPlace& place, std::vector<std::byte>& out) {
    State& state = *state_;
    if (place.disk >= state.disks.size())
        throw Error(ErrorCode::disk, "restoring a spilled candidate", "", "there is no such disk");
    state.disks[place.disk]->disk.read(place, out);
    state.records_read.fetch_add(1, std::memory_order_relaxed);
    state.bytes_read.fetch_add(out.size(), std::memory_order_relaxed);
}

void SpillStore::release(const SpillPlace& place) noexcept {
    state_->bytes_live.fetch_sub(place.length, std::memory_order_relaxed);
    state_->disks[place.disk]->disk.release(place);
}

SpillStatistics SpillStore::statistics() const noexcept {
    const auto value = [](const auto& counter) { return counter.load(std::memory_order_relaxed); };
    const State& state = *state_;
    SpillStatistics all;
    for (const auto& at : state.disks) at->disk.add_to(all);
    all.records_written = value(state.records_written);
    all.records_read = value(state.records_read);
    all.bytes_written = value(state.bytes_written);
    all.bytes_stored = value(state.bytes_stored);
    all.bytes_read = value(state.bytes_read);
    all.bytes_live = value(state.bytes_live);
    all.failed_writes = value(state.failed_writes);
    if (const int error = value(state.last_error)) all.last_error = error;
    return all;
}

std::uint64_t SpillStore::buffered() const noexcept {
    std::uint64_t bytes = 0;
    for (const auto& at : state_->disks) bytes += at->disk.buffered();
    return bytes;
}

} // namespace spillway
