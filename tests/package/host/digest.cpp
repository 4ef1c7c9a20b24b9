// spillway::hts stands without the core.
#include <spillway/hts.hpp>

#include <cstdio>

int main() {
    std::puts(spillway::hts::md5("ACGT").c_str());
}
