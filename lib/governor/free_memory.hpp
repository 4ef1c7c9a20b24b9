// Gives pages that the process's allocator keeps without using them back to the system.
#pragma once

namespace spillway {

/// For moments of pressure: what was freed after a spill must show in the process's resident memory. Works with glibc's
/// allocator and with jemalloc, whichever the host has; with others it does nothing. Costs milliseconds. Any thread.
void give_back_free_memory() noexcept;

} // namespace spillway
