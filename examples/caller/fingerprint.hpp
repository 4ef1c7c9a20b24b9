// What a run's calls depend on: a resumed run must agree with the killed one in all of it.
#pragma once

#include "inputs.hpp"
#include "options.hpp"

#include "spillway/journal.hpp"

#include <vector>

namespace caller {

/// Throws Error(usage) where the input cannot be read again, or the output not be written again, from the first: a
/// pipe, standard input or output.
void check_resumable(const CallerOptions& options);

/// Program, files, and options that change calls or how the work is cut. Threads, memory, output and its format may
/// differ. A file is known by its length, its time of change, and its first and last MiB.
[[nodiscard]] std::vector<spillway::Fingerprint> fingerprint(const CallerOptions& options, const Inputs& inputs,
                                                             const std::shared_ptr<spillway::FileSystem>& files);

} // namespace caller
