// What a file is told by in a fingerprint.
#include "base/file.hpp"
#include "spillway/error.hpp"
#include "spillway/journal.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

namespace spillway {
namespace {

/// At each end of a file.
constexpr std::uint64_t sampled_bytes = std::uint64_t{1} << 20U;

/// Since 1970.
std::string nanoseconds(const timespec& time) {
    return std::to_string(time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec);
}

void check(const std::string& path, int error) {
    if (error != 0)
        throw Error(ErrorCode::input, "telling a file by its content", path, std::generic_category().message(error));
}

} // namespace

std::string identity_of(const std::string& path, std::shared_ptr<FileSystem> files) {
    if (files == nullptr) files = system_files();
    const FileHandle file(*files,
                          uninterrupted([&] { return files->open(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC, 0); }));
    check(path, std::max(-file.descriptor(), 0));
    struct stat status {};
    check(path, -uninterrupted([&] { return files->status(file.descriptor(), status); }));
    const auto bytes = static_cast<std::uint64_t>(status.st_size);
    std::vector<std::byte> sample(std::min(bytes, sampled_bytes));
    XXH64_hash_t digest = 0;
    for (const std::uint64_t from : {std::uint64_t{0}, bytes - sample.size()}) {
        std::array<iovec, 1> pieces{{{sample.data(), sample.size()}}};
        check(path, read_all(*files, file.descriptor(), pieces, from));
        digest = XXH3_64bits_withSeed(sample.data(), sample.size(), digest);
    }
    std::array<char, 17> digits{};
    std::snprintf(digits.data(), digits.size(), "%016" PRIx64, static_cast<std::uint64_t>(digest));
    return std::to_string(bytes) + " bytes, changed at " + nanoseconds(status.st_mtim) +
           " (as the disk has it: " + nanoseconds(status.st_ctim) + "), digest " + digits.data();
}

} // namespace spillway
