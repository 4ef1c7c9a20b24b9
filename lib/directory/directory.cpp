#include "directory/directory.hpp"

#include "spillway/error.hpp"

#include <concurrentqueue/concurrentqueue.h>

#include <array>
#include <numeric>
#include <string>

namespace spillway::detail {

struct Directory::Shared {
    moodycamel::ConcurrentQueue<std::uint32_t> free;
};

Directory::Directory() : shared_(std::make_unique<Shared>()) {}

Directory::~Directory() = default;

void Directory::refill(std::vector<std::uint32_t>& out, std::size_t count) {
    const std::size_t had = out.size();
    growth_.take(
        [&] {
            out.resize(had + count);
            const std::size_t got = shared_->free.try_dequeue_bulk(out.data() + had, count);
            out.resize(had + got);
            return got > 0;
        },
        [this](std::uint32_t from) { return make_chunk(from); },
        [this](std::uint32_t from, std::uint32_t to) {
            std::array<std::uint32_t, chunk_slots> indices{};
            std::iota(indices.begin(), indices.end(), from);
            return_some(indices.data(), to - from);
        });
}

std::uint32_t Directory::make_chunk(std::uint32_t from) {
    if (from == chunk_slots * max_chunks) {
        throw Error(ErrorCode::memory, "making a candidate", "",
                    std::to_string(from) + " candidates are alive, which is as many as a run may have");
    }
    slots_.make(from);
    const std::uint32_t end = from + chunk_slots;
    for (std::uint32_t i = from; i < end; ++i) slots_[i].index = i;
    return end;
}

void Directory::return_some(const std::uint32_t* indices, std::size_t count) {
    if (!shared_->free.enqueue_bulk(indices, count)) throw std::bad_alloc();
}

} // namespace spillway::detail
