// spillway-call with a fault in its own files: for tests, and for soaking.
//
//     spillway-call-faulty kill-before@17 -f ref.fa -o calls.vcf.gz --resume DIR in.bam      the 18th call on a file
//     spillway-call-faulty ENOSPC@17+ ...                                                    that one and all after it
//     spillway-call-faulty count ...                                                         prints how many there are,
//     and how many payloads were spilled
//
// Faults: kill-before, kill-after, half, late, ENOSPC, EIO, EDQUOT, EMFILE, EACCES, EROFS, EINTR.
#include "calling.hpp"
#include "signals.hpp"
#include "spill/faulty_files.hpp"

#include "spillway/error.hpp"

#include <cstring>
#include <iostream>
#include <map>

namespace {

using spillway::test::Fault;

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

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    const auto files = std::make_shared<spillway::test::FaultyFiles>();
    const std::string asked = argv[1];
    const bool counting = asked == "count";
    if (!counting) {
        const std::size_t at = asked.find('@');
        const auto named = faults.find(asked.substr(0, at));
        if (at == std::string::npos || named == faults.end()) {
            std::cerr << "spillway-call-faulty: no such fault: " << asked << '\n';
            return 2;
        }
        files->fault = named->second;
        files->fault.for_good = asked.back() == '+';
        files->fail_call = std::strtol(asked.c_str() + at + 1, nullptr, 10);
    }
    const caller::StopOnSignal signals;
    try {
        const auto command = caller::parse(argc - 1, argv + 1);
        if (!command.options) return command.exit_code;
        const caller::RunReport report = caller::run(
            *command.options,
            {.stop = signals.token(),
             .warn = [](const std::string& text) { std::cerr << "spillway-call: warning: " << text << '\n'; },
             .progress = {},
             .files = files});
        if (counting) std::cout << files->calls << ' ' << report.pipeline.spilled << '\n';
        return 0;
    } catch (const spillway::Error& error) {
        std::cerr << "spillway-call: " << error.what() << '\n';
        return spillway::exit_code(error.code());
    }
}
