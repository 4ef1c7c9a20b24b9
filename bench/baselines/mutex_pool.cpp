// The pool most people would write: one queue for each stage under a mutex and a condition variable, bounded, threads
// that take what is nearest to the end, and a reorder ring before the sink. Its best form: one mutex for all queues,
// since a thread looks at several of them each time, and the thread that is the source's makes 16 candidates at once.
#include "contender.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace bench {
namespace {

class MutexPool {
public:
    MutexPool(const Load& load, Sink& sink)
        : load_(load), sink_(sink), window_(std::uint64_t{256} * load.threads), parked_(window_), is_parked_(window_) {}

    void run() {
        std::vector<std::thread> threads;
        for (unsigned i = 1; i < load_.threads; ++i) threads.emplace_back([this] { work(); });
        work();
        for (std::thread& thread : threads) thread.join();
    }

private:
    static constexpr std::uint64_t at_once = 16;
    static constexpr std::size_t stages = 3;

    void work() {
        std::unique_lock lock(mutex_);
        while (written_ < load_.candidates) {
            if (!step(lock)) wake_.wait(lock);
        }
    }

    /// One piece of work, nearest to the end first; false if there is none now. Holds the lock except inside a stage.
    bool step(std::unique_lock<std::mutex>& lock) {
        for (std::size_t stage = stages; stage-- > 0;) {
            if (queues_[stage].empty()) continue;
            Candidate c = queues_[stage].front();
            queues_[stage].pop_front();
            lock.unlock();
            c = stage == 0 ? load_.make(c.ordinal) : stage == 1 ? load_.align(c) : load_.call(c);
            lock.lock();
            if (stage + 1 < stages) {
                queues_[stage + 1].push_back(c);
                wake_.notify_one();
            } else {
                finish(c);
            }
            return true;
        }
        const std::uint64_t end = std::min({load_.candidates, made_ + at_once, written_ + window_});
        if (made_ == end) return false;
        while (made_ < end) queues_[0].push_back({made_++, 0});
        wake_.notify_all();
        return true;
    }

    void finish(const Candidate& c) {
        parked_[c.ordinal % window_] = c;
        is_parked_[c.ordinal % window_] = 1;
        while (is_parked_[written_ % window_] != 0) {
            is_parked_[written_ % window_] = 0;
            sink_(parked_[written_ % window_]);
            ++written_;
        }
        if (written_ == load_.candidates) wake_.notify_all();
    }

    const Load& load_;
    Sink& sink_;
    const std::uint64_t window_; ///< Candidates that may be alive.
    std::mutex mutex_;           ///< Guards all below.
    std::condition_variable wake_;
    std::array<std::deque<Candidate>, stages> queues_;
    std::vector<Candidate> parked_;
    std::vector<char> is_parked_;
    std::uint64_t made_ = 0;
    std::uint64_t written_ = 0;
};

} // namespace

void mutex_pool(const Load& load, Sink& sink) {
    MutexPool(load, sink).run();
}

} // namespace bench
