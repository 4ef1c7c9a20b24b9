// How fast payloads go to the disk and come back, beside dd on the same disk.
#pragma once

#include <string>

namespace bench {

/// MiB a second.
struct Speed {
    double write = 0, read = 0;
};

/// Of a run that is held up at its first payload until all others are made, with memory for a few: they are written
/// then, and read when it goes on. Payloads are of 1 MiB and do not compress.
[[nodiscard]] Speed spill_speed(unsigned mebibytes, const std::string& directory);

/// Of dd, in blocks of 1 MiB through the page cache, as spilling does it: written until the disk has them, and read once
/// the page cache has let go of them. Zero where it cannot be run.
[[nodiscard]] Speed dd_speed(unsigned mebibytes, const std::string& directory);

} // namespace bench
