#include "hts/expect_error.hpp"
#include "hts/read_collector.hpp"
#include "hts/sam_builder.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace spillway;
using namespace spillway::test;

TEST_CASE("a header gives contigs, samples, read groups and order") {
    TemporaryDirectory directory;
    Genome genome;
    genome.random("c1", 1000, 1).random("c2", 500, 2);
    SamBuilder sam(genome);
    sam.read_group("a", "S1").read_group("b", "S2").read_group("c", "S1").read_group("d", "");
    const auto file = hts::AlignmentFile::open(sam.bam(directory, "in.bam"));
    REQUIRE(file->contigs().size() == 2);
    CHECK(file->contigs()[1].name == "c2");
    CHECK(file->contigs()[1].length == 500);
    CHECK(file->find_contig("c2") == 1);
    CHECK_FALSE(file->find_contig("c3"));
    CHECK(file->samples() == std::vector<std::string>{"S1", "S2"});
    CHECK(file->read_groups().size() == 4);
    CHECK(file->sort_order() == hts::SortOrder::coordinate);
    CHECK(file->has_index());
    CHECK_FALSE(file->is_cram());
    CHECK_FALSE(file->indexed_reads());
}

TEST_CASE("a header without read groups has no samples") {
    TemporaryDirectory directory;
    Genome genome;
    genome.random("c1", 1000, 1);
    SamBuilder sam(genome);
    sam.sort_order("unsorted");
    const auto file = hts::AlignmentFile::open(sam.bam(directory, "in.bam"));
    CHECK(file->samples().empty());
    CHECK(file->sort_order() == hts::SortOrder::unsorted);
}

TEST_CASE("M5 is given in lower case") {
    TemporaryDirectory directory;
    directory.write("in.sam", "@HD\tVN:1.6\n@SQ\tSN:c1\tLN:10\tM5:0123456789ABCDEF0123456789ABCDEF\n");
    CHECK(hts::AlignmentFile::open(directory.file("in.sam"))->contigs()[0].md5 == "0123456789abcdef0123456789abcdef");
}

TEST_CASE("what is missing or no alignment file is an input error that names it") {
    TemporaryDirectory directory;
    const Error missing = error_of([&] { hts::AlignmentFile::open(directory.file("none.bam")); });
    CHECK(missing.code() == ErrorCode::input);
    CHECK(says(missing, "none.bam"));
    CHECK(says(missing, "No such file"));
    const Error text = error_of([&] { hts::AlignmentFile::open(directory.write("notes.txt", "nothing\n")); });
    CHECK(text.code() == ErrorCode::input);
    CHECK(says(text, "notes.txt"));
    CHECK(error_of([&] { hts::AlignmentFile::open(directory.path().string()); }).code() == ErrorCode::input);
    CHECK(error_of([&] { hts::AlignmentFile::open(directory.write("empty.bam", "")); }).code() == ErrorCode::input);
}

TEST_CASE("a span needs an index, and the error says how to make one") {
    TemporaryDirectory directory;
    Genome genome;
    genome.random("c1", 1000, 1);
    SamBuilder sam(genome);
    sam.read_group("rg1", "S1");
    sam.cover("c1", {.from = 1, .to = 1000}, {{}});
    const std::string path = sam.bam(directory, "in.bam");
    std::filesystem::remove(path + ".bai");
    const auto file = hts::AlignmentFile::open(path);
    CHECK_FALSE(file->has_index());
    hts::ReadStream stream(file, {});
    const Error error = error_of([&] { stream.seek({0, 0, 10}); });
    CHECK(error.code() == ErrorCode::input);
    CHECK(says(error, "samtools index " + path));
    CHECK(drain(stream).size() == 301);
    CHECK(error_of([&] { hts::AlignmentFile::open(path, {}, directory.file("none.bai")); }).code() == ErrorCode::input);
    directory.write("in.bam.bai", "no index");
    CHECK(says(error_of([&] { hts::AlignmentFile::open(path); }), "in.bam.bai"));
}

TEST_CASE("SAM text is read in order") {
    TemporaryDirectory directory;
    Genome genome;
    genome.random("c1", 1000, 1);
    SamBuilder sam(genome);
    sam.read_group("rg1", "S1");
    sam.cover("c1", {.from = 1, .to = 1000}, {{}});
    CHECK(read_all(sam.sam(directory, "in.sam")) == read_all(sam.bam(directory, "in.bam")));
    CHECK(hts::AlignmentFile::open(directory.file("in.bam"))->indexed_reads() == 301);
}

TEST_CASE("a pipe is read once, from its header on") {
    TemporaryDirectory directory;
    Genome genome;
    genome.random("c1", 1000, 1);
    SamBuilder sam(genome);
    sam.read_group("rg1", "S1");
    sam.cover("c1", {.from = 1, .to = 1000, .step = 1}, {{}});
    const std::string bytes = read_file(sam.bam(directory, "in.bam"));
    const std::string path = directory.file("pipe");
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    const auto fed = [&](std::string content, auto&& use) {
        std::thread writer([&path, content = std::move(content)] {
            const int descriptor = ::open(path.c_str(), O_WRONLY);
            for (std::size_t at = 0; at < content.size();) {
                const ssize_t done = ::write(descriptor, content.data() + at, content.size() - at);
                if (done <= 0) break;
                at += static_cast<std::size_t>(done);
            }
            ::close(descriptor);
        });
        try {
            use();
        } catch (...) {
            writer.join();
            throw;
        }
        writer.join();
    };
    fed(bytes, [&] {
        const auto file = hts::AlignmentFile::open(path);
        CHECK_FALSE(file->has_index());
        hts::ReadStream stream(file, {});
        CHECK(error_of([&] { hts::ReadStream second(file, {}); }).code() == ErrorCode::usage);
        CHECK(drain(stream) == read_all(directory.file("in.bam")));
    });
    const std::string fasta = genome.write(directory);
    fed(read_file(sam.cram(directory, "in.cram", fasta)), [&] {
        hts::ReadStream stream(hts::AlignmentFile::open(path, fasta), {});
        CHECK(drain(stream) == read_all(directory.file("in.bam")));
    });
    SECTION("and one that ends early is truncated") {
        constexpr std::size_t end_block = 28;
        fed(bytes.substr(0, bytes.size() - end_block), [&] {
            hts::ReadStream stream(hts::AlignmentFile::open(path), {});
            const Error error = error_of([&] { drain(stream); });
            CHECK(error.code() == ErrorCode::input);
            CHECK(says(error, "truncated"));
        });
    }
}

TEST_CASE("CRAM needs its reference, and one that fits") {
    TemporaryDirectory directory;
    Genome genome;
    genome.random("c1", 1000, 1).random("c2", 800, 2);
    SamBuilder sam(genome);
    sam.read_group("rg1", "S1");
    sam.cover("c1", {.from = 1, .to = 1000}, {{}});
    sam.cover("c2", {.from = 1, .to = 800}, {{}});
    const std::string fasta = genome.write(directory);
    const std::string path = sam.cram(directory, "in.cram", fasta);
    CHECK(error_of([&] { hts::AlignmentFile::open(path); }).code() == ErrorCode::input);

    Genome shorter;
    shorter.add("c1", genome.slice("c1", 1, 999));
    const Error length = error_of([&] { hts::AlignmentFile::open(path, shorter.write(directory, "short.fa")); });
    CHECK(length.code() == ErrorCode::input);
    CHECK(says(length, "c1 has length 1000 but 999"));

    Genome other;
    other.random("c1", 1000, 9).random("c2", 800, 2);
    const std::string other_fasta = other.write(directory, "other.fa");
    const Error different = error_of([&] { read_all(path, other_fasta); });
    CHECK(different.code() == ErrorCode::input);
    CHECK(says(different, "other.fa"));
}

TEST_CASE(
    "a CRAM contig that the FASTA lacks is an error only where its reads are wanted, and is looked for nowhere else") {
    TemporaryDirectory directory;
    Genome genome;
    genome.random("c1", 1000, 1).random("c2", 800, 2).random("c3", 100, 3);
    const std::string fasta = genome.write(directory);
    SamBuilder sam(genome);
    sam.read_group("rg1", "S1");
    sam.cover("c1", {.from = 1, .to = 1000, .length = 50}, {{}});
    sam.cover("c2", {.from = 1, .to = 800, .length = 50}, {{}});
    const std::string path = sam.cram(directory, "in.cram", fasta);
    // Where htslib would look: a cache that has the contig under its MD5.
    const std::string md5 = hts::md5(genome.bases("c2"));
    std::filesystem::create_directories(directory.path() / "cache");
    directory.write("cache/" + md5, genome.bases("c2"));
    const char* const before = std::getenv("REF_PATH");
    const std::string saved = before == nullptr ? "" : before;
    ::setenv("REF_PATH", (directory.path() / "cache").c_str(), 1);
    ::setenv("REF_CACHE", (directory.path() / "cache" / "%s").c_str(), 1);

    Genome smaller;
    smaller.add("c1", genome.bases("c1"));
    const auto file = hts::AlignmentFile::open(path, smaller.write(directory, "small.fa"));
    hts::ReadStream stream(file, {});
    stream.seek({0, 0, 1000});
    CHECK(drain(stream).size() == 317);
    stream.seek({2, 0, 100});
    CHECK(drain(stream).empty());
    const Error error = error_of([&] {
        stream.seek({1, 0, 800});
        drain(stream);
    });
    CHECK(error.code() == ErrorCode::input);
    CHECK(says(error, "c2"));
    CHECK(says(error, "small.fa"));
    CHECK(error_of([&] { read_all(path, directory.file("small.fa")); }).code() == ErrorCode::input);

    ::unsetenv("REF_CACHE");
    if (before == nullptr)
        ::unsetenv("REF_PATH");
    else
        ::setenv("REF_PATH", saved.c_str(), 1);
}

TEST_CASE("reading leaves no descriptor open and holds as many as the header says") {
    TemporaryDirectory directory;
    Genome genome;
    genome.random("c1", 1000, 1);
    SamBuilder sam(genome);
    sam.read_group("rg1", "S1");
    sam.cover("c1", {.from = 1, .to = 1000}, {{}});
    const std::string fasta = genome.write(directory);
    const auto open_descriptors = [] {
        const std::filesystem::directory_iterator entries("/proc/self/fd");
        return std::distance(begin(entries), end(entries));
    };
    for (const std::string& path : {sam.bam(directory, "in.bam"), sam.cram(directory, "in.cram", fasta)}) {
        const auto before = open_descriptors();
        {
            const auto file = hts::AlignmentFile::open(path, fasta);
            hts::ReadStream first(file, {});
            first.seek({0, 0, 500});
            CHECK_FALSE(drain(first).empty());
            const auto one = open_descriptors();
            // The file and the stream; a CRAM also its containers' headers and its FASTA.
            CHECK(one - before == (file->is_cram() ? 4 : 2));
            hts::ReadStream second(file, {});
            second.seek({0, 0, 500});
            CHECK_FALSE(drain(second).empty());
            CHECK(open_descriptors() - one == 1);
        }
        CHECK(open_descriptors() == before);
    }
}
