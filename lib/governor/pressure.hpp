// How long tasks have waited for memory, as the kernel counts it (PSI).
#pragma once

#include <chrono>
#include <optional>

namespace spillway {

/// Time for which some task of the group has waited, since its beginning. Nothing without PSI.
[[nodiscard]] std::optional<std::chrono::microseconds> some_pressure(const char* path) noexcept;

} // namespace spillway
