# Every package we use, each named once with its purpose and what to install on Debian.
function(spillway_need found package purpose)
  if(NOT ${found})
    message(FATAL_ERROR "Spillway needs ${purpose}: apt-get install ${package}")
  endif()
endfunction()

find_package(Threads REQUIRED)
find_package(PkgConfig)
spillway_need(PkgConfig_FOUND pkg-config "pkg-config to find the packages below")

# Queues between stages. Header-only and private: no public header names it.
find_path(CONCURRENTQUEUE_INCLUDE concurrentqueue/concurrentqueue.h)
spillway_need(CONCURRENTQUEUE_INCLUDE libconcurrentqueue-dev "moodycamel's ConcurrentQueue for the queues between stages")
add_library(concurrentqueue INTERFACE)
target_include_directories(concurrentqueue SYSTEM INTERFACE ${CONCURRENTQUEUE_INCLUDE})

# Checksums of spilled records.
pkg_check_modules(xxhash IMPORTED_TARGET libxxhash)
spillway_need(xxhash_FOUND libxxhash-dev "xxHash for the checksums of spilled records")

# Compression of spilled records where the disk is slow.
pkg_check_modules(lz4 IMPORTED_TARGET liblz4)
spillway_need(lz4_FOUND liblz4-dev "LZ4 for the compression of spilled records")

# Vector code for every instruction set, private to the alignment. Only its headers: no code of ours needs its library.
find_path(HIGHWAY_INCLUDE hwy/highway.h)
spillway_need(HIGHWAY_INCLUDE libhwy-dev "Highway for the alignment's vector code")
add_library(highway INTERFACE)
target_include_directories(highway SYSTEM INTERFACE ${HIGHWAY_INCLUDE})

# Reads, references and VCF: only spillway::hts and the examples.
pkg_check_modules(htslib IMPORTED_TARGET htslib>=1.16)
if(SPILLWAY_EXAMPLES)
  spillway_need(htslib_FOUND libhts-dev "htslib 1.16 or later to read BAM, CRAM and FASTA and to write VCF")
  # Command lines of the example binaries.
  find_package(CLI11 QUIET)
  spillway_need(CLI11_FOUND libcli11-dev "CLI11 for the command lines of the examples")
endif()

if(SPILLWAY_TESTS)
  find_package(Catch2 2.13 QUIET)
  spillway_need(Catch2_FOUND catch2 "Catch2 for the tests (or configure with -DSPILLWAY_TESTS=OFF)")
endif()

# The allocator that the executables may opt into, and oneTBB for hosts and as a rival.
pkg_check_modules(jemalloc IMPORTED_TARGET jemalloc)
if(NOT jemalloc_FOUND)
  message(STATUS "jemalloc: not found, so spillway::jemalloc is left out (apt-get install libjemalloc-dev)")
endif()
find_package(TBB QUIET)
if(NOT TBB_FOUND)
  message(STATUS "oneTBB: not found, so spillway::tbb and the rivals on it are left out (apt-get install libtbb-dev)")
endif()

# Rivals of the alignment.
if(SPILLWAY_BENCH)
  pkg_check_modules(parasail IMPORTED_TARGET parasail-1)
  pkg_check_modules(edlib IMPORTED_TARGET edlib-1)
  find_library(SSW_LIBRARY ssw)
  find_path(SSW_INCLUDE ssw.h)
  find_library(WFA2_LIBRARY wfa2)
  find_library(WFA2_CPP_LIBRARY wfa2cpp)
  find_path(WFA2_INCLUDE wfa2lib/wavefront/wavefront_align.h)
endif()
