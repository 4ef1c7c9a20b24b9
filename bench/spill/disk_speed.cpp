#include "disk_speed.hpp"

#include <spillway/pipeline.hpp>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <ranges>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t block = std::size_t{1} << 20U;

double seconds_between(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
}

struct Payload {
    std::uint32_t number = 0;
    std::vector<std::uint8_t> bytes;
};

/// Twice a block of noise: each payload is another piece of it.
std::vector<std::uint8_t> noise() {
    std::mt19937_64 random(7); // NOLINT: a fixed seed is wanted
    std::vector<std::uint8_t> bytes(2 * block);
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
        const std::uint64_t word = random();
        std::memcpy(&bytes[at], &word, sizeof(word));
    }
    return bytes;
}

/// Seconds that the command takes; 0 if it fails.
double timed(const std::string& command) {
    const auto start = Clock::now();
    const int status = std::system(command.c_str()); // NOLINT(cert-env33-c,concurrency-mt-unsafe): dd, from one thread
    return status == 0 ? seconds_between(start, Clock::now()) : 0;
}

/// Until the disk has all that was written, by whomever.
void sync_disk(const std::string& directory) {
    const int file = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); // NOLINT(*-vararg)
    if (file < 0) return;
    ::syncfs(file);
    ::close(file);
}

} // namespace

Speed spill_speed(unsigned mebibytes, const std::string& directory) {
    const std::vector<std::uint8_t> source = noise();
    const std::uint64_t budget = std::uint64_t{mebibytes} * block / 10;
    std::atomic<std::uint32_t> made{0};
    bool right = true;
    Clock::time_point all_made, last_used;
    std::once_flag synced;
    constexpr std::size_t users = 2;
    auto held_up = spillway::pipeline<std::uint32_t>("disk")
                       .source(std::views::iota(std::uint32_t{0}, std::uint32_t{mebibytes}))
                       .map("make",
                            [&](std::uint32_t number) {
                                const auto from = source.begin() + number % block;
                                Payload payload{number, {from, from + block}};
                                ++made;
                                return payload;
                            })
                       .map("use",
                            [&](const Payload& payload, spillway::Context& context) {
                                if (made.load() != mebibytes) {
                                    const auto waiting = context.blocking();
                                    while (made.load() != mebibytes && !context.stopping())
                                        std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                    std::call_once(synced, [&] {
                                        sync_disk(directory);
                                        all_made = Clock::now();
                                    });
                                }
                                return std::memcmp(payload.bytes.data(), &source[payload.number % block], block) == 0;
                            })
                       .limit(users)
                       .in_order("check", [&](bool same) {
                           right = right && same;
                           last_used = Clock::now();
                       });
    sync_disk(directory);
    const auto start = Clock::now();
    const spillway::Report report = held_up.run({.memory = budget,
                                                 .threads = users,
                                                 .open_items = mebibytes,
                                                 .spill = spillway::SpillOptions{.directory = directory}});
    if (!right) return {};
    return {static_cast<double>(report.spilled_bytes) / block / seconds_between(start, all_made),
            static_cast<double>(report.restored) / seconds_between(all_made, last_used)};
}

Speed dd_speed(unsigned mebibytes, const std::string& directory) {
    const std::string file = "'" + directory + "/spillway-dd-" + std::to_string(::getpid()) + "'";
    sync_disk(directory);
    const double write = timed("dd if=/dev/zero of=" + file + " bs=1M count=" + std::to_string(mebibytes) +
                               " conv=fdatasync 2> /dev/null");
    timed("dd of=" + file + " oflag=nocache conv=notrunc count=0 2> /dev/null < /dev/null");
    const double read = timed("dd if=" + file + " of=/dev/null bs=1M 2> /dev/null");
    timed("rm -f " + file);
    return write > 0 && read > 0 ? Speed{mebibytes / write, mebibytes / read} : Speed{};
}

} // namespace bench
