// Data that may lie beside the source, too large or not ours to keep in it: the folder SPILLWAY_SHARED names, or
// ../shared. What is not there skips its tests.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

namespace spillway::test {

/// The path of a file or folder in it; none, said once on standard output, where it is missing.
inline std::optional<std::string> shared_data(const std::string& name) {
    const char* given = std::getenv("SPILLWAY_SHARED");
    const std::filesystem::path folder =
        given != nullptr ? std::filesystem::path(given) : std::filesystem::path(SPILLWAY_SOURCE_DIR) / ".." / "shared";
    if (std::filesystem::exists(folder / name)) return (folder / name).string();
    std::cout << "SKIPPED: no " << (folder / name).string() << '\n';
    return std::nullopt;
}

} // namespace spillway::test
