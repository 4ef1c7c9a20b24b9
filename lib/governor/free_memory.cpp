#include "governor/free_memory.hpp"

#include <cstddef>

#include <malloc.h>

// jemalloc's, where the executable is linked with it; the library itself never is.
extern "C" int mallctl(const char* name, void* old_value, std::size_t* old_length, void* new_value,
                       std::size_t new_length) __attribute__((weak));

namespace spillway {

void give_back_free_memory() noexcept {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
    // 4096 is jemalloc's MALLCTL_ARENAS_ALL.
    if (mallctl != nullptr) mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);
}

} // namespace spillway
