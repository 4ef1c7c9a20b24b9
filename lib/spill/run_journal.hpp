// A run's side of its journal: what earlier runs finished, and the thread that writes down what this one does.
//
//     worker:   auto group = journal.begin_group(); group->result(key, bytes) ... ;
//     journal.hand_over(std::move(group));
//     thread:   take all groups that were handed over -> write -> once in a commit period: sync, let them go -> sleep
//
// Workers never wait for the disk, unless more is waiting to be written than `most_waiting`. What is not yet synced
// stays in memory, so that after a failed sync it is written anew to another file: a failed sync is never tried again
// on the same one, since the kernel may have dropped the pages and would then report success.
#pragma once

#include "base/atomics.hpp"
#include "base/hand_over.hpp"
#include "spill/finished_items.hpp"
#include "spill/journal_directory.hpp"
#include "spillway/journal.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

namespace spillway {

/// Records of one worker, for one hand-over.
class JournalGroup {
public:
    explicit JournalGroup(std::uint64_t salt) noexcept : salt_(salt) {}

    void result(const Key& key, std::span<const std::byte> encoded) { add(key, JournalKind::result, encoded); }
    void nothing(const Key& key) { add(key, JournalKind::nothing, {}); }
    void family(const Key& key, std::uint64_t children) {
        add(key, JournalKind::family, std::as_bytes(std::span(&children, 1)));
    }
    [[nodiscard]] bool empty() const noexcept { return records_ == 0; }

private:
    friend class RunJournal;

    /// One that is too long for a record is left out: its source item is then never finished, and computed again.
    void add(const Key& key, JournalKind kind, std::span<const std::byte> rest) {
        if (append_journal_record(bytes_, salt_, key, kind, rest)) ++records_;
    }

    std::uint64_t salt_;
    std::vector<std::byte> bytes_;
    std::uint64_t records_ = 0;
    JournalGroup* next_ = nullptr;
};

/// Thread safety: contains, begin_group, hand_over and statistics from any thread; the others by one at a time.
class RunJournal {
public:
    explicit RunJournal(JournalOptions options);
    ~RunJournal();
    RunJournal(const RunJournal&) = delete;
    RunJournal& operator=(const RunJournal&) = delete;

    [[nodiscard]] bool contains(const Key& key) const noexcept { return finished_.contains(key); }
    /// The candidate's results in order, and the end of each family after its last. Throws Error(disk), and what the
    /// functions throw.
    void replay(const Key& key, const std::function<void(const Key&, std::span<const std::byte>)>& on_result,
                const std::function<void(const Key&)>& on_end);

    /// Starts the thread. Throws Error(usage) if an earlier run has not ended, Error(disk) if no file can be made.
    void start();
    [[nodiscard]] std::unique_ptr<JournalGroup> begin_group() const { return std::make_unique<JournalGroup>(salt_); }
    /// Waits only while far too much is waiting to be written.
    void hand_over(std::unique_ptr<JournalGroup> group);
    /// All that was handed over is synced, or has failed for good. Nothing after it.
    void finish() noexcept;

    /// As Journal's.
    void remove();
    [[nodiscard]] JournalStatistics statistics() const noexcept;

    /// Bytes handed over and not yet synced, at most, but for one group of each worker.
    static constexpr std::uint64_t most_waiting = std::uint64_t{32} << 20U;

private:
    void load(const std::string& name);
    [[nodiscard]] int begin_file();
    void write_until_stopped() noexcept;
    void take_handed_over();
    /// All that is waiting, to the file. False: it failed, and some of it is not there.
    [[nodiscard]] bool write();
    /// One group commit of all that is waiting. False: it failed, and all of it still waits.
    [[nodiscard]] bool commit();
    /// Notes a failure; false.
    bool failed(int error) noexcept;
    void give_up(int error);
    /// False: it was woken for the end.
    [[nodiscard]] bool sleep(std::chrono::milliseconds period) noexcept;

    JournalOptions options_;
    JournalDirectory directory_;
    std::string fingerprint_;
    std::uint64_t salt_ = 0;
    FinishedItems finished_;
    std::vector<std::string> found_;     ///< Names of the journals that finished_ leads to.
    std::size_t open_ = ~std::size_t{0}; ///< Which of them is open for replay: one descriptor does for any number.
    FileHandle open_file_;

    // The thread's, and before and after it the owner's.
    FileHandle file_;
    std::uint64_t end_ = 0;   ///< Where the next group goes.
    bool distrusted_ = false; ///< A sync of file_ failed.
    std::vector<std::unique_ptr<JournalGroup>> waiting_;
    std::size_t written_ = 0; ///< The first so many of them are in file_, not synced yet.
    std::thread thread_;
    FileHandle wake_; ///< An eventfd that ends the thread's sleep, for good.

    HandOver<JournalGroup, &JournalGroup::next_> handed_over_;
    std::atomic<std::uint64_t> bytes_waiting_{0};
    std::atomic<bool> broken_{false};
    std::atomic<std::uint64_t> records_{0}, bytes_{0}, commits_{0}, failed_commits_{0};
    std::atomic<int> last_error_{0};
};

} // namespace spillway
