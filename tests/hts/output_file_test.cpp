// Outputs under faults and among planted names: complete under their name or not there, and nothing else is touched.
#include "hts/expect_error.hpp"
#include "hts/output_file.hpp"
#include "spill/faulty_files.hpp"
#include "spillway/hts.hpp"
#include "temporary_directory.hpp"

#include <catch2/catch.hpp>

using namespace spillway;
using namespace spillway::test;
using spillway::hts::OutputFile;

namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const TemporaryDirectory& directory) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory.path())) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
}

std::string own_number() {
    return std::to_string(::getpid());
}

/// A VCF with an index and no record.
void write_calls(const std::string& path, std::shared_ptr<FileSystem> files) {
    hts::VcfWriter vcf({.path = path, .contigs = {{"c1", 1000, ""}}, .sample = "S1", .files = std::move(files)});
    vcf.commit();
}

/// Counts syncs, and lets the first fail.
class FailingSync : public FileSystem {
public:
    int error = 0;
    int syncs = 0;
    int sync(int, bool) override { return ++syncs == 1 ? -error : 0; }
};

} // namespace

TEST_CASE("links planted under the temporary names of an output and its index lead nobody to what they point to") {
    for (const bool nameless : {true, false}) {
        const TemporaryDirectory directory;
        const std::string precious = directory.write("precious", "precious");
        const std::vector<std::string> planted = {
            "calls.vcf.gz.tbi.tmp-" + own_number() + "-0", "calls.vcf.gz.tmp-" + own_number() + "-0",
            "calls.vcf.gz.tmp-" + own_number() + "-0.tbi", "calls.vcf.gz.tmp-" + own_number() + "-1.tbi"};
        for (const std::string& name : planted) fs::create_symlink(precious, directory.file(name));
        fs::create_symlink(precious, directory.file("calls.vcf.gz.tbi"));
        const auto files = std::make_shared<FaultyFiles>();
        files->no_nameless = !nameless;
        write_calls(directory.file("calls.vcf.gz"), files);
        CHECK(read_file(precious) == "precious");
        CHECK(fs::is_regular_file(fs::symlink_status(directory.file("calls.vcf.gz.tbi"))));
        CHECK(fs::file_size(directory.file("calls.vcf.gz.tbi")) > 20);
        std::vector<std::string> names = planted;
        names.insert(names.end(), {"calls.vcf.gz", "calls.vcf.gz.tbi", "precious"});
        std::sort(names.begin(), names.end());
        CHECK(names_in(directory) == names);
    }
}

TEST_CASE("an output that is a link goes on being one, and what it points to is replaced") {
    const TemporaryDirectory directory;
    directory.write("target.txt", "old");
    fs::create_symlink("target.txt", directory.file("link.txt"));
    OutputFile file(directory.file("link.txt"), false, nullptr);
    file.write("new");
    file.commit();
    CHECK(fs::is_symlink(directory.file("link.txt")));
    CHECK(read_file(directory.file("target.txt")) == "new");
}

TEST_CASE(
    "whichever call fails, an output and its index are there and whole, or an error says why and no part is left") {
    const TemporaryDirectory whole;
    write_calls(whole.file("calls.vcf.gz"), nullptr);
    const std::vector<std::string> names = {"calls.vcf.gz", "calls.vcf.gz.tbi"};
    std::vector<Fault> faults = {{.error = EINTR}, {.error = EINTR, .for_good = true}, {}};
    for (const int error : {EIO, ENOSPC, EDQUOT, EMFILE, EACCES, EROFS})
        for (const bool for_good : {false, true}) faults.push_back({.error = error, .for_good = for_good});
    for (const bool nameless : {true, false}) {
        for (const Fault& fault : faults) {
            for (long k = 0;; ++k) {
                INFO("errno " << fault.error << (fault.for_good ? " for good" : "") << " at call " << k);
                const TemporaryDirectory directory;
                const auto files = std::make_shared<FaultyFiles>();
                files->no_nameless = !nameless;
                files->fault = fault;
                files->fail_call = k;
                bool may_be_unnamed = false;
                files->on_fault = [&](const std::string& call) {
                    may_be_unnamed = may_be_unnamed || call.starts_with("unlink ");
                };
                bool done = false;
                try {
                    write_calls(directory.file("calls.vcf.gz"), files);
                    done = true;
                } catch (const Error& error) {
                    if (error.code() != ErrorCode::disk || fault.error == 0) FAIL(error.what());
                }
                const std::vector<std::string> left = names_in(directory);
                if (done && left != names) FAIL("an output without an index, or more than both");
                for (const std::string& name : left) {
                    const std::size_t mark = name.find(".tmp-");
                    const std::string final_name = name.substr(0, mark);
                    if (std::find(names.begin(), names.end(), final_name) == names.end()) FAIL(name);
                    // The name of one that is not finished goes, unless it may not.
                    if (mark != std::string::npos && may_be_unnamed) continue;
                    if (mark != std::string::npos) FAIL(name);
                    if (read_file(directory.file(name)) != read_file(whole.file(name))) FAIL("a part of " + name);
                }
                if (files->fail_call >= 0) break; // Never reached: all have been.
            }
        }
    }
}

TEST_CASE("a sync that failed is final: neither finish nor commit tries it again") {
    for (const int error : {EIO, EINTR}) {
        const TemporaryDirectory directory;
        const auto files = std::make_shared<FailingSync>();
        files->error = error;
        {
            OutputFile file(directory.file("out.txt"), false, files);
            file.write("text");
            CHECK(error_of([&] { file.finish(); }).code() == ErrorCode::disk);
            const Error again = error_of([&] { file.commit(); });
            CHECK(again.code() == ErrorCode::disk);
            CHECK(says(again, "syncing"));
            CHECK(error_of([&] { file.write("more"); }).code() == ErrorCode::disk);
        }
        CHECK(files->syncs == 1);
        CHECK(names_in(directory).empty());
    }
}

TEST_CASE("what cannot be looked at is not taken for a place where a file may be put") {
    class Blind : public FileSystem {
    public:
        int status_of(int, const char*, int, struct stat&) override { return -EACCES; }
    };
    const Error error = error_of([] { OutputFile file("/dev/full", false, std::make_shared<Blind>()); });
    CHECK(error.code() == ErrorCode::disk);
    CHECK(says(error, "/dev/full"));
    CHECK(fs::is_character_file("/dev/full"));
}

TEST_CASE(
    "two that write the same output with names on the disk leave each other's alone, and a dead one's is removed") {
    const TemporaryDirectory directory;
    const auto files = std::make_shared<FaultyFiles>();
    files->no_nameless = true;
    const std::string dead = "out.txt.tmp-999999999-0";
    {
        OutputFile first(directory.file("out.txt"), false, files);
        first.write("first");
        directory.write(dead, "of a process that was killed");
        OutputFile second(directory.file("out.txt"), false, files);
        second.write("second");
        CHECK(names_in(directory) ==
              std::vector<std::string>{"out.txt.tmp-" + own_number() + "-0", "out.txt.tmp-" + own_number() + "-1"});
        first.commit();
        CHECK(read_file(directory.file("out.txt")) == "first");
        second.commit();
        CHECK(read_file(directory.file("out.txt")) == "second");
    }
    CHECK(names_in(directory) == std::vector<std::string>{"out.txt"});
}
