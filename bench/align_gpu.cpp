// How fast are alignments on a GPU, and are they right?
//
// For each tile shape and span: fresh random reads and haplotypes go through the device, every alignment of a first
// batch is compared with the CPU's, and then it is timed: the kernels alone, by the device's own events; end to end
// with copies, three batches under way at once; and with packing and all of unpacking, CIGARs included, on several
// threads. TCUPS are 10^12 cells of the matrices a second. The ceiling is what the integer pipe of an sm_90 could do
// with the instructions of the inner loop (bench/sass_count.py counts them) if no column, thread or cycle were idle.
//
//     spillway-bench-align-gpu [--multiprocessors 132] [--mhz 1980] [--seconds 1] [--seed N] [--instructions FILE]
//                                              FILE: what sass_count.py printed of these kernels
//     spillway-bench-align-gpu --host 150      what one thread of the host costs a pair of 150 x 400, packing and
//                                              unpacking, beside one core that aligns it; up to 400; no GPU needed
//
// Beneath the table stands whether what is wanted of 150 x 400 on an H200 is reached. Exit 1 on a wrong alignment, or if
// a kernel was not run. Where there is no GPU the same kernels run in lockstep on the host, and it says so.
#include "arguments.hpp"
#include "goals.hpp"

#include <spillway/align.hpp>
#include <spillway/gpu.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace spillway;
using Clock = std::chrono::steady_clock;

constexpr char usage[] = "spillway-bench-align-gpu [--multiprocessors N] [--mhz MHZ] [--seconds S] [--seed N] "
                         "[--instructions FILE] [--host BASES]";

struct Options {
    std::uint64_t multiprocessors = 132;
    double mhz = 1980, seconds = 1;
    std::uint64_t seed = std::uint64_t{1} + std::random_device{}(); // --seed takes what is printed: not 0
    std::uint64_t host = 0;                                         // bases of a read: measure the host's part alone
    std::map<std::string, double> integer_a_cell{};                 // by "packed 20 local"
};

/// The longest read that --host takes is as long as its haplotypes.
constexpr std::size_t host_haplotype = 400;

/// Each base is wrong with probability `errors`, `gaps` of these in the length; and so many in a thousand reads have a
/// gap of 1 to 10 bases besides.
struct Noise {
    double errors = 0.005, gaps = 0;
    std::size_t long_gaps = 100;
};

/// Instructions of the integer pipe for a cell of a word, of sm_90 as nvcc 13.0 compiles it, and pairs in a word.
struct Tile {
    const char* name;
    double local, query, pairs;
};
constexpr Tile tiles[] = {{"packed 10", 7.90, 5.90, 2},
                          {"packed 20", 7.30, 5.45, 2},
                          {"packed 32", 7.00, 5.28, 2},
                          {"wide 32", 5.94, 5.53, 1}};

constexpr double integer_lanes = 64; // of a multiprocessor, each cycle

/// From lines of "packed 20 local", a row's instructions and those of the integer pipe, and both for a cell.
std::map<std::string, double> read_instructions(const std::string& path) {
    std::map<std::string, double> found;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string kind, columns, span;
        double row = 0, row_integer = 0, cell = 0, cell_integer = 0;
        if (words >> kind >> columns >> span >> row >> row_integer >> cell >> cell_integer) {
            found[kind + " " + columns + " " + span] = cell_integer;
        }
    }
    return found;
}

struct Work {
    std::size_t read, haplotype;
    Scores scores;
};

constexpr std::size_t reads_a_haplotype = 32;

struct Data {
    std::vector<std::string> haplotypes;
    std::vector<std::vector<std::string>> texts;
    std::vector<std::vector<std::string_view>> reads;
    std::vector<std::vector<Alignment>> found;
    std::vector<AlignmentTask> tasks;
    double cells = 0;
    std::size_t pairs = 0, bytes = DeviceAligner::header_bytes();
};

std::string read_of(std::mt19937_64& random, std::string_view haplotype, std::size_t size, const Noise& noise) {
    const auto under = [&](std::size_t below) { return static_cast<std::size_t>(random() % below); };
    const auto happens = [&](double probability) { return std::generate_canonical<double, 32>(random) < probability; };
    std::string read;
    // What deletions take is made up for by the bases behind, as far as there are any.
    const std::size_t taken = std::min(size + 20, haplotype.size());
    for (const char base : haplotype.substr(under(haplotype.size() - taken + 1), taken)) {
        if (!happens(noise.errors)) {
            read += base;
        } else if (!happens(noise.gaps)) {
            read += "ACGT"[under(4)];
        } else if (under(2) == 0) {
            read += {base, "ACGT"[under(4)]};
        }
    }
    if (under(1000) < noise.long_gaps) read.erase(under(size), 1 + under(10));
    read.resize(size, 'A');
    return read;
}

Data make(std::mt19937_64& random, const Work& work, std::size_t haplotypes, const Noise& noise = {}) {
    Data data;
    for (std::size_t h = 0; h < haplotypes; ++h) {
        std::string haplotype;
        for (std::size_t i = 0; i < work.haplotype; ++i) haplotype += "ACGT"[random() % 4];
        auto& texts = data.texts.emplace_back();
        for (std::size_t r = 0; r < reads_a_haplotype; ++r)
            texts.push_back(read_of(random, haplotype, work.read, noise));
        data.haplotypes.push_back(std::move(haplotype));
    }
    for (std::size_t h = 0; h < haplotypes; ++h) {
        data.reads.emplace_back(data.texts[h].begin(), data.texts[h].end());
        data.found.emplace_back(reads_a_haplotype);
        data.bytes += DeviceAligner::target_bytes(work.haplotype);
        data.bytes += reads_a_haplotype * DeviceAligner::query_bytes(work.read);
    }
    for (std::size_t h = 0; h < haplotypes; ++h) {
        data.tasks.push_back({data.haplotypes[h], data.reads[h], data.found[h]});
    }
    data.pairs = haplotypes * reads_a_haplotype;
    data.cells = static_cast<double>(data.pairs * work.read * work.haplotype);
    return data;
}

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A batch on its way.
struct Lane {
    Lane(Device& device, std::size_t bytes) : staging(device.make_staging(bytes)), stream(device.make_stream()) {}
    std::unique_ptr<Staging> staging;
    std::unique_ptr<Stream> stream; // destroyed first
};

/// Cells a second: as many runs of `batch` as fit in `seconds`, at least two, until `finish` has seen them all through.
template <class Batch, class Finish>
double rate(double cells, double seconds, Batch batch, Finish finish) {
    batch(); // warm
    finish();
    const auto start = Clock::now();
    int runs = 0;
    do {
        batch();
        ++runs;
    } while (runs < 2 || seconds_since(start) < seconds);
    finish();
    return cells * runs / seconds_since(start);
}

/// Wrong alignments.
std::size_t wrong(const Data& data, const Scores& scores, Span span) {
    std::size_t sum = 0;
    std::vector<Alignment> expected(reads_a_haplotype);
    for (std::size_t h = 0; h < data.haplotypes.size(); ++h) {
        align(data.reads[h], data.haplotypes[h], scores, span, expected);
        for (std::size_t r = 0; r < reads_a_haplotype; ++r) sum += data.found[h][r] != expected[r];
    }
    return sum;
}

/// What a row says; rates are in cells a second.
struct Row {
    bool right = false;
    double ceiling = 0, kernels = 0, copied = 0, whole = 0, core = 0;
};

/// Prints one row. Adds the kernel's name.
Row measure(Device& device, bool gpu, const Work& work, Span span, const Options& options, std::mt19937_64& random,
            std::set<std::string>& kernels_run) {
    const DeviceAligner aligner(work.scores, span);
    const std::string kernel = aligner.kernel_of(work.read, work.haplotype);
    const auto tile = std::find_if(std::begin(tiles), std::end(tiles), [&](const Tile& t) { return t.name == kernel; });
    if (tile == std::end(tiles)) {
        std::printf("%zu x %zu: no instructions are counted of the kernel '%s'\n", work.read, work.haplotype,
                    kernel.c_str());
        return {};
    }
    kernels_run.insert(kernel + (span == Span::local ? " local" : " query"));
    const auto through = [&](Lane& lane, const Data& data) {
        aligner.pack(data.tasks, *lane.staging);
        aligner.launch(*lane.staging, *lane.stream);
        lane.stream->synchronise();
        aligner.unpack(*lane.staging, data.tasks);
    };
    // What the host does in about a second, and at least one haplotype.
    const std::size_t little = std::max<std::size_t>(1, 30'000'000 / (work.read * work.haplotype * reads_a_haplotype));
    Data checked = make(random, work, gpu ? 60 : little);
    {
        Lane lane(device, checked.bytes);
        through(lane, checked);
    }
    const std::size_t errors = wrong(checked, work.scores, span);
    const auto start = Clock::now();
    static_cast<void>(wrong(checked, work.scores, span));
    const double core = checked.cells / seconds_since(start);

    // Enough for every multiprocessor several times over; the host is slower by four orders of magnitude.
    Data data =
        make(random, work, gpu ? std::max<std::size_t>(64, 500'000'000 / (work.read * work.haplotype)) : little);
    Lane lane(device, data.bytes);
    double run_seconds = 0, run_cells = 0;
    aligner.pack(data.tasks, *lane.staging);
    rate(
        data.cells, options.seconds,
        [&] {
            aligner.launch(*lane.staging, *lane.stream);
            lane.stream->synchronise();
            run_seconds += std::chrono::duration<double>(lane.stream->take_times().run).count();
            run_cells += data.cells;
        },
        [] {});
    const double kernels = run_cells / run_seconds;

    std::vector<Lane> lanes;
    for (int i = 0; i < 3; ++i) aligner.pack(data.tasks, *lanes.emplace_back(device, data.bytes).staging);
    std::size_t next = 0;
    const double copied = rate(
        data.cells, options.seconds,
        [&] {
            Lane& oldest = lanes[next++ % lanes.size()];
            oldest.stream->synchronise();
            static_cast<void>(oldest.stream->take_times());
            aligner.launch(*oldest.staging, *oldest.stream);
        },
        [&] {
            for (Lane& each : lanes) each.stream->synchronise();
        });

    const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1U, 16U);
    std::vector<Data> own(threads);
    for (Data& mine : own) mine = make(random, work, std::max<std::size_t>(1, data.haplotypes.size() / threads));
    std::atomic<double> whole{0};
    std::vector<std::thread> workers;
    for (Data& mine : own) {
        workers.emplace_back([&] {
            Lane ours(device, mine.bytes);
            whole += rate(
                mine.cells, options.seconds, [&] { through(ours, mine); }, [] {});
        });
    }
    for (std::thread& worker : workers) worker.join();

    const auto counted = options.integer_a_cell.find(kernel + (span == Span::local ? " local" : " query"));
    const double cell = counted != options.integer_a_cell.end() ? counted->second
                        : span == Span::local                   ? tile->local
                                                                : tile->query;
    const double ceiling =
        static_cast<double>(options.multiprocessors) * options.mhz * 1e6 * integer_lanes * tile->pairs / cell;
    std::printf("%-10s %4zu x %-5zu %-6s %5zu of %-5zu %7.2f %8.4f %8.4f %8.4f %7.0f%% %7.0f%% %9.1f %8.1f%s\n",
                kernel.c_str(), work.read, work.haplotype, span == Span::local ? "local" : "query", errors,
                checked.pairs, ceiling / 1e12, kernels / 1e12, copied / 1e12, whole / 1e12, 100 * kernels / ceiling,
                100 * copied / kernels, core / 1e9, whole / core, errors > 0 ? "  <- WRONG" : "");
    std::fflush(stdout);
    return {
        .right = errors == 0, .ceiling = ceiling, .kernels = kernels, .copied = copied, .whole = whole, .core = core};
}

void print_goals(Span span, const Row& row) {
    const struct {
        const char* what;
        double figure, at_least;
    } goals[] = {{"TCUPS of the kernels", row.kernels / 1e12, 3},
                 {"kernels' share of the ceiling", row.kernels / row.ceiling, 0.6},
                 {"TCUPS with copies over the kernels'", row.copied / row.kernels, 0.5},
                 {"TCUPS with CIGARs", row.whole / 1e12, 1},
                 {"times one core, with CIGARs", row.whole / row.core, 20}};
    for (const auto& goal : goals) {
        std::printf("goal: 150 x 400, %s: %s, %s\n", span == Span::local ? "local" : "query", goal.what,
                    bench::judged(goal.figure, goal.at_least).c_str());
    }
}

/// Does nothing but count what would go over the bus.
class CountingStream final : public Stream {
public:
    std::size_t in = 0, out = 0;

    void copy_in(Staging&, std::size_t, std::size_t bytes) override { in += bytes; }
    void run(std::size_t, Kernel) override {}
    void copy_out(Staging&, std::size_t, std::size_t bytes) override { out += bytes; }
    void synchronise() override {}
    [[nodiscard]] bool done() override { return true; }
    [[nodiscard]] DeviceTimes take_times() override { return {}; }
};

/// Prints what one thread costs a pair; false on a wrong alignment.
bool measure_host(std::size_t read, const Options& options, std::mt19937_64& random) {
    std::printf("one thread, %zu x %zu query, %zu reads a haplotype; nanoseconds a pair; the least of several runs\n\n",
                read, host_haplotype, reads_a_haplotype);
    std::printf("%-9s %7s %7s %8s %8s %10s %10s %12s %10s %8s\n", "errors", "gaps", "pack", "unpack", "align()",
                "align()/", "TCUPS of", "threads for", "bytes", "bytes");
    std::printf("%-9s %7s %7s %8s %8s %10s %10s %12s %10s %8s\n", "a base", "reads", "", "", "1 core", "both",
                "1 thread", "1 TCUPS", "in", "out");
    bool right = true;
    for (const double errors : {0.002, 0.01}) {
        const Work work{read, host_haplotype, {}};
        Data data = make(random, work, 120, {.errors = errors, .gaps = 0.1, .long_gaps = 0});
        const DeviceAligner aligner(work.scores, Span::query);
        HostDevice device({.asynchronous = false});
        Lane lane(device, data.bytes);
        CountingStream bus;
        aligner.pack(data.tasks, *lane.staging);
        aligner.launch(*lane.staging, bus);
        aligner.launch(*lane.staging, *lane.stream);
        const auto pairs = static_cast<double>(data.pairs);
        // Of what runs beside this only delays can come, so the least is nearest.
        const auto nanoseconds = [&](auto does) {
            double least = 1e18;
            const auto begin = Clock::now();
            do {
                const auto start = Clock::now();
                does();
                least = std::min(least, seconds_since(start));
            } while (seconds_since(begin) < options.seconds);
            return 1e9 * least / pairs;
        };
        const double unpack = nanoseconds([&] { aligner.unpack(*lane.staging, data.tasks); });
        const std::size_t errors_found = wrong(data, work.scores, Span::query);
        right = right && errors_found == 0;
        std::size_t gaps = 0;
        for (const auto& found : data.found) {
            for (const Alignment& each : found) gaps += each.cigar.size() > 1;
        }
        const double pack = nanoseconds([&] { aligner.pack(data.tasks, *lane.staging); });
        std::vector<Alignment> found(reads_a_haplotype);
        const double core = nanoseconds([&] {
            for (std::size_t h = 0; h < data.haplotypes.size(); ++h) {
                align(data.reads[h], data.haplotypes[h], work.scores, Span::query, found);
            }
        });
        const double cells = static_cast<double>(read * host_haplotype);
        std::printf("%8.1f%% %6.1f%% %7.0f %8.0f %8.0f %10.1f %10.3f %12.1f %10.0f %8.0f%s\n", 100 * errors,
                    100 * static_cast<double>(gaps) / pairs, pack, unpack, core, core / (pack + unpack),
                    cells / (pack + unpack) / 1e3, (pack + unpack) / (cells / 1e3), static_cast<double>(bus.in) / pairs,
                    static_cast<double>(bus.out) / pairs, errors_found > 0 ? "  <- WRONG" : "");
    }
    return right;
}

} // namespace

int main(int argc, char** argv) {
    Options options;
    std::string instructions;
    bench::read_options(argc, argv, usage,
                        {{"--multiprocessors", &options.multiprocessors},
                         {"--mhz", &options.mhz},
                         {"--seconds", &options.seconds},
                         {"--seed", &options.seed},
                         {"--instructions", &instructions},
                         {"--host", &options.host}});
    if (!instructions.empty()) {
        options.integer_a_cell = read_instructions(instructions);
        if (options.integer_a_cell.empty()) bench::refuse("no instructions are counted in " + instructions, usage);
    }
    if (options.host > host_haplotype) {
        bench::refuse("--host: reads are aligned to " + std::to_string(host_haplotype) + " bases, so at most as long",
                      usage);
    }
    if (options.host > 0) {
        std::mt19937_64 random(options.seed);
        return measure_host(options.host, options, random) ? 0 : 1;
    }
    const CudaDevices found = cuda_devices();
    const bool gpu = !found.devices.empty();
    const std::shared_ptr<Device> device = gpu ? found.devices[0] : std::make_shared<HostDevice>();
    if (gpu) {
        std::printf("on %s, ", device->name().c_str());
    } else {
        std::printf("NO GPU: %s.\nThe kernels run in lockstep on the host: what is checked holds, what is timed says "
                    "nothing of a GPU.\n",
                    found.reason.c_str());
        options.seconds = std::min(options.seconds, 0.1);
    }
    std::printf("ceiling of sm_90 with %llu multiprocessors at %.0f MHz; %zu reads a haplotype; seed %llu\n\n",
                static_cast<unsigned long long>(options.multiprocessors), options.mhz, reads_a_haplotype,
                static_cast<unsigned long long>(options.seed));
    std::printf("%-10s %-12s %-6s %14s %7s %8s %8s %8s %8s %8s %9s %8s\n", "", "", "", "", "", "kernels", "copies",
                "CIGARs", "kernels/", "copies/", "one core", "CIGARs/");
    std::printf("%-10s %-12s %-6s %14s %7s %8s %8s %8s %8s %8s %9s %8s\n", "tile", "pairs", "span", "wrong", "ceiling",
                "TCUPS", "TCUPS", "TCUPS", "ceiling", "kernels", "GCUPS", "core");

    std::mt19937_64 random(options.seed);
    constexpr Scores coarse{.match = 60, .mismatch = -61, .unknown = -61, .gap_open = 60, .gap_extend = 7};
    const std::vector<Work> all{{50, 200, {}},   {100, 200, {}},      {150, 400, {}},      {250, 600, {}},
                                {500, 1000, {}}, {500, 1000, coarse}, {1000, 1500, coarse}};
    std::set<std::string> kernels_run;
    std::vector<std::pair<Span, Row>> wanted;
    bool right = true;
    for (const Work& work : all) {
        for (const Span span : {Span::local, Span::query}) {
            const Row row = measure(*device, gpu, work, span, options, random, kernels_run);
            right = right && row.right;
            if (work.read == 150 && work.haplotype == 400) wanted.emplace_back(span, row);
        }
    }
    std::printf("\n");
    if (gpu) {
        for (const auto& [span, row] : wanted) print_goals(span, row);
    } else {
        std::printf("goals: left out, for there is no GPU\n");
    }
    const bool all_run = kernels_run.size() == 2 * std::size(tiles);
    std::printf("\n%s\n", !right     ? "WRONG: see above"
                          : !all_run ? "NOT EVERY KERNEL was run: other sizes are needed"
                                     : "every alignment is the CPU's");
    return right && all_run ? 0 : 1;
}
