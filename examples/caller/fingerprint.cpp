#include "fingerprint.hpp"

#include "spillway/error.hpp"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <filesystem>

namespace caller {

namespace {

/// Of numbers, each of which moves every bit of the state.
class Digest {
public:
    void add(std::int64_t value) {
        state_ = (state_ ^ static_cast<std::uint64_t>(value)) * 11400714819323198485U; // 2^64 over the golden ratio
        state_ ^= state_ >> 32U;
    }
    [[nodiscard]] std::string text() const {
        std::array<char, 17> digits{};
        std::snprintf(digits.data(), digits.size(), "%016" PRIx64, state_);
        return digits.data();
    }

private:
    std::uint64_t state_ = 14695981039346656037U;
};

constexpr const char* resuming = "resuming";

void need_regular(const std::string& path, const char* what, bool may_be_missing) {
    std::error_code problem;
    const auto status = std::filesystem::status(path, problem);
    if (path != "-" && (std::filesystem::is_regular_file(status) ||
                        (may_be_missing && status.type() == std::filesystem::file_type::not_found)))
        return;
    throw spillway::Error(spillway::ErrorCode::usage, resuming, path == "-" ? "" : path,
                          std::string("--resume needs ") + what +
                              " that is a plain file, since a resumed run begins it anew");
}

std::string joined(const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : " ") + part;
    return text;
}

} // namespace

void check_resumable(const CallerOptions& options) {
    need_regular(options.alignments, "an input", false);
    need_regular(options.output, "an output (-o)", true);
}

std::vector<spillway::Fingerprint> fingerprint(const CallerOptions& options, const Inputs& inputs,
                                               const std::shared_ptr<spillway::FileSystem>& files) {
    const auto identity = [&](const std::string& path) { return spillway::identity_of(path, files); };
    Digest tasks; // How the work is cut follows from the index too.
    for (const Task& task : inputs.tasks()) {
        tasks.add(task.whole_file ? 1 : 0);
        tasks.add(task.span.contig);
        tasks.add(task.span.begin);
        tasks.add(task.span.end);
    }
    return {
        {"spillway-call",
         SPILLWAY_VERSION ", htslib " + spillway::hts::htslib_version() + ", " + identity("/proc/self/exe")},
        {"the alignments", identity(options.alignments)},
        {"the reference", identity(options.reference)},
        {"-r", joined(options.regions)},
        {"-R", options.regions_file.empty() ? "" : identity(options.regions_file)},
        {"-s", inputs.sample()},
        {"--skip-missing-contigs", options.skip_missing_contigs ? "yes" : "no"},
        {"--region-length", std::to_string(options.region_length)},
        {"the spans", tasks.text()},
    };
}

} // namespace caller
