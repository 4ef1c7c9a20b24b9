#include "called.hpp"

#include <sstream>
#include <stdexcept>

namespace spillway::test {

namespace {

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
    return parts;
}

} // namespace

Called call(const TemporaryDirectory& directory, caller::CallerOptions options, caller::RunOptions how) {
    Called called;
    options.output = directory.file("called.vcf");
    if (options.threads == 0) options.threads = 1;
    how.warn = [&](const std::string& text) { called.warnings.push_back(text); };
    called.report = caller::run(options, how);
    called.text = read_file(options.output);
    for (const auto& line : split(called.text, '\n')) {
        const auto fields = split(line, '\t');
        if (line.starts_with("#CHROM")) called.sample = fields.at(9);
        if (line.starts_with('#')) continue;
        called.body += line + "\n";
        CalledRecord record{fields.at(0),
                            std::stoll(fields.at(1)),
                            fields.at(3),
                            fields.at(4),
                            fields.at(6),
                            std::stod(fields.at(5)),
                            {}};
        const auto keys = split(fields.at(8), ':'), values = split(fields.at(9), ':');
        for (std::size_t i = 0; i < keys.size(); ++i) record.format[keys[i]] = values.at(i);
        called.records.push_back(std::move(record));
    }
    return called;
}

std::uint64_t least_memory(const TemporaryDirectory& directory, caller::CallerOptions options) {
    options.memory = 1;
    try {
        static_cast<void>(call(directory, options));
    } catch (const spillway::Error& error) {
        const std::string what = error.what(), before = "allow at least ";
        const auto at = what.find(before);
        if (error.code() == spillway::ErrorCode::usage && at != std::string::npos)
            return std::stoull(what.substr(at + before.size()));
        throw;
    }
    throw std::runtime_error("a byte of memory was accepted");
}

std::vector<std::string> texts(const std::vector<CalledRecord>& records) {
    std::vector<std::string> texts;
    for (const auto& r : records) {
        texts.push_back(r.contig + ":" + std::to_string(r.position) + " " + r.reference + ">" + r.alternates + " " +
                        r.format.at("GT"));
    }
    return texts;
}

} // namespace spillway::test
