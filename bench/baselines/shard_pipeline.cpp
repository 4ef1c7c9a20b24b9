// The design that Spillway answers, re-created from how DeepVariant's experimental fast pipeline is described and
// behaves, not from its text:
//
//   - The regions are dealt beforehand: region r belongs to shard r mod N, one producer for each shard, one consumer
//     for all.
//   - A shard has one buffer in shared memory and two semaphores, "filled" and "empty". The producer appends serialised
//     records until the buffer is full or a region's share is over, posts "filled", and waits for "empty" before it
//     makes anything more: while one of the two works on a buffer, the other cannot.
//   - The consumer goes round the shards, takes the buffer of whichever is filled, copies the records out, posts
//     "empty", and runs the last stage on them. When nothing is filled it goes round again at once: idle, it spins.
//   - A shard that has ended posts an empty buffer. A last step puts the results in order.
//
// Producers make and align; the consumer calls. Threads stand for the processes, which favours this form: no start-up,
// no mapping of memory.
#include "contender.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <semaphore.h>
#include <thread>
#include <vector>

namespace bench {
namespace {

constexpr std::uint64_t region_size = 1000;   // Candidates; a typical region of a few kb has tens to hundreds.
constexpr std::size_t records_in_buffer = 64; // 10 MB of examples of 155 KB.

class Semaphore {
public:
    explicit Semaphore(unsigned value) { sem_init(&semaphore_, 0, value); }
    Semaphore(const Semaphore&) = delete;
    Semaphore& operator=(const Semaphore&) = delete;
    ~Semaphore() { sem_destroy(&semaphore_); }

    void post() { sem_post(&semaphore_); }
    void wait() {
        while (sem_wait(&semaphore_) != 0 && errno == EINTR) {
        }
    }
    bool try_wait() { return sem_trywait(&semaphore_) == 0; }

private:
    sem_t semaphore_;
};

struct Shard {
    Semaphore filled{0}, empty{1};
    std::vector<std::byte> buffer = std::vector<std::byte>(records_in_buffer * sizeof(Candidate));
    std::size_t used =
        0; ///< Bytes. Handed over with the buffer: only the side whose semaphore was posted touches both.
};

void produce(const Load& load, Shard& shard, std::uint64_t index, std::uint64_t shards) {
    shard.empty.wait();
    shard.used = 0;
    const auto hand_over = [&] {
        shard.filled.post();
        shard.empty.wait();
        shard.used = 0;
    };
    for (std::uint64_t begin = index * region_size; begin < load.candidates; begin += shards * region_size) {
        const std::uint64_t end = std::min(load.candidates, begin + region_size);
        for (std::uint64_t i = begin; i < end; ++i) {
            const Candidate c = load.align(load.make(i));
            std::memcpy(shard.buffer.data() + shard.used, &c, sizeof c);
            shard.used += sizeof c;
            if (shard.used == shard.buffer.size()) hand_over();
        }
        if (shard.used > 0) hand_over();
    }
    shard.filled.post(); // Empty: the end.
}

} // namespace

void shard_pipeline(const Load& load, Sink& sink) {
    std::vector<std::unique_ptr<Shard>> shards;
    std::vector<std::thread> producers;
    for (unsigned i = 0; i < load.threads; ++i) shards.push_back(std::make_unique<Shard>());
    for (unsigned i = 0; i < load.threads; ++i) {
        producers.emplace_back([&load, &shards, i] { produce(load, *shards[i], i, load.threads); });
    }
    std::vector<Candidate> results(load.candidates), batch(records_in_buffer);
    std::vector<char> ended(shards.size());
    for (std::size_t live = shards.size(), at = 0; live > 0; at = (at + 1) % shards.size()) {
        if (ended[at] != 0 || !shards[at]->filled.try_wait()) continue;
        const std::size_t count = shards[at]->used / sizeof(Candidate);
        std::memcpy(batch.data(), shards[at]->buffer.data(), shards[at]->used);
        shards[at]->empty.post();
        for (std::size_t i = 0; i < count; ++i) results[batch[i].ordinal] = load.call(batch[i]);
        if (count == 0) {
            ended[at] = 1;
            --live;
        }
    }
    for (std::thread& producer : producers) producer.join();
    for (const Candidate& c : results) sink(c);
}

} // namespace bench
