#include "spillway/router.hpp"

#include <algorithm>
#include <cmath>

namespace spillway {

void LoadAverage::update(std::chrono::nanoseconds now, std::size_t busy, std::size_t allowed) noexcept {
    // Exponential rather than a window: it needs no history, and what lies 100 ms back weighs a third.
    constexpr std::chrono::duration<double> memory = std::chrono::milliseconds(100);
    const std::chrono::duration<double> past = std::max(now - since_, std::chrono::nanoseconds(0));
    const double old = value();
    value_.store(present_ + (old - present_) * std::exp(-past / memory), std::memory_order_relaxed);
    since_ = now;
    present_ = allowed == 0 ? 0 : static_cast<double>(std::min(busy, allowed)) / static_cast<double>(allowed);
}

} // namespace spillway
