// What lies in a journal, byte for byte, and a reader that trusts none of it: docs/journal_format.md in code.
#pragma once

#include "base/file.hpp"
#include "spill/record.hpp"
#include "spillway/candidate.hpp"
#include "spillway/journal.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace spillway {

/// Begins every journal; the fingerprint's text follows, padded to a multiple of 8, and then records.
struct JournalHeader {
    std::array<char, 8> magic{'S', 'P', 'I', 'L', 'L', 'J', 'N', 'L'};
    std::uint32_t version = 1;
    std::uint32_t byte_order = 0x01020304; ///< As the machine that wrote it stores it.
    std::uint64_t salt = 0;                ///< Random. Seed of the record headers' hashes.
    std::uint64_t fingerprint_bytes = 0;   ///< Length of the text.
    std::uint64_t fingerprint_hash = 0;    ///< XXH3-64 of the text.
    std::uint64_t hash = 0;                ///< XXH3-64 of the fields before it.
};
static_assert(sizeof(JournalHeader) == 48);

/// The text of a fingerprint is believed up to this length.
inline constexpr std::uint64_t most_fingerprint_bytes = std::uint64_t{16} << 20U;

enum class JournalKind : std::uint8_t {
    result = 1, ///< The payload goes on with the encoded result.
    nothing,    ///< The candidate ended without a result.
    family,     ///< All children of the candidate have been made; the payload goes on with their number, 8 bytes.
};

/// Begins the payload of every record; the key's unused ordinals are 0.
struct JournalEntry {
    JournalKind kind = JournalKind::nothing;
    std::uint8_t depth = 0; ///< Of the key.
    std::array<std::uint8_t, 6> zero{};
};
static_assert(sizeof(JournalEntry) == 8);

/// The beginning of a journal, ready to be written.
[[nodiscard]] std::vector<std::byte> make_journal_header(std::uint64_t salt, const std::string& fingerprint);

/// Appends a record, padded; false: it is too long for one. `rest` is what follows the entry.
[[nodiscard]] bool append_journal_record(std::vector<std::byte>& out, std::uint64_t salt, const Key& key,
                                         JournalKind kind, std::span<const std::byte> rest);

/// "name<TAB>value" lines.
[[nodiscard]] std::string text_of(const std::vector<Fingerprint>& fingerprint);

/// A record that was found whole.
struct JournalRecord {
    Key key;
    JournalKind kind = JournalKind::nothing;
    std::uint64_t children = 0; ///< family only.
    std::uint64_t offset = 0;   ///< Of the result's encoded bytes in the file; result only.
    std::uint64_t length = 0;   ///< Of these.
    std::uint64_t hash = 0;     ///< XXH3-64 of these.
};

/// What a file says of itself.
struct JournalScan {
    bool begun = false;          ///< It has a whole header and fingerprint; else nothing in it counts.
    std::string fingerprint;     ///< The text.
    std::uint64_t valid_end = 0; ///< Bytes up to the end of the last record that is whole.
    int error = 0;               ///< errno where reading failed; what came before counts.
};

/// Reads a journal of `bytes` bytes from front to back, gives each record to `found`, and ends at the first that is
/// not whole. Memory: the longest record. Whatever the bytes are, the outcome is records whose checksums hold.
[[nodiscard]] JournalScan scan_journal(FileSystem& files, int file, std::uint64_t bytes,
                                       const std::function<void(const JournalRecord&)>& found);

} // namespace spillway
