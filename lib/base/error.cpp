#include "spillway/error.hpp"

#include <cerrno>
#include <system_error>
#include <utility>

namespace spillway {
namespace {

std::string joined(const std::string& doing, const std::string& where, const std::string& detail) {
    std::string text;
    for (const std::string* part : {&doing, &where, &detail}) {
        if (part->empty()) continue;
        if (!text.empty()) text += ": ";
        text += *part;
    }
    return text;
}

} // namespace

Error::Error(ErrorCode code, std::string doing, std::string where, std::string detail)
    : code_(code), doing_(std::move(doing)), where_(std::move(where)), detail_(std::move(detail)),
      message_(joined(doing_, where_, detail_)) {}

Error system_error(int errno_value, std::string doing, std::string where, ErrorCode code) {
    const bool disk = errno_value == ENOSPC || errno_value == EDQUOT || errno_value == EIO || errno_value == EROFS;
    return {disk ? ErrorCode::disk : code, std::move(doing), std::move(where),
            std::generic_category().message(errno_value)};
}

int exit_code(ErrorCode code) noexcept {
    switch (code) {
    case ErrorCode::usage:
        return 2;
    case ErrorCode::input:
        return 3;
    case ErrorCode::disk:
    case ErrorCode::memory:
        return 4;
    case ErrorCode::runtime:
    case ErrorCode::cancelled:
    case ErrorCode::fork:
        break;
    }
    return 1;
}

} // namespace spillway
