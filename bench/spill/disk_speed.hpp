// How fast payloads go to the disk and come back, beside dd on the same disk.
#pragma once

#include <string>

namespace bench {

/// MiB a second.
struct Speed {
    double write = 0; ///< Until the disk has it all.
    double read = 0;
};

/// Of a run that is held up at its first payloads until all others are made, with memory for a few: they are written
/// then, and read when it goes on. Payloads are of 1 MiB and do not compress.
[[nodiscard]] Speed spill_speed(unsigned mebibytes, const std::string& directory);

/// Of dd, in blocks of 1 MiB through the page cache, as spilling does it, which has let go of them before they are read.
/// Zero where it cannot be run.
[[nodiscard]] Speed dd_speed(unsigned mebibytes, const std::string& directory);

} // namespace bench
