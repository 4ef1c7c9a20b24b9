// Whatever bytes the readers of journals, segments and codecs are given, the outcome is what was written or an error.
//
// libFuzzer's entry: the first byte chooses the reader, of those that SPILLWAY_FUZZ leaves. replay.cpp calls it without
// libFuzzer.
#include "spill/compression.hpp"
#include "spill/finished_items.hpp"
#include "spill/journal_file.hpp"
#include "spill/memory_file.hpp"
#include "spill/record.hpp"
#include "spill/segment.hpp"
#include "spillway/codec.hpp"

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>

using namespace spillway;

namespace {

using Bytes = std::span<const std::byte>;

void require(bool holds) {
    if (!holds) std::abort();
}

/// Every result that is given lies inside the file, and every finished item can be visited.
void scan(Bytes image) {
    test::MemoryFile files(image);
    FinishedItems items;
    const JournalScan found = scan_journal(files, 0, image.size(), [&](const JournalRecord& record) {
        require(record.key.depth >= 1 && record.key.depth <= max_key_depth);
        require(record.offset <= image.size() && record.length <= image.size() - record.offset);
        items.add(0, record);
    });
    require(found.valid_end <= image.size() && found.error == 0);
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
            },
            [&](const Key& ended) { require(ended.ordinals[0] == item); });
    }
}

/// Records whose checksums hold but whose meaning the input chose: four bytes a record, and its rest.
void build_and_scan(Bytes in) {
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
    scan(image);
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
    const StoredHeader made = make_stored_header(header.key, 3, std::max(header.raw, length), stored);
    const SpillPlace place{.length = length, .check = check_of(made)};
    require(stored_fault(made, place, 3, stored) == nullptr);
    const SpillPlace claimed{.length = length, .check = check_of(header)};
    if (stored_fault(header, claimed, 3, stored) == nullptr) require(std::memcmp(&header, &made, sizeof(header)) == 0);
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
constexpr std::array<ReaderOf, 6> readers = {scan,         build_and_scan,   check_record,
                                             check_stored, decompress_block, decode};

/// Those that SPILLWAY_FUZZ names in the environment; without it all.
std::span<const ReaderOf> chosen_readers() {
    const char* const name = std::getenv("SPILLWAY_FUZZ"); // NOLINT(concurrency-mt-unsafe): one thread
    const std::span all(readers);
    if (name == nullptr) return all;
    const std::string_view wanted(name);
    if (wanted == "journal") return all.first(3);
    if (wanted == "segment") return all.subspan(3, 2);
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
