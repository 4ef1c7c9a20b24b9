// What an AlignmentFile holds, for the rest of this room.
#pragma once

#include "base/turn.hpp"
#include "hts/handles.hpp"
#include "spillway/hts.hpp"

#include <atomic>
#include <string>
#include <unordered_map>
#include <vector>

namespace spillway::hts {

/// One slice of a CRAM file as its index lists it.
struct CramSlice {
    std::int32_t contig = -1;
    std::int64_t begin = 0; ///< 0-based.
    std::int64_t end = 0;
    std::int64_t container = 0; ///< Offset in the file.
    std::int64_t bytes = 0;
};

struct AlignmentFile::State {
    std::string path, reference, index_path;
    std::vector<Contig> contigs;
    std::vector<bool> in_reference; ///< By contig; empty where no reference was given.
    std::unordered_map<std::string, std::int32_t> contig_indexes;
    std::vector<ReadGroup> read_groups;
    std::vector<std::string> samples;
    SortOrder order = SortOrder::unknown;
    htsExactFormat format = unknown_format;
    bool seekable = false;
    bool standard_input = false;

    /// Declared before `file`, which may point into it while closing.
    Header header;
    /// Kept open: for CRAM it owns the reference that the streams share; standard input is handed to the first stream.
    mutable File file;
    mutable std::atomic<bool> taken = false;
    /// Held while a stream takes or drops its share of the CRAM reference: htslib counts the shares without a lock.
    mutable Turn<> sharing;
    /// BAM only; const in use, so that all streams query it.
    Index bam_index;
    std::vector<CramSlice> slices; ///< CRAM only; sorted by contig and begin.
    int container_descriptor = -1; ///< CRAM only: to count the records of containers; -1 where that is not possible.

    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State();
};

/// Opens the file once more for one reader: its CRAM reference is the shared one, its required fields are set.
[[nodiscard]] File open_for_reading(const AlignmentFile::State& state, bool need_read_groups);

/// "chr20:1001", 1-based.
[[nodiscard]] std::string locus(const AlignmentFile::State& state, std::int32_t contig, std::int64_t position);

/// The lines of a file that may be gzipped; Error(input) where it cannot be read. `doing` goes into the message.
[[nodiscard]] std::string read_text(const std::string& path, const std::string& doing);

} // namespace spillway::hts
