#include "calling.hpp"

#include "calls.hpp"
#include "fingerprint.hpp"
#include "inputs.hpp"
#include "likelihoods.hpp"
#include "standard_input.hpp"

#include "spillway/gpu.hpp"

#include <concurrentqueue/concurrentqueue.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <sys/resource.h>
#include <utility>

namespace caller {

namespace {

/// Calls with less are not worth a line: more likely wrong than right.
constexpr Phred min_quality = from_phred(3);

/// Packing and unpacking, not the device, are the limit: a thread of it does the work of 1.6 to 2.6 that align
/// (docs/gpu.md), so of many workers as many feed as it may take to fill a device, and all devices share them.
constexpr std::size_t workers_a_feeder = 2, most_of_a_device = 16, most_feeders = 64; // what a pipeline has, at most

std::size_t feeders_of_a_device(std::size_t workers, std::size_t devices) {
    devices = std::max<std::size_t>(devices, 1);
    const std::size_t most = std::clamp<std::size_t>(most_feeders / devices, 1, most_of_a_device);
    return std::clamp<std::size_t>(workers / workers_a_feeder / devices, 1, most);
}

/// Of all workers.
struct ReadTally {
    std::atomic<std::uint64_t> decoded = 0, given = 0, without_match = 0, without_bases = 0;
};

/// What one worker decodes with; what it has seen is added to the tally when the worker ends.
class Decoder {
public:
    Decoder(const Inputs& inputs, ReadTally& tally) : stream(inputs.file(), inputs.filter()), tally_(tally) {}
    Decoder(const Decoder&) = delete;
    Decoder& operator=(const Decoder&) = delete;
    ~Decoder() {
        const auto& counts = stream.counts();
        tally_.decoded += counts.decoded;
        tally_.given += counts.given;
        tally_.without_match += counts.without_match;
        tally_.without_bases += counts.without_bases;
    }

    spillway::hts::ReadStream stream;

private:
    ReadTally& tally_;
};

/// Makes candidates again, from any thread. Its streams are opened when memory is first short, one for each worker that
/// is at it.
class Remaker {
public:
    explicit Remaker(const Inputs& inputs) : inputs_(inputs) {}

    /// Where it takes little: a BAM's index leads to the reads. Of a CRAM a whole slice is decoded, which takes more
    /// memory than candidates give back, and longer than a slow disk.
    [[nodiscard]] bool pays() const { return inputs_.file()->has_index() && !inputs_.file()->is_cram(); }

    Candidate operator()(const spillway::hts::Interval& evidence) {
        std::unique_ptr<ReadStream> stream;
        if (!idle_.try_dequeue(stream)) stream = std::make_unique<ReadStream>(inputs_.file(), inputs_.filter());
        Candidate candidate = candidate_at(evidence, *stream, inputs_);
        idle_.enqueue(std::move(stream));
        return candidate;
    }

private:
    using ReadStream = spillway::hts::ReadStream;

    const Inputs& inputs_;
    moodycamel::ConcurrentQueue<std::unique_ptr<ReadStream>> idle_;
};

/// Workers for which the files that the process may open suffice: each decodes from one, makes again from another, and
/// opens it once more before.
std::size_t most_workers() {
    constexpr rlim_t others = 20; // reference, index, output, spilled candidates, the standard streams
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) return 1;
    return std::max<std::size_t>(1, (files.rlim_cur - std::min(files.rlim_cur, others)) / 3);
}

/// Where nobody says how many: so many that what they decode with takes at most half of the memory beside the reference.
std::size_t default_workers(const CallerOptions& options, const Inputs& inputs) {
    const std::uint64_t budget = spillway::Governor({.memory = options.memory}).budget();
    const std::uint64_t rest = budget - std::min(budget, inputs.reference_bytes());
    const std::uint64_t fit = rest / (2 * spillway::hts::ReadStream::bytes(*inputs.file()));
    return std::clamp<std::uint64_t>(fit, 1, spillway::allowed_threads());
}

/// The machine's own, where they may be used.
std::vector<std::shared_ptr<spillway::Device>> find_gpus(const CallerOptions& options, const RunOptions& how) {
    if (options.gpu == spillway::Gpu::off) return {};
    spillway::CudaDevices found = spillway::cuda_devices();
    if (found.devices.empty() && options.gpu == spillway::Gpu::required)
        throw spillway::Error(spillway::ErrorCode::usage, "finding a GPU", "--gpu required", found.reason);
    const bool worth_telling = found.built || options.verbosity >= 2;
    if (found.devices.empty() && worth_telling && how.tell) how.tell("the CPU aligns: " + found.reason);
    return std::move(found.devices);
}

/// A window's calls and where it begins.
struct WindowCalls {
    std::int32_t contig = -1;
    std::int64_t begin = 0;
    std::vector<Call> calls;
};

std::size_t cells_of(const Candidate& candidate) {
    std::size_t target = 0;
    for (const Haplotype& haplotype : candidate.haplotypes) target += haplotype.bases.size();
    return candidate.read_bases.size() * target;
}

void align_batch(spillway::batch<Candidate>& candidates) {
    std::vector<Candidate*> all;
    for (Candidate& candidate : candidates) all.push_back(&candidate);
    align_on_cpu(all);
}

std::optional<WindowCalls> genotype_candidate(Candidate& candidate) {
    settle(candidate);
    WindowCalls result{candidate.contig, candidate.begin, genotype(candidate)};
    std::erase_if(result.calls, [](const Call& call) { return call.quality < min_quality; });
    if (result.calls.empty()) return std::nullopt;
    return result;
}

/// `input`: none where standard input is not read.
RunReport call_variants(const CallerOptions& options, const RunOptions& how, const StoppableInput* input) {
    std::mutex mutex; // Warnings are rare.
    ReadTally tally;
    const auto warn = [&](const std::string& text) {
        const std::lock_guard lock(mutex);
        if (how.warn) how.warn(text);
    };
    if (!options.resume_directory.empty()) check_resumable(options);
    const Inputs inputs(options, warn);
    std::optional<spillway::Journal> journal;
    if (!options.resume_directory.empty()) {
        journal.emplace(spillway::JournalOptions{.directory = options.resume_directory,
                                                 .fingerprint = fingerprint(options, inputs, how.files),
                                                 .log = [&](std::string_view line) { warn(std::string(line)); },
                                                 .files = how.files});
    }
    std::vector<std::string> header = {"##source=spillway-call " SPILLWAY_VERSION};
    for (auto& line : header_lines()) header.push_back(std::move(line));
    spillway::hts::VcfWriter vcf({.path = options.output,
                                  .format = options.format,
                                  .header = std::move(header),
                                  .contigs = inputs.file()->contigs(),
                                  .sample = inputs.sample(),
                                  .files = how.files});
    CallQueue queue(inputs.wanted(), [&](const Call& call) { vcf.write(record_of(call)); });

    Remaker again(inputs);
    const auto evidence = [](const Candidate& candidate) noexcept { return candidate.evidence(); };
    auto found = spillway::pipeline<Task>("calling")
                     .source(inputs.tasks())
                     .fan_out("candidates",
                              [&](Task& task, Decoder& decoder) { return candidates_of(task, decoder.stream, inputs); })
                     .local([&] { return Decoder(inputs, tally); }, spillway::hts::ReadStream::bytes(*inputs.file()));
    auto placed = (again.pays() ? std::move(found).rebuild(evidence, [&](const auto& at, auto&) { return again(at); })
                                : std::move(found))
                      .map("place", place);
    const auto place_again = [&](const auto& at, auto&) {
        Candidate candidate = again(at);
        place(candidate);
        return candidate;
    };
    auto calling =
        (again.pays() ? std::move(placed).rebuild(evidence, place_again) : std::move(placed))
            .route("align", align_batch,
                   spillway::AlignOnDevice(alignment_scores, spillway::Span::query,
                                           [](auto& candidate, auto&& align) { for_each_task(candidate, align); }),
                   {.cells = cells_of, .full = spillway::hts::first_guess(inputs.profile()).batch_cells})
            .map("genotype", genotype_candidate)
            .in_order("write",
                      [&](WindowCalls& window) { queue.push(window.contig, window.begin, std::move(window.calls)); });
    spillway::Options pipeline_options;
    pipeline_options.memory = options.memory;
    pipeline_options.resident = inputs.reference_bytes();
    pipeline_options.threads = std::min<std::size_t>(
        options.threads != 0 ? options.threads : default_workers(options, inputs), most_workers());
    pipeline_options.router = how.router;
    pipeline_options.router.gpu = options.gpu;
    pipeline_options.devices = how.devices.empty() ? find_gpus(options, how) : how.devices;
    pipeline_options.feeders = feeders_of_a_device(pipeline_options.threads, pipeline_options.devices.size());
    if (how.tell) pipeline_options.log = [&](std::string_view line) { how.tell(std::string(line)); };
    pipeline_options.stop = how.stop;
    pipeline_options.progress = how.progress;
    if (const auto& named = options.temporary_directories; !named.empty()) {
        pipeline_options.spill = spillway::SpillOptions{.directory = named.front(),
                                                        .more_directories = {named.begin() + 1, named.end()},
                                                        .disk_limit = options.temporary_limit,
                                                        .files = how.files};
    }
    if (journal) pipeline_options.journal = &*journal;
    RunReport report;
    report.pipeline = calling.run(pipeline_options);
    if (input != nullptr) input->check();
    queue.finish();
    vcf.commit();
    if (journal) {
        report.spans_resumed = journal->statistics().items_found;
        journal->remove();
    }
    report.calls = vcf.records();
    report.reads_decoded = tally.decoded;
    report.reads_given = tally.given;
    report.reads_without_match = tally.without_match;
    report.reads_without_bases = tally.without_bases;
    report.profile = inputs.profile();
    report.reads_in_file = inputs.file()->indexed_reads().value_or(0);
    return report;
}

} // namespace

RunReport run(const CallerOptions& options, const RunOptions& how) {
    if (options.alignments != "-") return call_variants(options, how, nullptr);
    const StoppableInput input(how.stop);
    try {
        return call_variants(options, how, &input);
    } catch (const spillway::Error& error) {
        // It was cut off in the middle of its reads, which is no fault of theirs.
        if (error.code() != spillway::ErrorCode::input || !how.stop.stop_requested()) throw;
        throw spillway::Error(spillway::ErrorCode::cancelled, "reading alignments", "standard input",
                              "stopped on request");
    }
}

} // namespace caller
