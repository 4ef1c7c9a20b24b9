// Segments and journals that were cut, flipped and overwritten: what is read is what was written, or an error.
#include "faulty_files.hpp"
#include "memory_file.hpp"
#include "spill/journal_file.hpp"
#include "spill/store.hpp"
#include "spillway/error.hpp"
#include "temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <random>

#include <unistd.h>

using namespace spillway;
using namespace spillway::test;

namespace {

using Bytes = std::vector<std::byte>;

Bytes random_bytes(std::mt19937_64& random, std::size_t size) {
    Bytes bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
}

/// A full segment of 64 KiB in a file, and what lies where in it: every other record is compressed.
struct Segment {
    static constexpr std::uint64_t bytes = 65536;

    struct Record {
        SpillPlace place;
        Bytes payload;
        [[nodiscard]] std::uint64_t begin() const { return std::uint64_t{place.offset} * 8; }
        [[nodiscard]] std::uint64_t end() const { return begin() + (48 + place.length + 7) / 8 * 8; }
    };

    explicit Segment(std::size_t largest) {
        std::mt19937_64 random(3); // NOLINT: a fixed seed is wanted
        for (;;) {
            Bytes payload = random_bytes(random, 1 + random() % largest);
            if (records.size() % 2 == 0) { // compressed to about a half
                const auto half = payload.begin() + static_cast<std::ptrdiff_t>(payload.size() / 2);
                std::copy(payload.begin(), half, half);
            }
            const SpillResult result = store.write(0, {records.size(), 0, 0, 0}, payload);
            REQUIRE(result);
            if (result.place.segment != 0) break; // The first is full, and thus in the file.
            records.push_back({result.place, std::move(payload)});
        }
        file = files->opened.at(1);
        image.resize(bytes);
        REQUIRE(::pread(file, image.data(), image.size(), 0) > 0);
    }

    void put(std::uint64_t at, const std::byte* from, std::size_t count) const {
        if (::pwrite(file, from, count, static_cast<off_t>(at)) != static_cast<ssize_t>(count)) FAIL("pwrite");
    }
    /// 1: as written, 0: an error, -1: something else.
    int read(const Record& record) {
        try {
            store.read(record.place, out);
        } catch (const Error& error) {
            return error.code() == ErrorCode::disk ? 0 : -1;
        }
        return out == record.payload ? 1 : -1;
    }

    TemporaryDirectory directory;
    std::shared_ptr<FaultyFiles> files = std::make_shared<FaultyFiles>();
    SpillStore store{{.directory = directory.path(), .allow_tmpfs = true},
                     1,
                     files,
                     {.bytes = bytes,
                      .writeback = bytes,
                      .buffer = std::uint64_t{72} << 10U,
                      .compression = Compression::Choice::always}};
    std::vector<Record> records;
    int file = -1;
    Bytes image, out;
};

struct Journaled {
    std::vector<JournalRecord> records;
    std::vector<std::uint64_t> ends; ///< Of each record in the file.
    Bytes image;
};

Journaled make_journal(int count, std::size_t largest) {
    std::mt19937_64 random(4); // NOLINT: a fixed seed is wanted
    Journaled made;
    made.image = make_journal_header(random(), text_of({{"in.bam", "12 bytes"}, {"-r", ""}}));
    std::uint64_t salt = 0;
    std::memcpy(&salt, &made.image[offsetof(JournalHeader, salt)], sizeof(salt));
    for (int i = 0; i < count; ++i) {
        Key key;
        key.ordinals = {static_cast<std::uint64_t>(i), 7, 0, 0};
        key.depth = 2;
        const auto kind = static_cast<JournalKind>(1 + i % 3);
        Bytes rest;
        if (kind == JournalKind::result) rest = random_bytes(random, random() % largest);
        if (kind == JournalKind::family) rest = random_bytes(random, 8);
        REQUIRE(append_journal_record(made.image, salt, key, kind, rest));
        made.ends.push_back(made.image.size());
    }
    MemoryFile files(made.image);
    const JournalScan scan =
        scan_journal(files, 0, made.image.size(), [&](const JournalRecord& record) { made.records.push_back(record); });
    REQUIRE(scan.begun);
    REQUIRE(scan.fingerprint == "in.bam\t12 bytes\n-r\t\n");
    REQUIRE(scan.valid_end == made.image.size());
    REQUIRE(made.records.size() == static_cast<std::size_t>(count));
    return made;
}

bool same(const JournalRecord& a, const JournalRecord& b) {
    return a.key == b.key && a.kind == b.kind && a.children == b.children && a.offset == b.offset &&
           a.length == b.length && a.hash == b.hash;
}

/// How many of the first records the image still gives; -1: it gives something else.
long prefix_of(const Journaled& made, const Bytes& image) {
    std::size_t count = 0;
    bool right = true;
    MemoryFile files(image);
    const JournalScan scan = scan_journal(files, 0, image.size(), [&](const JournalRecord& record) {
        right = right && count < made.records.size() && same(record, made.records[count]);
        ++count;
    });
    if (scan.begun && scan.fingerprint != "in.bam\t12 bytes\n-r\t\n") right = false;
    return right ? static_cast<long>(count) : -1;
}

void damage_segment(std::size_t rounds) {
    Segment segment(3000);
    std::mt19937_64 random(6); // NOLINT: a fixed seed is wanted
    for (std::size_t round = 0; round < rounds; ++round) {
        const std::uint64_t at = random() % (Segment::bytes - 64);
        const Bytes wrong = random_bytes(random, 2 + random() % 60);
        segment.put(at, wrong.data(), wrong.size());
        for (const Segment::Record& record : segment.records) {
            if (record.end() <= at || record.begin() >= at + wrong.size()) continue;
            const std::uint64_t from = std::max(at, record.begin()), to = std::min(at + wrong.size(), record.end());
            const bool changed = std::memcmp(&wrong[from - at], &segment.image[from], to - from) != 0;
            if (segment.read(record) != (changed ? 0 : 1)) FAIL("round " << round << " at " << at);
        }
        segment.put(at, &segment.image[at], wrong.size());
    }
}

void damage_journal(std::size_t rounds) {
    const Journaled made = make_journal(30, 400);
    const std::uint64_t records_begin = made.records[0].offset - sizeof(RecordHeader) - sizeof(JournalEntry);
    std::mt19937_64 random(7); // NOLINT: a fixed seed is wanted
    for (std::size_t round = 0; round < rounds; ++round) {
        Bytes image = made.image;
        const std::size_t at = random() % (image.size() - 64);
        const Bytes wrong = random_bytes(random, 2 + random() % 60);
        std::memcpy(&image[at], wrong.data(), wrong.size());
        const long count = prefix_of(made, image);
        // At most those that end before the first byte that changed, which need not be the first that was overwritten.
        const auto changed = std::mismatch(image.begin(), image.end(), made.image.begin()).first - image.begin();
        const auto before = std::upper_bound(made.ends.begin(), made.ends.end(), static_cast<std::uint64_t>(changed));
        // Damage to the header takes all with it.
        const bool header = static_cast<std::uint64_t>(changed) < records_begin;
        const auto whole = header ? 0 : before - made.ends.begin();
        if (count != whole) FAIL("round " << round << " at " << at);
    }
}

} // namespace

TEST_CASE("a segment of 64 KiB cut at every byte gives the records before the cut, and errors for the others") {
    Segment segment(12000);
    for (std::uint64_t length = Segment::bytes; length-- > 0;) {
        if (::ftruncate(segment.file, static_cast<off_t>(length)) != 0) FAIL("ftruncate");
        for (const Segment::Record& record : segment.records) {
            // Each cut is seen by the record that it goes through; now and then by all.
            if (length % 256 != 0 && (record.end() <= length || record.begin() > length)) continue;
            if (segment.read(record) != (record.end() <= length ? 1 : 0)) FAIL("cut at " << length);
        }
    }
}

TEST_CASE("each bit of the first 16 KiB of a segment, flipped, is found by the first reader or by the record's own") {
    Segment segment(3000);
    std::size_t found = 0;
    const auto flip_all = [&](std::uint64_t begin, std::uint64_t end, const Segment::Record& record) {
        for (std::uint64_t at = begin; at < end; ++at) {
            for (unsigned bit = 0; bit < 8; ++bit) {
                const std::byte flipped = segment.image[at] ^ std::byte{1} << bit;
                segment.put(at, &flipped, 1);
                if (segment.read(record) != 0) FAIL("byte " << at << " bit " << bit);
                ++found;
            }
            segment.put(at, &segment.image[at], 1);
        }
    };
    // The header is looked at until it was found whole once.
    flip_all(0, 4096, segment.records.back());
    for (const Segment::Record& record : segment.records) {
        if (segment.read(record) != 1) FAIL("not restored");
        if (record.begin() < 16384) flip_all(record.begin(), std::min<std::uint64_t>(record.end(), 16384), record);
        if (segment.read(record) != 1) FAIL("not restored");
    }
    CHECK(found == 131'072);
}

TEST_CASE("random damage to a segment is found") {
    damage_segment(100'000);
}

TEST_CASE("a journal cut at every byte gives the records before the cut") {
    const Journaled made = make_journal(60, 2000);
    Bytes image = made.image;
    while (!image.empty()) {
        image.pop_back();
        const auto whole = std::upper_bound(made.ends.begin(), made.ends.end(), image.size()) - made.ends.begin();
        if (prefix_of(made, image) != whole) FAIL("cut at " << image.size());
    }
}

TEST_CASE("each bit of a journal, flipped, is found: the records before it are given, and no other") {
    const Journaled made = make_journal(12, 200);
    const std::uint64_t records_begin = made.records[0].offset - sizeof(RecordHeader) - sizeof(JournalEntry);
    Bytes image = made.image;
    for (std::size_t at = 0; at < image.size(); ++at) {
        for (unsigned bit = 0; bit < 8; ++bit) {
            image[at] ^= std::byte{1} << bit;
            const long count = prefix_of(made, image);
            const auto whole = std::upper_bound(made.ends.begin(), made.ends.end(), at) - made.ends.begin();
            if (count != (at < records_begin ? 0 : whole)) FAIL("byte " << at << " bit " << bit << ": " << count);
            image[at] ^= std::byte{1} << bit;
        }
    }
}

TEST_CASE("random damage to a journal is found") {
    damage_journal(30'000);
}

TEST_CASE("random damage to segments and journals is found, a million times", "[.long]") {
    damage_segment(1'000'000);
    damage_journal(1'000'000);
}
