// htslib's handles, each with the call that ends it.
#pragma once

#include <htslib/faidx.h>
#include <htslib/hts.h>
#include <htslib/kstring.h>
#include <htslib/sam.h>
#include <htslib/vcf.h>

#include <cstdlib>
#include <memory>

namespace spillway::hts {

template <auto destroy>
struct Destroy {
    template <class T>
    void operator()(T* handle) const noexcept {
        static_cast<void>(destroy(handle));
    }
};

using File = std::unique_ptr<htsFile, Destroy<hts_close>>;
using Header = std::unique_ptr<sam_hdr_t, Destroy<sam_hdr_destroy>>;
using Index = std::unique_ptr<hts_idx_t, Destroy<hts_idx_destroy>>;
using Iterator = std::unique_ptr<hts_itr_t, Destroy<hts_itr_destroy>>;
using Record = std::unique_ptr<bam1_t, Destroy<bam_destroy1>>;
using FastaIndex = std::unique_ptr<faidx_t, Destroy<fai_destroy>>;
using VcfHeader = std::unique_ptr<bcf_hdr_t, Destroy<bcf_hdr_destroy>>;
using VcfLine = std::unique_ptr<bcf1_t, Destroy<bcf_destroy>>;
template <class T>
using Malloced = std::unique_ptr<T, Destroy<std::free>>;

/// A kstring that frees what htslib put into it.
struct Text : kstring_t {
    Text() noexcept : kstring_t{0, 0, nullptr} {}
    ~Text() { std::free(s); }
    Text(const Text&) = delete;
    Text& operator=(const Text&) = delete;
};

} // namespace spillway::hts
