#include "inputs.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

namespace caller {

using spillway::Error;
using spillway::ErrorCode;
using spillway::hts::Interval;

namespace {

/// CRAM decoders before it have known heap overflows.
constexpr std::array<int, 3> safe_cram = {1, 21, 1};

/// A small genome is cut into so many spans, if that does not make them much shorter than the profile's: each thread
/// has some then, and a killed run has lost few of them.
constexpr std::int64_t many_spans = 256, most_shortened = 4;

bool older_than(const std::string& version, const std::array<int, 3>& wanted) {
    std::array<int, 3> parts{};
    std::size_t at = 0;
    for (auto& part : parts) {
        while (at < version.size() && version[at] >= '0' && version[at] <= '9')
            part = part * 10 + (version[at++] - '0');
        if (at >= version.size() || version[at++] != '.') break;
    }
    return parts < wanted;
}

std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
}

std::vector<Interval> wanted_by(const CallerOptions& options, const std::vector<spillway::hts::Contig>& contigs) {
    if (options.regions.empty() && options.regions_file.empty()) return spillway::hts::whole(contigs);
    std::vector<Interval> wanted;
    for (const auto& text : options.regions) {
        const auto more = spillway::hts::parse_regions(text, contigs);
        wanted.insert(wanted.end(), more.begin(), more.end());
    }
    if (!options.regions_file.empty()) {
        const auto more = spillway::hts::read_bed(options.regions_file, contigs);
        wanted.insert(wanted.end(), more.begin(), more.end());
    }
    return spillway::hts::merged(std::move(wanted));
}

/// Whether a call of a window may lie in a wanted interval.
bool may_be_wanted(const Window& window, const std::vector<Interval>& wanted) {
    const auto after = std::ranges::upper_bound(wanted, std::pair(window.contig, window.end + calls_after), {},
                                                [](const Interval& i) { return std::pair(i.contig, i.begin); });
    if (after == wanted.begin()) return false;
    const Interval& last = *(after - 1);
    return last.contig == window.contig && last.end > window.begin - calls_before;
}

} // namespace

Inputs::Inputs(const CallerOptions& options, Warn warn)
    : options_(options), warn_(std::move(warn)),
      file_(spillway::hts::AlignmentFile::open(options.alignments, options.reference)), reference_(options.reference),
      profile_(options.profile ? *options.profile : spillway::hts::profile_of(*file_)),
      wanted_(wanted_by(options, file_->contigs())), warned_(file_->contigs().size()) {
    // Throws where a length differs; a contig that is missing matters only once it has reads.
    (void)spillway::hts::check_contigs(*file_, reference_);
    if (file_->is_cram() && older_than(spillway::hts::htslib_version(), safe_cram)) {
        warn_("htslib " + spillway::hts::htslib_version() +
              " has known errors in reading CRAM; use it with files you trust");
    }
    const auto& samples = file_->samples();
    if (samples.size() > 1) {
        if (std::ranges::find(samples, options.sample_name) == samples.end()) {
            throw Error(ErrorCode::usage, "choosing the sample", options.alignments,
                        "it holds the samples " + joined(samples) + "; choose one with --sample-name");
        }
        filter_.sample = options.sample_name;
    }
    sample_ = options.sample_name;
    if (sample_.empty() && !samples.empty()) sample_ = samples.front();
    if (sample_.empty()) {
        sample_ = options.alignments == "-" ? "sample" : std::filesystem::path(options.alignments).stem().string();
        warn_(options.alignments + " names no sample (no SM in @RG): it is called " + sample_ +
              " (--sample-name changes that)");
    }
    if (!file_->has_index() && !(options.regions.empty() && options.regions_file.empty())) {
        warn_(options.alignments + " has no index: all of it is read to find the regions");
    }
}

std::vector<Task> Inputs::tasks() const {
    if (wanted_.empty()) return {};
    if (!file_->has_index()) return {Task{true, {}}};
    std::vector<Interval> windows;
    std::int64_t bases = 0;
    for (const Interval& interval : wanted_) {
        const auto size = file_->contigs()[static_cast<std::size_t>(interval.contig)].length;
        windows.push_back({interval.contig, std::max<std::int64_t>(0, interval.begin - longest_window - calls_after),
                           std::min(size, interval.end + calls_before)});
        bases += interval.end - interval.begin;
    }
    const std::int64_t guess = spillway::hts::first_guess(profile_).span;
    const std::int64_t length =
        options_.region_length > 0
            ? options_.region_length
            : std::max(shortest_span, std::clamp(bases / many_spans, guess / most_shortened, guess));
    std::vector<Task> tasks;
    const auto spans = spillway::hts::decode_spans(*file_, spillway::hts::merged(std::move(windows)),
                                                   {.length = length, .margin = window_reach});
    for (const Interval& span : spans) tasks.push_back({false, span});
    return tasks;
}

std::uint64_t Inputs::reference_bytes() const {
    std::array<std::int64_t, 2> longest{}; // workers are on two neighbouring contigs at most
    for (std::size_t i = 0; i < file_->contigs().size(); ++i) {
        const auto size = reference_.length(file_->contigs()[i].name);
        if (!size || !wants(static_cast<std::int32_t>(i))) continue;
        longest[1] = std::max(longest[1], std::min(*size, longest[0]));
        longest[0] = std::max(longest[0], *size);
    }
    // While one is loaded there is a second copy of it; the CRAM decoder has its own.
    const std::int64_t copies = 2 + (file_->is_cram() ? 1 : 0);
    return static_cast<std::uint64_t>(copies * longest[0] + longest[1]);
}

bool Inputs::wants(std::int32_t contig) const {
    return std::ranges::binary_search(wanted_, contig, {}, &Interval::contig);
}

std::shared_ptr<const std::string> Inputs::contig(std::int32_t index) const {
    const auto& contig = file_->contigs()[static_cast<std::size_t>(index)];
    auto& warned = warned_[static_cast<std::size_t>(index)];
    if (!reference_.length(contig.name)) {
        if (!options_.skip_missing_contigs) {
            throw Error(ErrorCode::input, "loading the reference", reference_.path() + ":" + contig.name,
                        "it lacks this contig, on which " + file_->path() +
                            " has reads; give the FASTA it was aligned to, or --skip-missing-contigs");
        }
        if (!warned.exchange(true))
            warn_("reads on " + contig.name + " are left out: " + reference_.path() + " lacks it");
        return nullptr;
    }
    auto bases = reference_.contig(contig.name);
    if (!contig.md5.empty() && !warned.exchange(true) && spillway::hts::md5(*bases) != contig.md5) {
        warn_(contig.name + " of " + reference_.path() + " is not what " + file_->path() +
              " was aligned to: their M5 differ");
    }
    return bases;
}

spillway::generator<Candidate> candidates_of(Task task, spillway::hts::ReadStream& stream, const Inputs& inputs) {
    if (!task.whole_file) {
        stream.seek({task.span.contig, std::max<std::int64_t>(0, task.span.begin - window_reach),
                     task.span.end + window_reach});
    }
    auto block = stream.next();
    while (block) { // Without an index the stream runs over all contigs.
        const std::int32_t contig = block->contig();
        const auto bases = inputs.wants(contig) ? inputs.contig(contig) : nullptr;
        if (!bases) {
            while (block && block->contig() == contig) block = stream.next();
            continue;
        }
        const Interval all{contig, 0, static_cast<std::int64_t>(bases->size())};
        WindowMaker windows(task.whole_file ? all : task.span, bases, inputs.rules());
        for (bool more = true; more;) {
            more = block && block->contig() == contig;
            if (more) {
                for (const auto& read : block->reads()) windows.push(read, block);
                block = stream.next();
            } else {
                windows.finish();
            }
            while (auto window = windows.pop()) {
                if (!may_be_wanted(*window, inputs.wanted())) continue;
                Candidate candidate = make_candidate(*window, inputs.rules());
                window.reset(); // Its reads are copied: let go of them before waiting.
                if (candidate.haplotypes.size() > 1) co_yield std::move(candidate);
            }
        }
    }
}

Candidate candidate_at(const Interval& evidence, spillway::hts::ReadStream& stream, const Inputs& inputs) {
    return make_candidate(window_at(evidence, inputs.contig(evidence.contig), stream), inputs.rules());
}

} // namespace caller
