// Tells AddressSanitizer which memory of a region is nobody's, so that a use after release is found. Without it:
// nothing.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define SPILLWAY_UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SPILLWAY_UNDER_ASAN 1
#endif
#endif
#if defined(SPILLWAY_UNDER_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace spillway {

inline void poison([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(SPILLWAY_UNDER_ASAN)
    __asan_poison_memory_region(memory, bytes);
#endif
}

inline void unpoison([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(SPILLWAY_UNDER_ASAN)
    __asan_unpoison_memory_region(memory, bytes);
#endif
}

} // namespace spillway
