// What a journal keeps when its syncs fail or the power does.
#include "faulty_files.hpp"
#include "memory_file.hpp"
#include "spill/journal_file.hpp"
#include "spill/run_journal.hpp"
#include "spillway/pipeline.hpp"
#include "temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <iostream>
#include <map>
#include <random>
#include <set>

using namespace spillway;
using namespace spillway::test;

namespace {

JournalOptions kept_in(const TemporaryDirectory& directory) {
    return {.directory = directory.file("journal"), .fingerprint = {{"in.bam", "12 bytes"}, {"-r", ""}}};
}

/// Fails syncs by number, and remembers which file each sync was of.
class SyncFiles : public FaultyFiles {
public:
    std::map<int, int> failing; ///< Data syncs, counted from 0, and the errno of each.
    std::vector<int> synced;
    std::set<int> failed_files;
    bool retried = false;

    int open(int directory, const char* path, int flags, unsigned mode) override {
        const int file = FaultyFiles::open(directory, path, flags, mode);
        if ((flags & O_CREAT) != 0) failed_files.erase(file); // A number that is in use again.
        return file;
    }
    std::int64_t write(int file, std::span<const iovec> pieces, std::uint64_t offset) override {
        retried = retried || failed_files.contains(file);
        return FaultyFiles::write(file, pieces, offset);
    }
    int sync(int file, bool data_only) override {
        if (!data_only) return FaultyFiles::sync(file, data_only);
        retried = retried || failed_files.contains(file);
        synced.push_back(file);
        const auto fails = failing.find(static_cast<int>(synced.size()) - 1);
        if (fails == failing.end()) return FaultyFiles::sync(file, data_only);
        failed_files.insert(file);
        return -fails->second;
    }
};

void hand_over(RunJournal& journal, std::uint64_t item) {
    auto group = journal.begin_group();
    Key key;
    key.ordinals[0] = item;
    key.depth = 1;
    group->result(key, std::vector<std::byte>(100, static_cast<std::byte>(item)));
    journal.hand_over(std::move(group));
}

} // namespace

TEST_CASE("a failed sync is never tried again on the same file: what it held is written to another") {
    const TemporaryDirectory directory;
    const auto files = std::make_shared<SyncFiles>();
    files->failing = {{1, EIO}, {2, EINTR}, {5, ENOSPC}};
    JournalOptions options = kept_in(directory);
    options.files = files;
    options.commit_period = std::chrono::milliseconds(1);
    {
        RunJournal journal(options);
        journal.start();
        for (std::uint64_t item = 0; item < 20; ++item) {
            const std::uint64_t before = journal.statistics().commits + journal.statistics().failed_commits;
            hand_over(journal, item);
            while (journal.statistics().commits + journal.statistics().failed_commits == before)
                std::this_thread::yield();
        }
        journal.finish();
        CHECK(journal.statistics().failed_commits == 3);
        CHECK_FALSE(journal.statistics().broken);
    }
    CHECK_FALSE(files->retried);
    CHECK(files->synced.size() > 6);
    Journal again(kept_in(directory));
    CHECK(again.statistics().items_found == 20);
}

TEST_CASE("a journal whose every sync fails breaks, says so once, and the run goes on") {
    const TemporaryDirectory directory;
    const auto files = std::make_shared<SyncFiles>();
    for (int i = 0; i < 10000; ++i) files->failing[i] = i % 2 == 0 ? EIO : EINTR;
    JournalOptions options = kept_in(directory);
    options.files = files;
    std::vector<std::string> log;
    options.log = [&](std::string_view line) { log.emplace_back(line); };
    Journal journal(options);
    std::vector<int> results;
    auto run = pipeline<int>("going on")
                   .source(std::views::iota(0, 40))
                   .map("twice", [](int x) { return 2 * x; })
                   .in_order("collect", [&](int x) { results.push_back(x); });
    static_cast<void>(run.run({.threads = 2, .spill = SpillOptions{}, .journal = &journal}));
    REQUIRE(results.size() == 40);
    for (int i = 0; i < 40; ++i) CHECK(results[static_cast<std::size_t>(i)] == 2 * i);
    CHECK(journal.statistics().broken);
    CHECK_FALSE(files->retried);
    CHECK(log.size() == 1);
}

TEST_CASE("a directory that could not be synced is not synced again: no journal is begun in it any more") {
    const TemporaryDirectory directory;
    std::filesystem::create_directory(directory.file("journal"));
    for (const int error : {EIO, EINTR}) {
        const auto files = std::make_shared<FaultyFiles>();
        JournalDirectory journals(directory.file("journal"), files);
        files->fail_call = 1; // After the opening of the new journal.
        files->fault.error = error;
        FileHandle file;
        CHECK(journals.create(file) == error);
        const long calls = files->calls;
        CHECK(journals.create(file) == error);
        CHECK(files->calls == calls);
        CHECK(file.descriptor() < 0);
    }
}

namespace {

/// Records what reaches the one journal file, in order.
class RecordingFiles : public FaultyFiles {
public:
    struct Event {
        bool sync = false;
        std::uint64_t offset = 0;
        std::vector<std::byte> bytes;
    };
    std::vector<Event> events;

    std::int64_t write(int file, std::span<const iovec> pieces, std::uint64_t offset) override {
        Event event{false, offset, {}};
        for (const iovec& piece : pieces) {
            const auto* bytes = static_cast<const std::byte*>(piece.iov_base);
            event.bytes.insert(event.bytes.end(), bytes, bytes + piece.iov_len);
        }
        const std::int64_t done = FaultyFiles::write(file, pieces, offset);
        if (done > 0) {
            event.bytes.resize(static_cast<std::size_t>(done));
            events.push_back(std::move(event));
        }
        return done;
    }
    int sync(int file, bool data_only) override {
        const int result = FaultyFiles::sync(file, data_only);
        if (data_only && result == 0) events.push_back({true, 0, {}});
        return result;
    }
};

} // namespace

TEST_CASE(
    "after a power cut that dropped or reordered what was not synced the journal gives a prefix, and all that was") {
    const TemporaryDirectory directory;
    const auto files = std::make_shared<RecordingFiles>();
    JournalOptions options = kept_in(directory);
    options.files = files;
    options.commit_period = std::chrono::milliseconds(1);
    {
        RunJournal journal(options);
        journal.start();
        for (std::uint64_t item = 0; item < 150; ++item) {
            const std::uint64_t before = journal.statistics().commits;
            for (int i = 0; i < 5; ++i) hand_over(journal, item * 5 + static_cast<std::uint64_t>(i));
            if (item % 10 != 0) continue;
            const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(1);
            while (journal.statistics().commits == before && std::chrono::steady_clock::now() < patience)
                std::this_thread::yield();
        }
    }
    const auto scan = [](const std::vector<std::byte>& image) {
        std::vector<std::uint64_t> items;
        MemoryFile memory(image);
        const JournalScan found = scan_journal(
            memory, 0, image.size(), [&](const JournalRecord& record) { items.push_back(record.key.ordinals[0]); });
        if (!found.begun && !items.empty()) FAIL("records without a header");
        return items;
    };
    // What the whole file holds, and where the syncs left it.
    std::vector<std::byte> whole;
    const auto apply = [](std::vector<std::byte>& image, std::uint64_t offset, std::span<const std::byte> bytes) {
        image.resize(std::max<std::size_t>(image.size(), offset + bytes.size()));
        std::copy(bytes.begin(), bytes.end(), image.begin() + static_cast<std::ptrdiff_t>(offset));
    };
    for (const auto& event : files->events) {
        if (!event.sync) apply(whole, event.offset, event.bytes);
    }
    const std::vector<std::uint64_t> all = scan(whole);
    REQUIRE(all.size() == 750);
    REQUIRE(std::count_if(files->events.begin(), files->events.end(), [](const auto& e) { return e.sync; }) > 5);

    std::mt19937_64 random(8); // NOLINT: a fixed seed is wanted
    std::size_t lost_some = 0;
    for (int state = 0; state < 10'000; ++state) {
        const std::size_t cut = random() % (files->events.size() + 1);
        std::size_t synced = 0;
        for (std::size_t i = 0; i < cut; ++i) {
            if (files->events[i].sync) synced = i;
        }
        std::vector<std::byte> image;
        for (std::size_t i = 0; i < synced; ++i) {
            if (!files->events[i].sync) apply(image, files->events[i].offset, files->events[i].bytes);
        }
        const std::vector<std::uint64_t> durable = scan(image);
        // Of what was written since, each sector of 512 bytes got there or did not; the file may have its new length.
        std::vector<std::byte> since = image;
        for (std::size_t i = synced; i < cut; ++i) {
            if (!files->events[i].sync) apply(since, files->events[i].offset, files->events[i].bytes);
        }
        if (random() % 2 == 0) image.resize(image.size() + random() % (since.size() - image.size() + 1));
        const std::uint64_t odds = random() % 4;
        for (std::size_t at = 0; at < since.size(); at += 512) {
            if (random() % 4 < odds) continue;
            const std::size_t count = std::min<std::size_t>(512, since.size() - at);
            apply(image, at, std::span(since).subspan(at, count));
        }
        const std::vector<std::uint64_t> found = scan(image);
        if (found.size() > all.size() || !std::equal(found.begin(), found.end(), all.begin())) FAIL("no prefix");
        if (found.size() < durable.size()) FAIL("something synced is lost");
        if (found.size() < scan(since).size()) ++lost_some;
    }
    CHECK(lost_some > 1000);
}
