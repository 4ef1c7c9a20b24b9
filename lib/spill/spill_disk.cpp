#include "spill/spill_disk.hpp"

#include "spill/flush_gate.hpp"
#include "spill/oversize.hpp"
#include "spill/segment.hpp"
#include "spill/segment_table.hpp"
#include "spill/spill_files.hpp"
#include "spillway/error.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>

namespace spillway {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t none = SegmentTable<>::none;

/// Records up to this are gathered in the seat's buffer; a larger one is worth a system call of its own and saves a
/// copy.
constexpr std::uint64_t largest_gathered = 65536;

/// Of a segment that is written again, a tail below this part of it keeps its blocks unused.
constexpr std::uint64_t worth_punching = 64;

struct WrittenRange {
    std::uint32_t segment = none;
    std::uint64_t offset = 0, length = 0;
};

/// A seat's place in its segment. Only its thread touches it, but for `gate`.
//
//     0 ...... header, records ...... in_file | records in buffer | end ...... shape.bytes
struct alignas(cache_line_pair) Seat {
    std::uint32_t segment = none;
    std::uint64_t end = 0;             ///< Where the next record begins.
    std::uint64_t counted = 0;         ///< Of the segment's bytes, those that count against the limit.
    std::vector<std::byte> buffer;     ///< The bytes from in_file to end; its room is kept.
    std::uint64_t writeback = 0;       ///< Bytes of the segment whose way to the disk has begun.
    WrittenRange on_its_way;           ///< The piece sent to the disk last.
    std::vector<std::byte> compressed; ///< Room for a record.
    FlushGate<> gate;                  ///< Between this thread and those that read from the buffer.
};

} // namespace

struct SpillDisk::State {
    State(const std::string& directory, const SpillOptions& options, unsigned seat_count,
          std::shared_ptr<FileSystem> file_system, const SegmentShape& wanted)
        : shape(wanted), files(directory, options.allow_tmpfs, wanted.bytes, std::move(file_system)), oversize(files),
          seats(seat_count), compression(wanted.compression) {
        disk_limit = options.disk_limit != 0 ? options.disk_limit : files.free_bytes() / 10 * 9;
        most_kept = std::min(shape.kept, disk_limit / 8);
        std::random_device random;
        for (std::uint64_t* word : {&run[0], &run[1], &next_salt_seed})
            *word = std::uint64_t{random()} << 32U | random();
    }

    const SegmentShape shape;
    SpillFiles files;
    OversizeFile oversize;
    SegmentTable<> segments; // 64 TiB
    std::vector<Seat> seats;

    std::array<std::uint64_t, 2> run{};
    std::uint64_t next_salt_seed = 0;
    std::atomic<std::uint64_t> uses{0}; ///< Segments opened, each use counted.

    std::uint64_t disk_limit = 0, most_kept = 0;
    std::atomic<std::uint64_t> on_disk{0}; ///< Gathered records among them, before they are written.
    /// Of these, in drained segments, and in open ones beyond what has been written to them since.
    std::atomic<std::uint64_t> kept{0};
    std::atomic<std::uint64_t> buffered{0};
    std::atomic<int> last_error{0};
    Compression compression;

    /// Counts so many bytes as held, within the limit; else what drained segments keep goes first. False: nothing changed.
    [[nodiscard]] bool reserve(std::uint64_t more) noexcept {
        std::uint64_t held = on_disk.load(std::memory_order_relaxed);
        do {
            while (held > disk_limit || more > disk_limit - held) {
                const std::uint64_t most_left = held - std::min(held, kept.load(std::memory_order_relaxed));
                if (most_left > disk_limit || more > disk_limit - most_left) return false; // that would be in vain
                if (!give_back_kept()) return false;
                held = on_disk.load(std::memory_order_relaxed);
            }
        } while (!on_disk.compare_exchange_weak(held, held + more, std::memory_order_relaxed));
        return true;
    }

    void give_back(std::uint32_t index) noexcept {
        // A disk that cannot take blocks back keeps them for the next use, which comes before any new segment's.
        static_cast<void>(files.punch_hole(index, 0, shape.bytes));
        on_disk.fetch_sub(std::exchange(segments[index].allocated, 0), std::memory_order_relaxed);
    }

    /// One segment's blocks. False: none keeps any.
    bool give_back_kept() noexcept {
        const std::uint32_t index = segments.take_kept();
        if (index == none) return false;
        kept.fetch_sub(segments[index].allocated, std::memory_order_relaxed);
        give_back(index);
        segments.give(index);
        return true;
    }

    /// `write()`, until it does not find the disk full, or no drained segment is left whose blocks could make room.
    template <class Write>
    int write_where_room(const Write& write) {
        for (;;) {
            const int error = write();
            if ((error != ENOSPC && error != EDQUOT) || !give_back_kept()) return error;
        }
    }

    /// Gives an empty segment to the seat, its header first in the buffer.
    int open_segment(unsigned seat_index) {
        Seat& seat = seats[seat_index];
        const std::uint32_t index = segments.open(seat_index);
        if (index == none) return EFBIG;
        // Distinct for each use, so that what an earlier use left behind never matches.
        const std::uint64_t salt = next_salt_seed + uses.fetch_add(1, std::memory_order_relaxed);
        segments[index].salt.store(salt, std::memory_order_relaxed);
        const SegmentHeader header = make_segment_header(run, salt, index, shape.bytes);
        seat.buffer.assign(segment_header_bytes, std::byte{0});
        std::memcpy(seat.buffer.data(), &header, sizeof(header));
        seat.segment = index;
        seat.end = segment_header_bytes;
        seat.counted = segments[index].allocated;
        seat.writeback = 0;
        return 0;
    }

    /// Writes the buffer, and a record behind it that is not in it. On failure nothing has changed: the buffer stays.
    int flush(Seat& seat, const StoredHeader* header = nullptr, std::span<const std::byte> payload = {}) {
        static constexpr std::array<std::byte, stored_alignment> zeros{};
        Segment<>& segment = segments[seat.segment];
        const std::uint64_t from = segment.in_file.load(std::memory_order_relaxed);
        const std::uint64_t direct = header != nullptr ? stored_bytes(header->stored) : 0;
        const std::size_t padding = header != nullptr ? direct - sizeof(StoredHeader) - payload.size() : 0;
        const auto piece = [](const void* bytes, std::size_t length) {
            return iovec{const_cast<void*>(bytes), length}; // NOLINT(cppcoreguidelines-pro-type-const-cast): only read
        };
        if (seat.buffer.empty() && header == nullptr) return 0;
        const auto start = Clock::now();
        const int error = write_where_room([&] {
            std::array<iovec, 4> pieces{piece(seat.buffer.data(), seat.buffer.size()), iovec{}, iovec{}, iovec{}};
            if (header != nullptr) {
                pieces[1] = piece(header, sizeof(*header));
                pieces[2] = piece(payload.data(), payload.size());
                pieces[3] = piece(zeros.data(), padding);
            }
            return files.write(seat.segment, from, pieces);
        });
        const std::uint64_t had = segment.allocated;
        if (error != 0) {
            // What was written of it is counted nowhere.
            punch_tail(seat.segment, std::max(from, had));
            return error;
        }

        const std::uint64_t to = seat.end + direct;
        seat.end = to;
        kept.fetch_sub(std::min(to, had) - std::min(from, had), std::memory_order_relaxed);
        segment.allocated = std::max(to, had); // counted before
        seat.gate.flushed(segment.in_file, to);
        while (!seat.gate.deserted()) std::this_thread::yield(); // They copy 64 KiB at most.
        seat.buffer.clear();
        if (seat.end - seat.writeback >= shape.writeback) send_to_disk(seat);
        compression.written(to - from, Clock::now() - start);
        return 0;
    }

    void send_to_disk(Seat& seat) noexcept {
        const WrittenRange fresh{seat.segment, seat.writeback, seat.end - seat.writeback};
        if (fresh.length == 0) return;
        int error = files.start_writeback(fresh.segment, fresh.offset, fresh.length);
        if (seat.on_its_way.segment != none) {
            const WrittenRange& old = seat.on_its_way;
            const int waited = files.finish_writeback(old.segment, old.offset, old.length);
            if (error == 0) error = waited;
        }
        // What the disk lost shows when a record is read: the read itself or its checksum fails.
        if (error != 0) last_error.store(error, std::memory_order_relaxed);
        seat.on_its_way = fresh;
        seat.writeback = seat.end;
    }

    int close_segment(Seat& seat) {
        if (const int error = flush(seat)) return error;
        send_to_disk(seat);
        Segment<>& segment = segments[seat.segment];
        if (segment.allocated > seat.end) { // an earlier use was longer
            const std::uint64_t tail = segment.allocated - seat.end;
            kept.fetch_sub(tail, std::memory_order_relaxed);
            if (tail >= shape.bytes / worth_punching) {
                punch_tail(seat.segment, seat.end);
                on_disk.fetch_sub(tail, std::memory_order_relaxed);
                segment.allocated = seat.end;
            }
        }
        drop(std::exchange(seat.segment, none));
        return 0;
    }

    /// Gives back the blocks of a segment that lie behind `end`.
    void punch_tail(std::uint32_t index, std::uint64_t end) noexcept {
        const std::uint64_t first = (end + segment_header_bytes - 1) / segment_header_bytes * segment_header_bytes;
        if (first < shape.bytes) static_cast<void>(files.punch_hole(index, first, shape.bytes - first));
    }

    void drop(std::uint32_t index) noexcept {
        segments.drop(index, [&](std::uint32_t drained) {
            const std::uint64_t bytes = segments[drained].allocated;
            if (kept.fetch_add(bytes, std::memory_order_relaxed) + bytes <= most_kept) return true;
            kept.fetch_sub(bytes, std::memory_order_relaxed);
            give_back(drained);
            return false;
        });
    }

    SpillResult append(unsigned seat_index, const SpillKey& key, std::uint32_t raw, std::span<const std::byte> stored) {
        Seat& seat = seats[seat_index];
        const std::uint64_t bytes = stored_bytes(static_cast<std::uint32_t>(stored.size()));
        if (seat.segment != none && bytes > shape.bytes - seat.end) {
            if (const int error = close_segment(seat)) return {{}, error};
        }
        if (seat.segment == none) {
            if (const int error = open_segment(seat_index)) return {{}, error};
        }
        const Segment<>& segment = segments[seat.segment];
        const std::uint64_t more = std::max(seat.end + bytes, seat.counted) - seat.counted;
        if (!reserve(more)) return {{}, ENOSPC};
        const auto refused = [&](int error) -> SpillResult {
            on_disk.fetch_sub(more, std::memory_order_relaxed);
            return {{}, error};
        };
        const StoredHeader header = make_stored_header(key, segment.salt.load(std::memory_order_relaxed), raw, stored);
        const std::uint64_t offset = seat.end;
        if (bytes > largest_gathered) {
            if (const int error = flush(seat, &header, stored)) return refused(error);
        } else {
            if (seat.buffer.size() + bytes > shape.buffer) {
                if (const int error = flush(seat)) return refused(error);
            }
            // Before the first gathered record others read nothing in the buffer: it may move then, and only then.
            if (seat.buffer.capacity() < shape.buffer) {
                seat.buffer.reserve(shape.buffer);
                buffered.fetch_add(shape.buffer, std::memory_order_relaxed);
            }
            const std::size_t at = seat.buffer.size();
            seat.buffer.resize(at + bytes); // Within its room, so that what others are reading stays where it is.
            std::memcpy(&seat.buffer[at], &header, sizeof(header));
            if (!stored.empty()) std::memcpy(&seat.buffer[at + sizeof(header)], stored.data(), stored.size());
            seat.end += bytes;
        }
        seat.counted += more;
        segments.hold(seat.segment);
        return {{.segment = seat.segment,
                 .offset = static_cast<std::uint32_t>(offset / stored_alignment),
                 .length = header.stored,
                 .check = check_of(header)},
                0};
    }

    /// Takes the record from the buffer of the seat that has it open; false: it is in the file.
    bool read_gathered(const Segment<>& segment, const SpillPlace& place, StoredHeader& header, std::byte* payload) {
        const std::uint64_t offset = std::uint64_t{place.offset} * stored_alignment;
        if (offset < segment.in_file.load(std::memory_order_relaxed)) return false;
        Seat& seat = seats[segment.seat.load(std::memory_order_relaxed)];
        const auto in_file = seat.gate.enter(segment.in_file, offset);
        if (!in_file) return false;
        const std::byte* const record = seat.buffer.data() + (offset - *in_file);
        std::memcpy(&header, record, sizeof(header));
        if (place.length != 0) std::memcpy(payload, record + sizeof(header), place.length);
        seat.gate.leave();
        return true;
    }

    /// Reads a record that is in the file, and before the first of a segment its header.
    int read_from_file(const SpillPlace& place, std::uint64_t offset, std::span<iovec> pieces) {
        Segment<>& segment = segments[place.segment];
        // Relaxed: two may check it, to the same end.
        if (!segment.header_checked.load(std::memory_order_relaxed)) {
            std::array<std::byte, segment_header_bytes> begin;
            iovec piece{begin.data(), begin.size()};
            if (const int error = files.read(place.segment, 0, std::span(&piece, 1))) return error;
            const std::uint64_t salt = segment.salt.load(std::memory_order_relaxed);
            if (const char* fault = segment_fault(begin, make_segment_header(run, salt, place.segment, shape.bytes)))
                throw_read_error(place, fault);
            segment.header_checked.store(true, std::memory_order_relaxed);
        }
        return files.read(place.segment, offset, pieces);
    }

    [[noreturn]] void throw_read_error(const SpillPlace& place, const std::string& detail) const {
        throw Error(ErrorCode::disk, "restoring a spilled candidate",
                    files.directory() + " (segment " + std::to_string(place.segment) + ", offset " +
                        std::to_string(std::uint64_t{place.offset} * stored_alignment) + ')',
                    detail);
    }
};

SpillDisk::SpillDisk(const std::string& directory, const SpillOptions& options, unsigned seats,
                     std::shared_ptr<FileSystem> files, const SegmentShape& shape)
    : state_(std::make_unique<State>(directory, options, seats, std::move(files), shape)) {}

SpillDisk::~SpillDisk() = default;

SpillResult SpillDisk::write(unsigned seat, const SpillKey& key, std::span<const std::byte> payload) {
    State& state = *state_;
    const auto raw = static_cast<std::uint32_t>(payload.size());
    std::span<const std::byte> stored = payload;
    std::vector<std::byte>& scratch = state.seats[seat].compressed;
    if (state.compression.wanted()) {
        const std::size_t room = scratch.capacity();
        const std::span<const std::byte> shorter = state.compression.compress(payload, scratch);
        state.buffered.fetch_add(scratch.capacity() - room, std::memory_order_relaxed);
        if (!shorter.empty()) stored = shorter;
    }
    const std::uint64_t bytes = stored_bytes(static_cast<std::uint32_t>(stored.size()));
    SpillResult result;
    if (bytes <= state.shape.bytes - segment_header_bytes) {
        result = state.append(seat, key, raw, stored);
    } else if (!state.reserve(bytes)) {
        result.error = ENOSPC;
    } else {
        result.error = state.write_where_room([&] {
            result = state.oversize.write(key, state.next_salt_seed, raw, stored);
            return result.error;
        });
        if (!result) state.on_disk.fetch_sub(bytes, std::memory_order_relaxed);
    }
    if (!result) state.last_error.store(result.error, std::memory_order_relaxed);
    return result;
}

void SpillDisk::read(const SpillPlace& place, std::vector<std::byte>& out) {
    State& state = *state_;
    const bool oversize = place.segment == SpillFiles::oversize;
    const auto offset = oversize ? std::optional<std::uint64_t>(0) : record_begin(place, state.shape.bytes);
    if (!offset || (!oversize && place.segment >= state.segments.size()))
        state.throw_read_error(place, "there is no such place");
    out.resize(place.length);
    StoredHeader header;
    std::array<std::byte, stored_alignment> zeros{};
    const std::span padding = std::span(zeros).first(padding_bytes(place.length));
    std::uint64_t salt = state.next_salt_seed;
    int error = 0;
    const auto start = Clock::now();
    if (oversize) {
        error = state.oversize.read(place, header, out);
    } else {
        const Segment<>& segment = state.segments[place.segment];
        salt = segment.salt.load(std::memory_order_relaxed);
        if (!state.read_gathered(segment, place, header, out.data())) {
            std::array<iovec, 3> pieces{iovec{&header, sizeof(header)}, iovec{out.data(), out.size()},
                                        iovec{padding.data(), padding.size()}};
            error = state.read_from_file(place, *offset, pieces);
            state.compression.read(place.length, Clock::now() - start);
        }
    }
    if (error == ENODATA) state.throw_read_error(place, "the file ends before the record does");
    if (error != 0) state.throw_read_error(place, system_error(error, "", "").detail());
    if (const char* fault = stored_fault(header, place, salt, out, padding)) state.throw_read_error(place, fault);
    if (header.raw == header.stored) return;
    const auto read = Clock::now();
    std::vector<std::byte> raw(header.raw);
    if (!decompress(out, raw)) state.throw_read_error(place, "the record does not decompress");
    out.swap(raw);
    state.compression.decompressed(out.size(), Clock::now() - read);
}

void SpillDisk::release(const SpillPlace& place) noexcept {
    State& state = *state_;
    if (place.segment == SpillFiles::oversize) {
        state.oversize.release(place);
        state.on_disk.fetch_sub(stored_bytes(place.length), std::memory_order_relaxed);
    } else {
        state.drop(place.segment);
    }
}

void SpillDisk::add_to(SpillStatistics& all) const noexcept {
    const State& state = *state_;
    all.bytes_on_disk += state.on_disk.load(std::memory_order_relaxed);
    const std::uint64_t segments = state.segments.size();
    all.segments += segments;
    // One that is being opened may be counted as a segment and not yet as a use.
    all.segments_reused += std::max(state.uses.load(std::memory_order_relaxed), segments) - segments;
    if (const int error = state.last_error.load(std::memory_order_relaxed)) all.last_error = error;
}

std::uint64_t SpillDisk::buffered() const noexcept {
    return state_->buffered.load(std::memory_order_relaxed);
}

} // namespace spillway
