// The machine's memory and what this process holds of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace spillway {

/// All of RAM, in bytes; nothing if it cannot be told.
[[nodiscard]] std::optional<std::uint64_t> total_memory(const std::string& root);

/// The resident set of this process, in bytes. `statm_path` is /proc/self/statm.
[[nodiscard]] std::optional<std::uint64_t> resident_memory(const char* statm_path) noexcept;

} // namespace spillway
