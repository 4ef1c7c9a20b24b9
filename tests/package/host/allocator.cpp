// spillway::jemalloc: the executable's malloc is jemalloc, with our settings unless MALLOC_CONF says otherwise.
#include <jemalloc/jemalloc.h>

#include <cstddef>
#include <cstdio>

int main() {
    ssize_t decay = 0;
    bool background = false;
    std::size_t size = sizeof decay;
    if (mallctl("opt.dirty_decay_ms", &decay, &size, nullptr, 0) != 0) return 1;
    size = sizeof background;
    if (mallctl("opt.background_thread", &background, &size, nullptr, 0) != 0) return 1;
    std::printf("%zd %d\n", decay, background ? 1 : 0);
}
