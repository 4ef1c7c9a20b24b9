#include "spill/journal_file.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

namespace spillway {
namespace {

constexpr std::uint64_t padded(std::uint64_t bytes) noexcept {
    return (bytes + record_alignment - 1) / record_alignment * record_alignment;
}

bool is_zero(std::span<const std::byte> padding) noexcept {
    return std::all_of(padding.begin(), padding.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

template <typename T>
void append(std::vector<std::byte>& out, const T& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    out.insert(out.end(), bytes.begin(), bytes.end());
}

std::uint64_t header_hash(const JournalHeader& header) noexcept {
    return XXH3_64bits(&header, offsetof(JournalHeader, hash));
}

/// Reads front to back in large pieces, whatever the size of what is asked for.
class FileScanner {
public:
    FileScanner(FileSystem& files, int file, std::uint64_t bytes) : files_(files), file_(file), bytes_(bytes) {}

    [[nodiscard]] std::uint64_t left() const noexcept { return bytes_ - at_; }
    [[nodiscard]] std::uint64_t position() const noexcept { return at_; }
    [[nodiscard]] int error() const noexcept { return error_; }

    /// The next bytes, valid until the next call; empty if they cannot be had. At most left().
    std::span<const std::byte> take(std::uint64_t count) {
        if (count > buffer_.size() - used_) {
            if (!fill(count)) return {};
        }
        const auto taken = std::span<const std::byte>(buffer_).subspan(used_, static_cast<std::size_t>(count));
        used_ += static_cast<std::size_t>(count);
        at_ += count;
        return taken;
    }

private:
    static constexpr std::uint64_t piece = std::uint64_t{1} << 20U;

    bool fill(std::uint64_t count) {
        buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(used_));
        used_ = 0;
        const std::size_t had = buffer_.size();
        const std::uint64_t from = at_ + had;
        const std::uint64_t wanted = std::min(bytes_ - from, std::max(piece, count - had));
        buffer_.resize(had + static_cast<std::size_t>(wanted));
        iovec part{buffer_.data() + had, static_cast<std::size_t>(wanted)};
        error_ = read_all(files_, file_, std::span(&part, 1), from);
        return error_ == 0;
    }

    FileSystem& files_;
    int file_;
    std::uint64_t bytes_;
    std::uint64_t at_ = 0; ///< Of the next byte to be taken.
    std::vector<std::byte> buffer_;
    std::size_t used_ = 0;
    int error_ = 0;
};

/// The fingerprint, or false if the header is not whole.
bool take_header(FileScanner& in, JournalHeader& header, std::string& fingerprint) {
    if (in.left() < sizeof(header)) return false;
    const auto bytes = in.take(sizeof(header));
    if (bytes.empty()) return false;
    std::memcpy(&header, bytes.data(), sizeof(header));
    const JournalHeader expected;
    if (header.magic != expected.magic || header.version != expected.version ||
        header.byte_order != expected.byte_order || header.hash != header_hash(header))
        return false;
    if (header.fingerprint_bytes > most_fingerprint_bytes || padded(header.fingerprint_bytes) > in.left()) return false;
    const std::uint64_t length = padded(header.fingerprint_bytes);
    const auto text = length == 0 ? std::span<const std::byte>() : in.take(length);
    if (text.size() != length) return false;
    fingerprint.resize(static_cast<std::size_t>(header.fingerprint_bytes));
    if (!fingerprint.empty()) std::memcpy(fingerprint.data(), text.data(), fingerprint.size());
    if (!is_zero(text.subspan(fingerprint.size()))) return false;
    return XXH3_64bits(fingerprint.data(), fingerprint.size()) == header.fingerprint_hash;
}

/// What a payload whose checksums hold means; false: nothing, it was written by another version.
bool parse(const RecordHeader& header, std::span<const std::byte> payload, std::uint64_t offset,
           JournalRecord& record) {
    JournalEntry entry;
    if (payload.size() < sizeof(entry)) return false;
    std::memcpy(&entry, payload.data(), sizeof(entry));
    const auto rest = payload.subspan(sizeof(entry));
    if (entry.depth == 0 || entry.depth > max_key_depth) return false;
    record = {};
    record.key.ordinals = header.key;
    record.key.depth = entry.depth;
    for (std::size_t i = entry.depth; i < max_key_depth; ++i) {
        if (header.key[i] != 0) return false;
    }
    record.kind = entry.kind;
    switch (entry.kind) {
    case JournalKind::result:
        record.offset = offset + sizeof(entry);
        record.length = rest.size();
        record.hash = XXH3_64bits(rest.data(), rest.size());
        return true;
    case JournalKind::nothing:
        return rest.empty();
    case JournalKind::family:
        if (rest.size() != sizeof(record.children) || entry.depth == max_key_depth) return false;
        std::memcpy(&record.children, rest.data(), sizeof(record.children));
        return true;
    }
    return false;
}

} // namespace

std::vector<std::byte> make_journal_header(std::uint64_t salt, const std::string& fingerprint) {
    JournalHeader header;
    header.salt = salt;
    header.fingerprint_bytes = fingerprint.size();
    header.fingerprint_hash = XXH3_64bits(fingerprint.data(), fingerprint.size());
    header.hash = header_hash(header);
    std::vector<std::byte> out;
    append(out, header);
    const auto text = std::as_bytes(std::span(fingerprint));
    out.insert(out.end(), text.begin(), text.end());
    out.resize(static_cast<std::size_t>(padded(out.size())));
    return out;
}

bool append_journal_record(std::vector<std::byte>& out, std::uint64_t salt, const Key& key, JournalKind kind,
                           std::span<const std::byte> rest) {
    if (rest.size() > std::numeric_limits<std::uint32_t>::max() - sizeof(JournalEntry)) return false;
    const std::size_t begin = out.size();
    out.resize(begin + sizeof(RecordHeader)); // Its place; its hashes need the payload.
    append(out, JournalEntry{kind, static_cast<std::uint8_t>(key.depth), {}});
    out.insert(out.end(), rest.begin(), rest.end());
    const RecordHeader header =
        make_record_header(key.ordinals, salt, std::span<const std::byte>(out).subspan(begin + sizeof(RecordHeader)));
    std::memcpy(&out[begin], &header, sizeof(header));
    out.resize(static_cast<std::size_t>(padded(out.size())));
    return true;
}

std::string text_of(const std::vector<Fingerprint>& fingerprint) {
    std::string text;
    for (const Fingerprint& part : fingerprint) text += part.name + '\t' + part.value + '\n';
    return text;
}

JournalScan scan_journal(FileSystem& files, int file, std::uint64_t bytes,
                         const std::function<void(const JournalRecord&)>& found) {
    JournalScan scan;
    FileScanner in(files, file, bytes);
    JournalHeader header;
    scan.begun = take_header(in, header, scan.fingerprint);
    while (scan.begun && in.error() == 0) {
        scan.valid_end = in.position();
        if (in.left() < sizeof(RecordHeader)) break;
        RecordHeader record;
        const auto head = in.take(sizeof(record));
        if (head.empty()) break;
        std::memcpy(&record, head.data(), sizeof(record));
        // The length is believed only once the header's own hash holds, and the file has as much.
        if (!header_is_whole(record, header.salt)) break;
        const std::uint64_t length = record_bytes(record.length) - sizeof(record);
        if (length > in.left()) break;
        const std::uint64_t offset = in.position();
        const auto padded_payload = length == 0 ? std::span<const std::byte>() : in.take(length);
        if (padded_payload.size() != length) break;
        const auto payload = padded_payload.first(record.length);
        if (record_fault(record, record.check, header.salt, payload) != nullptr) break;
        if (!is_zero(padded_payload.subspan(record.length))) break;
        JournalRecord whole;
        if (!parse(record, payload, offset, whole)) break;
        found(whole);
    }
    scan.error = in.error() == ENODATA ? 0 : in.error(); // A file that became shorter has a torn end.
    return scan;
}

} // namespace spillway
