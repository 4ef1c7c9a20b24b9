// Whatever bytes the readers of journals, segments and codecs are given, the outcome is what was written or an error.
//
// libFuzzer's entry: the first byte chooses the reader, of those that SPILLWAY_FUZZ leaves. replay.cpp calls it without
// libFuzzer.
#include "spill/compression.hpp"
#include "spill/finished_items.hpp"
#include "spill/journal_file.hpp"
#include "spill/memory_file.hpp"
#include "spill/record.hpp"
#include "spill/run_journal.hpp"
#include "spill/segment.hpp"
#include "spillway/codec.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include <sys/stat.h>
#include <unistd.h>

using namespace spillway;

namespace {

using Bytes = std::span<const std::byte>;

void require(bool holds) {
    if (!holds) std::abort();
}

/// Every result that is given lies inside its file and is what its hash says, and every finished item can be visited,
/// whichever of the journals has which part of it.
void scan_all(std::initializer_list<Bytes> images) {
    FinishedItems items;
    std::uint32_t number = 0;
    for (const Bytes image : images) {
        test::MemoryFile files(image);
        const JournalScan found = scan_journal(files, 0, image.size(), [&](const JournalRecord& record) {
            require(record.key.depth >= 1 && record.key.depth <= max_key_depth);
            require(record.offset <= image.size() && record.length <= image.size() - record.offset);
            items.add(number, record);
        });
        require(found.valid_end <= image.size() && found.error == 0);
        ++number;
    }
    items.keep_finished();
    require(items.size() == 0 || !items.files().empty());
    for (std::uint64_t item = 0; item < 8; ++item) {
        Key key;
        key.ordinals[0] = item;
        key.depth = 1;
        if (!items.contains(key)) continue;
        Key last;
        items.visit(
            key,
            [&](const FinishedItems::Place& place) {
                require(place.record.key.ordinals[0] == item && last.ordinals <= place.record.key.ordinals);
                last = place.record.key;
                require(place.file < images.size());
                const Bytes result = images.begin()[place.file].subspan(place.record.offset, place.record.length);
                require(XXH3_64bits(result.data(), result.size()) == place.record.hash);
            },
            [&](const Key& ended) { require(ended.ordinals[0] == item); });
    }
}

void scan(Bytes image) {
    scan_all({image});
}

/// Records whose checksums hold but whose meaning the input chose: four bytes a record, and its rest.
std::vector<std::byte> build(Bytes in) {
    std::vector<std::byte> image = make_journal_header(7, "in.bam\t12 bytes\n");
    while (in.size() >= 4) {
        Key key;
        const auto at = [&](std::size_t i) { return static_cast<unsigned>(in[i]); };
        key.depth = at(1) % 6; // 0 and 5 are no depths.
        for (std::size_t i = 0; i < std::min<std::size_t>(key.depth, max_key_depth); ++i)
            key.ordinals[i] = (at(2) >> 2 * i) % 4;
        const std::size_t length = std::min<std::size_t>(at(3) % 32, in.size() - 4);
        std::vector<std::byte> rest(in.begin() + 4, in.begin() + 4 + static_cast<std::ptrdiff_t>(length));
        const auto kind = static_cast<JournalKind>(at(0) % 5);
        if (kind == JournalKind::family && at(0) % 2 == 0) {
            rest.assign(8, std::byte{0});
            rest[0] = static_cast<std::byte>(at(3) % 5);
        }
        require(append_journal_record(image, 7, key, kind, rest));
        in = in.subspan(4 + length);
    }
    return image;
}

void build_and_scan(Bytes in) {
    scan(build(in));
}

/// As a run that is resumed a second time finds them.
void build_two_and_scan(Bytes in) {
    if (in.empty()) return;
    const std::size_t border = static_cast<std::size_t>(in[0]) * (in.size() - 1) / 255;
    const std::vector<std::byte> first = build(in.subspan(1, border)), second = build(in.subspan(1 + border));
    scan_all({first, second});
}

/// A directory with one journal in it.
class OneJournal : public test::MemoryFile {
public:
    explicit OneJournal(Bytes image) : MemoryFile(image), bytes_(image.size()) {}

    int make_directory(int, const char*, unsigned) override { return -EEXIST; }
    int open(int, const char* path, int, unsigned) override { return path == name ? file : directory; }
    void close(int) noexcept override {}
    int lock(int) override { return 0; }
    int unlink(int, const char*) override { return 0; }
    int list(int, std::vector<std::string>& names) override {
        names.push_back(name);
        return 0;
    }
    int status(int of, struct stat& out) override {
        out = {};
        out.st_uid = ::geteuid();
        out.st_mode = of == file ? S_IFREG | S_IRUSR : S_IFDIR | S_IRWXU;
        out.st_nlink = 1;
        out.st_size = static_cast<off_t>(bytes_);
        return 0;
    }

private:
    static constexpr int directory = 1000, file = 1001;
    const std::string name = "journal-00000001";
    std::size_t bytes_;
};

/// As a resumed run takes what an earlier one finished: results in order, each below the key that was asked for, and the
/// end of each family after them.
void resume(Bytes image) {
    try {
        RunJournal journal({.directory = "kept",
                            .fingerprint = {{"in.bam", "12 bytes"}},
                            .files = std::make_shared<OneJournal>(image)});
        for (std::uint64_t item = 0; item < 8; ++item) {
            Key key;
            key.ordinals[0] = item;
            key.depth = 1;
            if (!journal.contains(key)) continue;
            Key last;
            journal.replay(
                key,
                [&](const Key& found, Bytes result) {
                    require(found.ordinals[0] == item && last.ordinals <= found.ordinals);
                    require(result.size() <= image.size());
                    last = found;
                },
                [&](const Key& ended) { require(ended.ordinals[0] == item); });
        }
    } catch (const Error& error) {
        require(error.code() == ErrorCode::usage); // Another run's: what is whole is read back whole.
    }
}

void build_and_resume(Bytes in) {
    resume(build(in));
}

void check_record(Bytes in) {
    RecordHeader header;
    if (in.size() < sizeof(header)) return;
    std::memcpy(&header, in.data(), sizeof(header));
    const Bytes payload = in.subspan(sizeof(header));
    const RecordHeader made = make_record_header(header.key, 3, payload);
    require(record_fault(made, made.check, 3, payload) == nullptr);
    // What the input says of itself is believed only where it is what we would have written.
    if (record_fault(header, header.check, 3, payload) == nullptr)
        require(std::memcmp(&header, &made, sizeof(header)) == 0);
}

/// A stored record: what the input says of itself is believed only where it is what we would have written.
void check_stored(Bytes in) {
    StoredHeader header;
    if (in.size() < sizeof(header)) return;
    std::memcpy(&header, in.data(), sizeof(header));
    const Bytes stored = in.subspan(sizeof(header));
    const auto length = static_cast<std::uint32_t>(stored.size());
    const bool possible = header.raw >= length && header.raw / 255 <= length;
    const StoredHeader made = make_stored_header(header.key, 3, possible ? header.raw : length, stored);
    const SpillPlace place{.length = length, .check = check_of(made)};
    require(stored_fault(made, place, 3, stored) == nullptr);
    const SpillPlace claimed{.length = length, .check = check_of(header)};
    if (stored_fault(header, claimed, 3, stored) == nullptr) require(std::memcmp(&header, &made, sizeof(header)) == 0);
}

/// As a store reads, from a place that the input chose: nothing outside the segment, and no more raw bytes than the stored
/// ones can have been.
void read_place(Bytes in) {
    constexpr std::uint64_t segment_bytes = 65536;
    struct {
        std::uint32_t offset = 0, length = 0, raw = 0;
    } chosen;
    if (in.size() < sizeof(chosen) + 1) return;
    std::memcpy(&chosen, in.data(), sizeof(chosen));
    const bool small = (static_cast<unsigned>(in[sizeof(chosen)]) & 1U) != 0,
               honest = (static_cast<unsigned>(in[sizeof(chosen)]) & 2U) != 0;
    in = in.subspan(sizeof(chosen) + 1);
    SpillPlace place{.offset = chosen.offset, .length = chosen.length};
    if (small) {
        place.offset %= 8500;
        place.length = static_cast<std::uint32_t>(place.length % (in.size() + 8));
        chosen.raw %= 70'000;
    }
    const auto begin = record_begin(place, segment_bytes);
    require(begin.has_value() == (std::uint64_t{place.offset} * 8 >= segment_header_bytes &&
                                  std::uint64_t{place.offset} * 8 + stored_bytes(place.length) <= segment_bytes));
    if (!begin) return;
    std::vector<std::byte> segment(segment_bytes);
    const Bytes fits = in.first(std::min<std::size_t>(in.size(), segment_bytes - *begin - sizeof(StoredHeader)));
    std::copy(fits.begin(), fits.end(), segment.begin() + static_cast<std::ptrdiff_t>(*begin + sizeof(StoredHeader)));
    const Bytes record = Bytes(segment).subspan(*begin + sizeof(StoredHeader));
    const Bytes stored = record.first(place.length),
                padding = record.subspan(place.length, padding_bytes(place.length));
    StoredHeader header = make_stored_header({}, 3, chosen.raw, stored);
    if (!honest) header.hash ^= chosen.raw | 1U;
    place.check = check_of(header);
    if (stored_fault(header, place, 3, stored, padding) != nullptr) return;
    require(honest && header.stored == place.length && header.raw >= header.stored);
    require(std::all_of(padding.begin(), padding.end(), [](std::byte byte) { return byte == std::byte{0}; }));
    if (header.raw == header.stored) return;
    require(header.raw / 255 <= header.stored);
    std::vector<std::byte> raw(header.raw);
    static_cast<void>(decompress(stored, raw));
}

/// The beginning of a segment is one of ours, or it is refused.
void check_segment(Bytes in) {
    const SegmentHeader expected = make_segment_header({1, 2}, 3, 4, 65536);
    std::array<std::byte, segment_header_bytes> begin{};
    std::memcpy(begin.data(), &expected, sizeof(expected));
    require(segment_fault(begin, expected) == nullptr);
    const auto whole = begin;
    for (; in.size() >= 3; in = in.subspan(3)) {
        const std::size_t at = (static_cast<std::size_t>(in[0]) << 8U | static_cast<std::size_t>(in[1])) % begin.size();
        begin.at(at) = in[2];
    }
    require((segment_fault(begin, expected) == nullptr) == (begin == whole));
}

/// Whatever the block is, decompressing it stays within what it is given, and only all of it will do.
void decompress_block(Bytes in) {
    if (in.size() < 2) return;
    const std::size_t length = static_cast<std::size_t>(in[0]) * 37 + static_cast<std::size_t>(in[1]);
    std::vector<std::byte> raw(length), again(length), scratch;
    if (!decompress(in.subspan(2), raw)) return;
    Compression compression(Compression::Choice::always);
    const Bytes shorter = compression.compress(raw, scratch);
    if (!shorter.empty()) require(decompress(shorter, again) && again == raw);
}

struct Inner {
    std::string text;
    std::vector<std::optional<double>> values;
};
struct Coded {
    int number = 0;
    bool flag = false;
    std::vector<Inner> inner;
    std::map<std::string, std::vector<std::uint16_t>> table;
    std::set<int> set;
    std::unique_ptr<std::pair<char, std::string>> pointer;
    std::tuple<std::int64_t, std::vector<bool>> tuple;
};

/// What can be decoded is encoded to bytes that mean the same again.
void decode(Bytes in) {
    std::vector<std::byte> once, twice;
    try {
        Reader reader(in);
        const auto value = reader.get<Coded>();
        Writer writer(once);
        writer(value);
    } catch (const Error& error) {
        require(error.code() == ErrorCode::disk);
        return;
    }
    Reader reader(once);
    const auto value = reader.get<Coded>();
    reader.expect_end();
    Writer writer(twice);
    writer(value);
    require(once == twice);
}

using ReaderOf = void (*)(Bytes);
constexpr std::array<ReaderOf, 11> readers = {
    scan,       build_and_scan, build_two_and_scan, resume, build_and_resume, check_record, check_stored,
    read_place, check_segment,  decompress_block,   decode};

/// Those that SPILLWAY_FUZZ names in the environment; without it all.
std::span<const ReaderOf> chosen_readers() {
    const char* const name = std::getenv("SPILLWAY_FUZZ"); // NOLINT(concurrency-mt-unsafe): one thread
    const std::span all(readers);
    if (name == nullptr) return all;
    const std::string_view wanted(name);
    if (wanted == "journal") return all.first(6);
    if (wanted == "segment") return all.subspan(6, 4);
    require(wanted == "codec");
    return all.last(1);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::span<const ReaderOf> chosen = chosen_readers();
    if (size > 0) chosen[data[0] % chosen.size()](std::as_bytes(std::span(data, size)).subspan(1));
    return 0;
}
