#include "calling.hpp"
#include "signals.hpp"

#include "spillway/error.hpp"

#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <unistd.h>

namespace {

void print(const caller::RunReport& report) {
    std::cerr << "spillway-call: " << report.calls << " calls from " << report.reads_given << " reads ("
              << report.reads_decoded << " decoded, " << report.reads_in_file << " in the file; "
              << report.reads_without_bases << " without bases and " << report.reads_without_match
              << " without an aligned base left out); profile " << to_string(report.profile) << '\n'
              << to_string(report.pipeline);
    if (report.spans_resumed != 0) std::cerr << report.spans_resumed << " spans were finished by an earlier run\n";
}

/// One line that is written over again on a terminal; elsewhere a line each time.
void show(const spillway::Progress& progress, bool terminal) {
    std::fprintf(stderr, "%s%llu of %llu spans, %.0f s%s",
                 terminal ? "\r" : "spillway-call: ", static_cast<unsigned long long>(progress.finished),
                 static_cast<unsigned long long>(progress.expected), progress.seconds, terminal ? " " : "\n");
}

} // namespace

int main(int argc, char** argv) {
    const caller::StopOnSignal signals;
    std::signal(SIGXFSZ, SIG_IGN); // Writing past a limit of file sizes is an error that names the file.
    try {
        const auto asked = caller::parse(argc, argv);
        if (!asked.options) return asked.exit_code;
        const int verbosity = asked.options->verbosity;
        caller::RunOptions how{.stop = signals.token(), .warn = {}, .progress = {}};
        if (verbosity >= 1) {
            how.warn = [](const std::string& text) { std::cerr << "spillway-call: warning: " << text << '\n'; };
            how.tell = [](const std::string& text) { std::cerr << "spillway-call: " << text << '\n'; };
        }
        const bool terminal = isatty(STDERR_FILENO) != 0;
        const bool overwrites = terminal && (verbosity >= 1 || asked.options->progress);
        if (overwrites || asked.options->progress)
            how.progress = [overwrites](const spillway::Progress& progress) { show(progress, overwrites); };
        const auto report = caller::run(*asked.options, how);
        if (overwrites) std::cerr << "\r\x1b[K";
        if (verbosity >= 2) print(report);
        return 0;
    } catch (const spillway::Error& error) {
        std::cerr << "spillway-call: " << error.what() << '\n';
        return signals.caught() != 0 ? 128 + signals.caught() : spillway::exit_code(error.code());
    } catch (const std::bad_alloc&) {
        std::cerr << "spillway-call: out of memory\n";
        return spillway::exit_code(spillway::ErrorCode::memory);
    } catch (const std::exception& error) {
        std::cerr << "spillway-call: " << error.what() << '\n';
        return spillway::exit_code(spillway::ErrorCode::runtime);
    }
}
