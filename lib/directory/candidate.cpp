#include "spillway/candidate.hpp"

namespace spillway {

std::string to_string(const Key& key) {
    std::string text;
    for (std::uint32_t i = 0; i < key.depth; ++i) {
        if (i > 0) text += '.';
        text += std::to_string(key.ordinals[i]);
    }
    return text;
}

} // namespace spillway
