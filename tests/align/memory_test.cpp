// What a batch takes from the heap, against what align.hpp states: this program's operator new counts. Sanitizers bring
// one of their own, and more memory: there is nothing to count there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define COUNTS_MEMORY 0
#endif
#endif

#ifndef COUNTS_MEMORY
#include <malloc.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>

#include "pairs.hpp"
#include "spillway/align.hpp"

namespace {

std::atomic<std::size_t> held{0}, most_held{0};

void* take(std::size_t size) {
    void* const memory = std::malloc(size == 0 ? 1 : size);
    if (memory == nullptr) throw std::bad_alloc();
    const std::size_t now = held += malloc_usable_size(memory);
    std::size_t most = most_held;
    while (now > most && !most_held.compare_exchange_weak(most, now)) {
    }
    return memory;
}

void give_back(void* memory) noexcept {
    if (memory != nullptr) held -= malloc_usable_size(memory);
    std::free(memory);
}

} // namespace

void* operator new(std::size_t size) {
    return take(size);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    try {
        return take(size);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}
void operator delete(void* memory) noexcept {
    give_back(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    give_back(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
    give_back(memory);
}

namespace spillway {
namespace {

/// The most that was held meanwhile, beyond what was held before.
template <class Call>
std::size_t taken_by(Call call) {
    const std::size_t before = held;
    most_held = before;
    call();
    return most_held - before;
}

constexpr std::size_t mebibyte = std::size_t{1} << 20;

TEST_CASE("a batch takes as much memory for two hundred thousand pairs as for a few thousand") {
    Pairs random(70);
    std::vector<std::string> texts;
    for (int k = 0; k < 100; ++k) texts.push_back(random.bases(4 + random.under(8), "ACGT")); // too short to be proven
    std::vector<SequencePair> pairs;
    for (std::size_t k = 0; k < 200'000; ++k) pairs.push_back({texts[k % 97], texts[k % 89]});
    std::vector<AlignmentEnd> ends(pairs.size());
    const std::size_t to_score = taken_by([&] { score(pairs, {}, Span::local, ends); });
    CHECK(to_score >= std::size_t{1} << 16); // the count does count
    CHECK(to_score <= 2 * mebibyte);
    std::vector<Alignment> alignments(pairs.size());
    align(pairs, {}, Span::local, alignments); // so that each has room for its CIGAR
    CHECK(taken_by([&] { align(pairs, {}, Span::local, alignments); }) <= 4 * mebibyte);
}

TEST_CASE("a long pair that wavefronts refuse takes a band, not its matrix, though a long gap hides how good it is") {
    Pairs random(73);
    const Scores scores{.match = 101, .mismatch = -103, .unknown = -107, .gap_open = 211, .gap_extend = 11};
    const std::string target = random.bases(4000, "ACGT");
    std::string query = target;
    for (std::size_t at = 20; at < 4000; at += 40) query[at] = query[at] == 'A' ? 'C' : 'A';
    query.erase(1500, 200);
    query.insert(3000, random.bases(200, "ACGT"));
    for (const Span span : {Span::local, Span::query}) {
        CHECK(taken_by([&] { (void)align(query, target, scores, span); }) <= 4000U * 4000 / 2);
    }
}

TEST_CASE("the longest pairs that go side by side take no more than 24 MiB") {
    Pairs random(71);
    for (const bool queries : {false, true}) {
        const std::string longest = random.bases(16384, "ACGT"), shortest = random.bases(12, "ACGT");
        for (const Scores& scores :
             {Scores{}, Scores{.match = 41, .mismatch = -60, .gap_open = 80, .gap_extend = 21}}) {
            for (const Span span : {Span::local, Span::query}) {
                const std::vector<SequencePair> pairs(40, queries ? SequencePair{longest, shortest}
                                                                  : SequencePair{shortest, longest});
                std::vector<AlignmentEnd> ends(pairs.size());
                CHECK(taken_by([&] { score(pairs, scores, span, ends); }) <= 24 * mebibyte);
            }
        }
    }
}

TEST_CASE("a pair takes at most 4 bytes a cell, however little its bases have in common") {
    Pairs random(72);
    const std::string query = random.bases(2000, "ACGT"), target = random.bases(1500, "ACGT");
    for (const Scores& scores :
         {Scores{}, Scores{.match = 400, .mismatch = -600, .gap_open = 800, .gap_extend = 200}}) {
        for (const Span span : {Span::local, Span::query}) {
            CHECK(taken_by([&] { (void)align(query, target, scores, span); }) <= 4U * 2032 * 1532);
        }
    }
}

} // namespace
} // namespace spillway

#endif
