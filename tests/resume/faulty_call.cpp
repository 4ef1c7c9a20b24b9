// spillway-call with a fault in its own files: for tests, and for soaking.
//
//     spillway-call-faulty kill-before@17 -f ref.fa -o calls.vcf.gz --resume DIR in.bam      the 18th call on a file
//     spillway-call-faulty ENOSPC@17+ ...                                                    that one and all after it
//     spillway-call-faulty count ...                                                         prints how many there are, how
//     many payloads were spilled, and how many spans were finished by an earlier run
//     spillway-call-faulty slow-output ENOSPC@17 ... --tmp-dir DIR                           it runs ahead and spills
//     spillway-call-faulty no-sync ENOSPC@17 ...                                             syncs are only counted: for
//     tests, which do not cut the power
//
// Faults: kill-before, kill-after, half, late, ENOSPC, EIO, EDQUOT, EMFILE, EACCES, EROFS, EINTR. Each kind of call that
// meets one is told on standard error: "fault: write /tmp/journal-00000001".
#include "calling.hpp"
#include "process.hpp"
#include "signals.hpp"
#include "spill/faulty_files.hpp"

#include "spillway/error.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <string_view>

namespace {

using spillway::test::Fault;
using spillway::test::FaultyFiles;

const std::map<std::string, Fault> faults = {
    {"kill-before", {.kills = true}},
    {"kill-after", {.kills = true, .after = true}},
    {"half", {}},
    {"late", {.delays = true}},
    {"ENOSPC", {.error = ENOSPC}},
    {"EIO", {.error = EIO}},
    {"EDQUOT", {.error = EDQUOT}},
    {"EMFILE", {.error = EMFILE}},
    {"EACCES", {.error = EACCES}},
    {"EROFS", {.error = EROFS}},
    {"EINTR", {.error = EINTR}},
};

/// Its output takes nothing until candidates have been written to the disk, or were to be, or all other threads sleep:
/// then nothing more is coming, however busy the machine. Nor for ever.
class SlowOutput : public FaultyFiles {
public:
    explicit SlowOutput(const std::vector<std::string>& temporary_directories) {
        for (const std::string& directory : temporary_directories)
            directories_.push_back(std::filesystem::weakly_canonical(directory).string() + '/');
    }

    std::int64_t append(int file, std::span<const std::byte> bytes) override {
        for (double ticks = 0; !spilled_ && asleep_ < 200 && naps_ < 60'000; ++naps_) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            if (spillway::test::all_sleep(::getpid(), ticks, ::gettid())) ++asleep_;
        }
        return FaultyFiles::append(file, bytes);
    }
    std::int64_t write(int file, std::span<const iovec> pieces, std::uint64_t offset) override {
        const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file)).string();
        const auto holds = [&](const std::string& directory) { return path.starts_with(directory); };
        if (std::any_of(directories_.begin(), directories_.end(), holds)) spilled_ = true; // else it is the journal
        return FaultyFiles::write(file, pieces, offset);
    }

private:
    std::vector<std::string> directories_;
    std::atomic<bool> spilled_{false};
    int naps_ = 0, asleep_ = 0; // the sink's: one thread at a time
};

/// In one piece, whatever other threads say.
void say(std::string line) {
    line += '\n';
    std::cerr << line;
}

/// Tells each kind of call once.
class FaultsMet {
public:
    void tell(const std::string& call) {
        const std::lock_guard lock(mutex_);
        if (told_.insert(call).second) say("fault: " + call);
    }

private:
    std::mutex mutex_;
    std::set<std::string> told_;
};

} // namespace

int main(int argc, char** argv) {
    std::set<std::string> words; // before the fault
    for (; argc > 1 && (std::string(argv[1]) == "slow-output" || std::string(argv[1]) == "no-sync"); ++argv, --argc)
        words.insert(argv[1]);
    const std::string asked = argc > 1 ? argv[1] : "";
    const bool counting = asked == "count";
    const std::size_t at = std::min(asked.find('@'), asked.size());
    const auto named = faults.find(asked.substr(0, at));
    const bool for_good = asked.ends_with('+');
    const auto number = std::string_view(asked).substr(std::min(at + 1, asked.size()));
    long fail_call = -1;
    const auto [end, wrong] = std::from_chars(number.data(), number.data() + number.size(), fail_call);
    const bool whole =
        wrong == std::errc() && end + (for_good ? 1 : 0) == number.data() + number.size() && fail_call >= 0;
    if (!counting && (named == faults.end() || !whole)) {
        std::cerr << "spillway-call-faulty: no such fault: \"" << asked << "\"; it is FAULT@K, FAULT@K+ or count\n";
        return 2;
    }
    const caller::StopOnSignal signals;
    try {
        const auto command = caller::parse(argc - 1, argv + 1);
        if (!command.options) return command.exit_code;
        std::shared_ptr<FaultyFiles> files;
        if (words.contains("slow-output"))
            files = std::make_shared<SlowOutput>(command.options->temporary_directories);
        else
            files = std::make_shared<FaultyFiles>();
        files->no_waiting = words.contains("no-sync");
        if (!counting) {
            files->fault = named->second;
            files->fault.for_good = for_good;
            files->fail_call = fail_call;
        }
        FaultsMet met;
        files->on_fault = [&](const std::string& call) { met.tell(call); };
        const caller::RunReport report = caller::run(
            *command.options, {.stop = signals.token(),
                               .warn = [](const std::string& text) { say("spillway-call: warning: " + text); },
                               .progress = {},
                               .files = files});
        if (counting)
            std::cout << files->calls << ' ' << report.pipeline.spilled << ' ' << report.spans_resumed << '\n';
        return 0;
    } catch (const spillway::Error& error) {
        std::cerr << "spillway-call: " << error.what() << '\n';
        return spillway::exit_code(error.code());
    } catch (const std::exception& error) {
        std::cerr << "spillway-call: " << error.what() << '\n';
        return spillway::exit_code(spillway::ErrorCode::runtime);
    }
}
