#include "files.hpp"

#include "spillway/hts.hpp"

#include <cerrno>
#include <fstream>
#include <htslib/faidx.h>
#include <htslib/sam.h>
#include <memory>

namespace simulate {
namespace {

using spillway::Error;
using spillway::ErrorCode;

void require(bool done, const char* doing, const std::string& path) {
    if (!done) throw spillway::system_error(errno == 0 ? EIO : errno, doing, path, ErrorCode::disk);
}

void write_text(const std::string& path, const std::string& text) {
    errno = 0;
    std::ofstream out(path, std::ios::binary);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    out.close();
    require(out.good(), "writing", path);
}

std::vector<spillway::hts::Contig> as_header(const std::vector<Contig>& contigs) {
    std::vector<spillway::hts::Contig> header;
    for (const Contig& contig : contigs)
        header.push_back(
            {contig.name, static_cast<std::int64_t>(contig.bases.size()), spillway::hts::md5(contig.bases)});
    return header;
}

struct CloseFile {
    void operator()(htsFile* file) const { static_cast<void>(hts_close(file)); }
};
struct DestroyHeader {
    void operator()(sam_hdr_t* header) const { sam_hdr_destroy(header); }
};
struct DestroyRecord {
    void operator()(bam1_t* record) const { bam_destroy1(record); }
};

void set_record(bam1_t* record, const SimulatedRead& read) {
    const int done =
        bam_set1(record, read.name.size(), read.name.data(), read.flags, read.contig, read.placement.begin, 60,
                 read.placement.cigar.size(), read.placement.cigar.data(), read.contig, read.mate_begin,
                 read.template_length, read.bases.size(), read.bases.data(), read.qualities.data(), 8);
    constexpr std::uint8_t group[] = "1";
    if (done < 0 || bam_aux_append(record, "RG", 'Z', sizeof(group), group) != 0) throw std::bad_alloc();
}

} // namespace

void write_reference(const std::string& path, const std::vector<Contig>& contigs) {
    constexpr std::size_t width = 60;
    std::string text;
    for (const Contig& contig : contigs) {
        text += ">" + contig.name + "\n";
        for (std::size_t at = 0; at < contig.bases.size(); at += width) text += contig.bases.substr(at, width) + "\n";
    }
    write_text(path, text);
    require(fai_build(path.c_str()) == 0, "indexing", path);
}

void write_reads(const std::string& path, const std::string& reference, const std::vector<Contig>& contigs,
                 const std::string& sample, const std::vector<std::vector<SimulatedRead>>& reads) {
    errno = 0;
    const bool cram = path.ends_with(".cram");
    std::unique_ptr<htsFile, CloseFile> file(hts_open(path.c_str(), cram ? "wc" : "wb"));
    require(file != nullptr, "writing", path);
    if (cram) require(hts_set_fai_filename(file.get(), reference.c_str()) == 0, "reading", reference);
    std::string text = "@HD\tVN:1.6\tSO:coordinate\n";
    for (const spillway::hts::Contig& contig : as_header(contigs))
        text += "@SQ\tSN:" + contig.name + "\tLN:" + std::to_string(contig.length) + "\tM5:" + contig.md5 + "\n";
    text += "@RG\tID:1\tSM:" + sample + "\tPL:ILLUMINA\n";
    const std::unique_ptr<sam_hdr_t, DestroyHeader> header(sam_hdr_parse(text.size(), text.data()));
    require(header != nullptr && sam_hdr_write(file.get(), header.get()) == 0, "writing", path);
    const std::string index = path + (cram ? ".crai" : ".bai");
    require(sam_idx_init(file.get(), header.get(), 0, index.c_str()) == 0, "indexing", path);
    const std::unique_ptr<bam1_t, DestroyRecord> record(bam_init1());
    for (const std::vector<SimulatedRead>& of_contig : reads) {
        for (const SimulatedRead& read : of_contig) {
            set_record(record.get(), read);
            require(sam_write1(file.get(), header.get(), record.get()) >= 0, "writing", path);
        }
    }
    require(sam_idx_save(file.get()) == 0, "indexing", path);
    require(hts_close(file.release()) == 0, "writing", path);
}

void write_truth(const std::string& path, const std::vector<Contig>& contigs, const std::string& sample,
                 const std::vector<std::vector<Variant>>& variants) {
    spillway::hts::VcfWriter vcf(
        {.path = path,
         .header = {"##source=spillway-simulate", "##FILTER=<ID=PASS,Description=\"All filters passed\">",
                    "##FORMAT=<ID=GT,Number=1,Type=String,Description=\"Genotype\">"},
         .contigs = as_header(contigs),
         .sample = sample});
    for (std::size_t contig = 0; contig < variants.size(); ++contig)
        for (const Variant& variant : variants[contig])
            vcf.write(
                {.contig = static_cast<std::int32_t>(contig),
                 .begin = variant.begin,
                 .reference = variant.reference,
                 .alternates = variant.alternates,
                 .filters = {"PASS"},
                 .format = {{"GT", std::to_string(variant.alleles[0]) + "|" + std::to_string(variant.alleles[1])}}});
    vcf.commit();
}

void write_regions(const std::string& path, const std::vector<Contig>& contigs, std::int64_t edge) {
    std::string text;
    for (const Contig& contig : contigs) {
        const auto length = static_cast<std::int64_t>(contig.bases.size());
        if (length > 2 * edge)
            text += contig.name + "\t" + std::to_string(edge) + "\t" + std::to_string(length - edge) + "\n";
    }
    write_text(path, text);
}

} // namespace simulate
