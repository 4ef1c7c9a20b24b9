#include "spill/run_journal.hpp"

#include "spillway/error.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace spillway {
namespace {

constexpr const char* resuming = "resuming";

/// What is written survives the process, and what is synced a power cut, too: writing is cheap, so a kill costs less.
constexpr std::chrono::milliseconds write_period{20};

std::string checked_text(const std::vector<Fingerprint>& fingerprint) {
    std::string text = text_of(fingerprint);
    const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    if (lines != fingerprint.size() || text.size() > most_fingerprint_bytes)
        throw Error(ErrorCode::usage, "opening the journal", "", "a fingerprint with a line break, or too long");
    return text;
}

std::vector<Fingerprint> parts_of(const std::string& text) {
    std::vector<Fingerprint> parts;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::size_t tab = std::min(text.find('\t', at), end);
        parts.push_back({text.substr(at, tab - at), tab < end ? text.substr(tab + 1, end - tab - 1) : std::string()});
        at = end + 1;
    }
    return parts;
}

/// `in.bam was "12 bytes" and is "13 bytes"`: every part that differs.
std::string difference(const std::string& was, const std::string& is) {
    const auto old_parts = parts_of(was), new_parts = parts_of(is);
    const auto value_of = [](const std::vector<Fingerprint>& parts, const std::string& name) {
        const auto at = std::find_if(parts.begin(), parts.end(), [&](const Fingerprint& p) { return p.name == name; });
        return at != parts.end() ? std::optional(at->value) : std::nullopt;
    };
    std::string text;
    const auto say = [&](const std::string& name, const std::string& before, const std::string& now) {
        text += (text.empty() ? "" : "; ") + name + " was \"" + before + "\" and is \"" + now + '"';
    };
    for (const Fingerprint& part : new_parts) {
        const auto before = value_of(old_parts, part.name);
        if (before != part.value) say(part.name, before.value_or(""), part.value);
    }
    for (const Fingerprint& part : old_parts) {
        if (!value_of(new_parts, part.name)) say(part.name, part.value, "");
    }
    return text.empty() ? "the parts are in another order" : text;
}

} // namespace

RunJournal::RunJournal(JournalOptions options)
    : options_(std::move(options)),
      directory_(options_.directory, options_.files != nullptr ? options_.files : system_files()),
      fingerprint_(checked_text(options_.fingerprint)) {
    std::random_device random;
    salt_ = std::uint64_t{random()} << 32U | random();
    for (const std::string& name : directory_.journals()) load(name);
    finished_.keep_finished();
    // One that finished nothing is of no use to anyone: we hold the directory, so nobody is writing it.
    std::vector<bool> useful(found_.size());
    for (const std::uint32_t number : finished_.files()) useful[number] = true;
    for (std::size_t i = 0; i != found_.size(); ++i) {
        if (!useful[i]) directory_.remove(found_[i]);
    }
}

RunJournal::~RunJournal() {
    finish();
}

void RunJournal::load(const std::string& name) {
    std::uint64_t bytes = 0;
    FileHandle file = directory_.open(name, bytes);
    const auto number = static_cast<std::uint32_t>(found_.size());
    found_.push_back(name);
    const JournalScan scan = scan_journal(directory_.files(), file.descriptor(), bytes,
                                          [&](const JournalRecord& record) { finished_.add(number, record); });
    if (scan.error != 0)
        throw system_error(scan.error, "reading the journal", directory_.path() + '/' + name, ErrorCode::disk);
    if (!scan.begun) return; // Killed before its header was whole.
    if (scan.fingerprint != fingerprint_) {
        throw Error(ErrorCode::usage, resuming, directory_.path(),
                    "it belongs to another run: " + difference(scan.fingerprint, fingerprint_) +
                        ": name another directory, or empty this one to start anew");
    }
}

void RunJournal::replay(const Key& key, const std::function<void(const Key&, std::span<const std::byte>)>& on_result,
                        const std::function<void(const Key&)>& on_end) {
    std::vector<std::byte> encoded;
    finished_.visit(
        key,
        [&](const FinishedItems::Place& place) {
            const JournalRecord& record = place.record;
            const auto fail = [&](const std::string& detail) {
                throw Error(ErrorCode::disk, resuming, directory_.path() + '/' + found_[place.file],
                            "candidate " + to_string(record.key) + ": " + detail);
            };
            if (open_ != place.file) {
                std::uint64_t bytes = 0;
                open_file_ = directory_.open(found_[place.file], bytes);
                open_ = place.file;
            }
            encoded.resize(static_cast<std::size_t>(record.length));
            iovec piece{encoded.data(), encoded.size()};
            const int error =
                read_all(directory_.files(), open_file_.descriptor(), std::span(&piece, 1), record.offset);
            if (error == ENODATA) fail("the file became shorter");
            if (error != 0) fail(std::generic_category().message(error));
            if (XXH3_64bits(encoded.data(), encoded.size()) != record.hash) fail("the result is damaged");
            on_result(record.key, encoded);
        },
        on_end);
}

int RunJournal::begin_file() {
    if (const int error = directory_.create(file_)) return error;
    std::vector<std::byte> header = make_journal_header(salt_, fingerprint_);
    iovec piece{header.data(), header.size()};
    if (const int error = write_all(directory_.files(), file_.descriptor(), std::span(&piece, 1), 0)) return error;
    end_ = header.size();
    written_ = 0;
    distrusted_ = false;
    return 0;
}

void RunJournal::start() {
    if (thread_.joinable()) throw Error(ErrorCode::usage, resuming, directory_.path(), "the journal is in use");
    if (const int error = begin_file())
        throw system_error(error, "making a journal", directory_.path(), ErrorCode::disk);
    wake_ = FileHandle(directory_.files(), ::eventfd(0, EFD_CLOEXEC));
    if (wake_.descriptor() < 0) throw system_error(errno, "making a journal", directory_.path(), ErrorCode::disk);
    try {
        thread_ = std::thread([this] { write_until_stopped(); });
    } catch (const std::system_error& error) {
        throw Error(ErrorCode::runtime, "making a journal", directory_.path(), error.what());
    }
}

void RunJournal::hand_over(std::unique_ptr<JournalGroup> group) {
    if (group->empty()) return;
    while (bytes_waiting_.load(std::memory_order_relaxed) > most_waiting && !broken_.load(std::memory_order_relaxed))
        std::this_thread::sleep_for(std::chrono::milliseconds(1)); // The disk is slower than the run: so is the run.
    if (broken_.load(std::memory_order_relaxed)) return;
    bytes_waiting_.fetch_add(group->bytes_.size(), std::memory_order_relaxed);
    handed_over_.give(*group.release());
}

void RunJournal::take_handed_over() {
    for (JournalGroup* group = handed_over_.take_all(); group != nullptr;) {
        JournalGroup* const next = group->next_;
        waiting_.emplace_back(group);
        group = next;
    }
}

bool RunJournal::failed(int error) noexcept {
    failed_commits_.fetch_add(1, std::memory_order_relaxed);
    last_error_.store(error, std::memory_order_relaxed);
    return false;
}

bool RunJournal::write() {
    if (waiting_.empty()) return true;
    if (file_.descriptor() < 0 || distrusted_) {
        distrusted_ = true; // Until the new file is whole, should it not become so.
        if (const int error = begin_file()) return failed(error);
    }
    // Groups are of a few records each: one call for as many as it takes.
    std::vector<iovec> pieces;
    while (written_ != waiting_.size()) {
        pieces.clear();
        std::uint64_t bytes = 0;
        const std::size_t count = std::min<std::size_t>(waiting_.size() - written_, IOV_MAX);
        for (const auto& group : std::span(waiting_).subspan(written_, count)) {
            pieces.push_back({group->bytes_.data(), group->bytes_.size()});
            bytes += group->bytes_.size();
        }
        // Again to the same place after a failure: what it left there is written over.
        if (const int error = write_all(directory_.files(), file_.descriptor(), pieces, end_)) return failed(error);
        end_ += bytes;
        written_ += count;
    }
    return true;
}

bool RunJournal::commit() {
    if (waiting_.empty()) return true;
    if (!write()) return false;
    const int synced = directory_.files().sync(file_.descriptor(), true);
    if (synced < 0) {
        distrusted_ = true;
        return failed(-synced);
    }
    std::uint64_t records = 0, bytes = 0;
    for (const std::unique_ptr<JournalGroup>& group : waiting_) {
        records += group->records_;
        bytes += group->bytes_.size();
    }
    records_.fetch_add(records, std::memory_order_relaxed);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    commits_.fetch_add(1, std::memory_order_relaxed);
    waiting_.clear();
    written_ = 0;
    bytes_waiting_.fetch_sub(bytes, std::memory_order_relaxed);
    return true;
}

void RunJournal::give_up(int error) {
    broken_.store(true, std::memory_order_relaxed);
    waiting_.clear();
    if (!options_.log) return;
    try {
        options_.log("the journal in " + directory_.path() + " can no longer be written (" +
                     std::generic_category().message(error) +
                     "): the run goes on, and could be resumed from here only");
    } catch (...) { // NOLINT(bugprone-empty-catch): the statistics say so, too
    }
}

bool RunJournal::sleep(std::chrono::milliseconds period) noexcept {
    pollfd wake{wake_.descriptor(), POLLIN, 0};
    return ::poll(&wake, 1, static_cast<int>(period.count())) <= 0;
}

void RunJournal::write_until_stopped() noexcept {
    try {
        bool done = true;
        auto synced = std::chrono::steady_clock::now();
        for (bool more = true; more;) {
            more = sleep(done ? std::min(write_period, options_.commit_period) : options_.commit_period);
            take_handed_over();
            if (broken_.load(std::memory_order_relaxed)) {
                waiting_.clear();
                continue;
            }
            const auto now = std::chrono::steady_clock::now();
            if (more && done && now - synced < options_.commit_period) {
                done = write();
                continue;
            }
            synced = now;
            // A full disk may have room again; what waits is written then. But not for ever, and not at the end.
            done = commit() || (!more && commit());
            if (!done && (!more || bytes_waiting_.load(std::memory_order_relaxed) > most_waiting / 2))
                give_up(last_error_.load(std::memory_order_relaxed));
        }
    } catch (const std::exception&) { // Out of memory.
        give_up(ENOMEM);
    }
}

void RunJournal::finish() noexcept {
    if (!thread_.joinable()) return;
    const std::uint64_t one = 1;
    while (::write(wake_.descriptor(), &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    thread_.join();
    take_handed_over(); // After give_up().
    waiting_.clear();
}

void RunJournal::remove() {
    finish();
    file_ = FileHandle();
    open_file_ = FileHandle();
    for (const std::string& name : directory_.journals()) directory_.remove(name);
}

JournalStatistics RunJournal::statistics() const noexcept {
    const auto value = [](const auto& counter) { return counter.load(std::memory_order_relaxed); };
    JournalStatistics all;
    all.items_found = finished_.size();
    all.records = value(records_);
    all.bytes = value(bytes_);
    all.commits = value(commits_);
    all.failed_commits = value(failed_commits_);
    all.last_error = value(last_error_);
    all.broken = value(broken_);
    return all;
}

Journal::Journal(JournalOptions options) : run_(std::make_unique<RunJournal>(std::move(options))) {}
Journal::~Journal() = default;
void Journal::remove() {
    run_->remove();
}
JournalStatistics Journal::statistics() const noexcept {
    return run_->statistics();
}

} // namespace spillway
