#include "hts/expect_error.hpp"
#include "hts/handles.hpp"
#include "spillway/hts.hpp"
#include "temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <clocale>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <limits>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <htslib/tbx.h>

using namespace spillway;
using namespace spillway::test;

namespace {

const std::vector<std::string> header_lines{
    "##FILTER=<ID=PASS,Description=\"All filters passed\">",
    "##FILTER=<ID=LowQual,Description=\"Low\">",
    "##INFO=<ID=DP,Number=1,Type=Integer,Description=\"Depth\">",
    "##INFO=<ID=SOMATIC,Number=0,Type=Flag,Description=\"Flag\">",
    "##FORMAT=<ID=GT,Number=1,Type=String,Description=\"Genotype\">",
    "##FORMAT=<ID=DP,Number=1,Type=Integer,Description=\"Depth\">",
    "##FORMAT=<ID=AD,Number=R,Type=Integer,Description=\"Depths\">",
    "##FORMAT=<ID=GQ,Number=1,Type=Integer,Description=\"Quality\">",
    "##FORMAT=<ID=PL,Number=G,Type=Integer,Description=\"Likelihoods\">",
};

hts::VcfOptions options_for(const std::string& path, std::int64_t longest = 100'000) {
    return {.path = path,
            .header = header_lines,
            .contigs = {{"c1", longest, ""}, {"c2", 5000, ""}, {"c3", 400, ""}},
            .sample = "S1"};
}

hts::VcfRecord record(std::int32_t contig, std::int64_t begin) {
    return {.contig = contig,
            .begin = begin,
            .id = "",
            .reference = "AC",
            .alternates = {"A", "ACG"},
            .quality = 12.345,
            .filters = {"PASS"},
            .info = {{"DP", "30"}, {"SOMATIC", ""}},
            .format = {{"GT", "1/2"}, {"DP", "30"}, {"AD", "0,14,16"}, {"GQ", "99"}, {"PL", "9,8,7,6,5,0"}}};
}

constexpr const char* line_of_record =
    "c1\t101\t.\tAC\tA,ACG\t12.35\tPASS\tDP=30;SOMATIC\tGT:DP:AD:GQ:PL\t1/2:30:0,14,16:99:9,8,7,6,5,0\n";

std::vector<std::string> names_in(const TemporaryDirectory& directory) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
        names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
}

/// Every record as htslib reads it back, as text.
std::vector<std::string> lines_by_htslib(const std::string& path) {
    const hts::File file(hts_open(path.c_str(), "r"));
    REQUIRE(file);
    const hts::VcfHeader header(bcf_hdr_read(file.get()));
    REQUIRE(header);
    const hts::VcfLine line(bcf_init());
    std::vector<std::string> lines;
    int got = 0;
    while ((got = bcf_read(file.get(), header.get(), line.get())) == 0) {
        hts::Text text;
        REQUIRE(vcf_format(header.get(), line.get(), &text) == 0);
        lines.emplace_back(text.s, text.l);
    }
    CHECK(got == -1);
    CHECK(hts_check_EOF(file.get()) != 0);
    return lines;
}

/// Positions that a query of the index finds on a contig.
std::vector<std::int64_t> query(const std::string& path, const char* contig, std::int64_t begin, std::int64_t end) {
    std::vector<std::int64_t> found;
    const hts::File file(hts_open(path.c_str(), "r"));
    REQUIRE(file);
    if (path.ends_with(".bcf")) {
        const hts::VcfHeader header(bcf_hdr_read(file.get()));
        const hts::Index index(bcf_index_load3(path.c_str(), nullptr, 0));
        REQUIRE(index);
        const hts::Iterator iterator(bcf_itr_queryi(index.get(), bcf_hdr_name2id(header.get(), contig), begin, end));
        REQUIRE(iterator);
        const hts::VcfLine line(bcf_init());
        while (bcf_itr_next(file.get(), iterator.get(), line.get()) >= 0) found.push_back(line->pos + 1);
        return found;
    }
    const std::unique_ptr<tbx_t, hts::Destroy<tbx_destroy>> index(tbx_index_load3(path.c_str(), nullptr, 0));
    REQUIRE(index);
    const int id = tbx_name2id(index.get(), contig);
    if (id < 0) return found; // a contig without records
    const hts::Iterator iterator(tbx_itr_queryi(index.get(), id, begin, end));
    REQUIRE(iterator);
    hts::Text line;
    while (tbx_itr_next(file.get(), index.get(), iterator.get(), &line) >= 0)
        found.push_back(std::atol(std::strchr(line.s, '\t') + 1));
    return found;
}

} // namespace

TEST_CASE("plain VCF is the header and one line a record") {
    TemporaryDirectory directory;
    const std::string path = directory.file("out.vcf");
    hts::VcfWriter vcf(options_for(path));
    vcf.write(record(0, 100));
    vcf.write({.contig = 1, .begin = 4, .reference = "N"});
    CHECK(vcf.records() == 2);
    CHECK_FALSE(std::filesystem::exists(path));
    vcf.commit();
    const std::string text = read_file(path);
    CHECK(text.rfind("##fileformat=VCFv4.2\n##FILTER=<ID=PASS", 0) == 0);
    CHECK(text.find("##contig=<ID=c2,length=5000>\n") != std::string::npos);
    const std::string columns = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tS1\n";
    CHECK(text.substr(text.find("#CHROM")) == columns + line_of_record + "c2\t5\t.\tN\t.\t.\t.\t.\t.\t.\n");
    CHECK(names_in(directory) == std::vector<std::string>{"out.vcf"});
}

TEST_CASE("htslib reads back what was written, in every format, and its index finds it") {
    TemporaryDirectory directory;
    for (const auto& [name, index, longest] :
         std::vector<std::tuple<std::string, std::string, std::int64_t>>{{"out.vcf.gz", ".tbi", 100'000},
                                                                         {"big.vcf.gz", ".csi", std::int64_t{1} << 31},
                                                                         {"out.bcf", ".csi", 100'000}}) {
        CAPTURE(name);
        const std::string path = directory.file(name);
        hts::VcfWriter vcf(options_for(path, longest));
        for (std::int64_t begin = 100; begin < 90'000; begin += 7) vcf.write(record(0, begin));
        vcf.write(record(2, 10));
        vcf.commit();
        const auto lines = lines_by_htslib(path);
        REQUIRE(lines.size() == (90'000 - 100 + 6) / 7 + 1);
        CHECK(lines[0] == line_of_record);
        CHECK(std::filesystem::exists(path + index));
        CHECK(query(path, "c1", 50'000, 50'014) == std::vector<std::int64_t>{50'004, 50'011});
        CHECK(query(path, "c1", 0, 101) == std::vector<std::int64_t>{101});
        CHECK(query(path, "c3", 0, 400) == std::vector<std::int64_t>{11});
        CHECK(query(path, "c2", 0, 5000).empty());
    }
}

TEST_CASE("a file without records is whole and has an index") {
    TemporaryDirectory directory;
    for (const char* name : {"out.vcf.gz", "out.bcf"}) {
        hts::VcfWriter vcf(options_for(directory.file(name)));
        vcf.commit();
        CHECK(lines_by_htslib(directory.file(name)).empty());
        CHECK(query(directory.file(name), "c1", 0, 1000).empty());
    }
}

TEST_CASE("equal records are equal bytes") {
    TemporaryDirectory directory;
    for (const char* name : {"a.vcf.gz", "b.vcf.gz", "a.bcf", "b.bcf"}) {
        hts::VcfWriter vcf(options_for(directory.file(name)));
        for (std::int64_t begin = 0; begin < 5000; ++begin) vcf.write(record(0, begin));
        vcf.commit();
    }
    CHECK(read_file(directory.file("a.vcf.gz")) == read_file(directory.file("b.vcf.gz")));
    CHECK(read_file(directory.file("a.vcf.gz.tbi")) == read_file(directory.file("b.vcf.gz.tbi")));
    CHECK(read_file(directory.file("a.bcf")) == read_file(directory.file("b.bcf")));
    CHECK(read_file(directory.file("a.bcf.csi")) == read_file(directory.file("b.bcf.csi")));
}

TEST_CASE("without commit nothing is left, and an old file stays as it was") {
    TemporaryDirectory directory;
    directory.write("old.vcf.gz", "old");
    directory.write("old.vcf.gz.tbi", "index");
    {
        hts::VcfWriter old(options_for(directory.file("old.vcf.gz")));
        hts::VcfWriter fresh(options_for(directory.file("new.vcf.gz")));
        old.write(record(0, 1));
        fresh.write(record(0, 1));
    }
    CHECK(names_in(directory) == std::vector<std::string>{"old.vcf.gz", "old.vcf.gz.tbi"});
    CHECK(read_file(directory.file("old.vcf.gz")) == "old");
    hts::VcfWriter vcf(options_for(directory.file("old.vcf.gz")));
    vcf.commit();
    CHECK(names_in(directory) == std::vector<std::string>{"old.vcf.gz", "old.vcf.gz.tbi"});
    CHECK(read_file(directory.file("old.vcf.gz.tbi")) != "index");
}

TEST_CASE("a process that is killed while it writes leaves no file") {
    TemporaryDirectory directory;
    const int probe = ::open(directory.path().c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    if (probe < 0) {
        WARN("this file system knows no nameless files");
        return;
    }
    ::close(probe);
    const pid_t child = ::fork();
    if (child == 0) {
        hts::VcfWriter vcf(options_for(directory.file("calls.vcf.gz")));
        for (std::int64_t begin = 0; begin < 20'000; ++begin) vcf.write(record(0, begin));
        ::raise(SIGKILL);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    CHECK(names_in(directory).empty());
}

TEST_CASE("a full disk is a disk error") {
    const auto write_much = [](hts::VcfFormat format) {
        hts::VcfOptions options = options_for("/dev/full");
        options.format = format;
        hts::VcfWriter vcf(options);
        for (std::int64_t begin = 0; begin < 20'000; ++begin) vcf.write(record(0, begin));
        vcf.commit();
    };
    for (const hts::VcfFormat format : {hts::VcfFormat::text, hts::VcfFormat::bgzip, hts::VcfFormat::bcf}) {
        const Error error = error_of([&] { write_much(format); });
        CHECK(error.code() == ErrorCode::disk);
        CHECK(says(error, "/dev/full"));
    }
    // A header alone fails no later than at commit.
    CHECK(error_of([] { hts::VcfWriter(options_for("/dev/full")).commit(); }).code() == ErrorCode::disk);
}

TEST_CASE("a file that may not grow is a disk error and leaves nothing") {
    TemporaryDirectory directory;
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{40'000, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    const Error error = error_of([&] {
        hts::VcfWriter vcf(options_for(directory.file("out.vcf")));
        for (std::int64_t begin = 0; begin < 20'000; ++begin) vcf.write(record(0, begin));
        vcf.commit();
    });
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
    std::signal(SIGXFSZ, handler);
    CHECK(error.code() == ErrorCode::disk);
    CHECK(names_in(directory).empty());
}

TEST_CASE("a path that cannot be written is an error before any work is done") {
    TemporaryDirectory directory;
    CHECK(error_of([&] { hts::VcfWriter vcf(options_for(directory.file("none/out.vcf"))); }).code() == ErrorCode::disk);
    CHECK(error_of([&] { hts::VcfWriter vcf(options_for(directory.path().string())); }).code() == ErrorCode::disk);
}

TEST_CASE("records out of order or outside the header are refused") {
    TemporaryDirectory directory;
    hts::VcfWriter vcf(options_for(directory.file("out.vcf.gz")));
    vcf.write(record(1, 100));
    vcf.write(record(1, 100));
    CHECK(error_of([&] { vcf.write(record(1, 99)); }).code() == ErrorCode::runtime);
    CHECK(error_of([&] { vcf.write(record(0, 200)); }).code() == ErrorCode::runtime);
    CHECK(error_of([&] { vcf.write(record(3, 200)); }).code() == ErrorCode::runtime);
}

TEST_CASE("numbers have at most their decimals, rounded, whatever the locale") {
    CHECK(hts::number(12.5) == "12.5");
    CHECK(hts::number(3.0) == "3");
    CHECK(hts::number(0.005) == "0.01");
    CHECK(hts::number(0.004) == "0");
    CHECK(hts::number(-0.004) == "0");
    CHECK(hts::number(-1.255, 1) == "-1.3");
    CHECK(hts::number(99.999) == "100");
    CHECK(hts::number(2.05, 3) == "2.05");
    CHECK(hts::number(0.000001, 6) == "0.000001");
    CHECK(hts::number(7.6, 0) == "8");
    CHECK(hts::number(1e15) == "1000000000000000");
    CHECK(hts::number(1e18) == "1000000000000000000");
    CHECK(hts::number(std::numeric_limits<double>::infinity()) == ".");
    CHECK(hts::number(std::numeric_limits<double>::quiet_NaN()) == ".");
    CHECK(hts::joined(std::vector<std::int32_t>{3, 0, -42}) == "3,0,-42");
    CHECK(hts::joined({}).empty());
}
