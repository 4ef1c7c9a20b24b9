// Who uses a device, so that a lost one is reset when nobody has staging or streams of it any more, and by one alone.
//
//     DeviceUse use(word);                              // a word in the device, 0 at first
//     switch (use.enter()) {
//     case Entry::refused: return;                      // others are still letting go of it: come again
//     case Entry::to_reset: use.reset(try_to_reset());  // succeeded: in
//     case Entry::in: break;
//     }
//     ... make staging and streams; where the device is lost, use.lose(); where use.lost(), let go of them ...
//     use.leave();
//
// Guarantee: between an enter() and its leave() nobody resets the device, and who enters sees what the reset wrote.
// Mechanism: one word counts those inside; a lost device takes nobody in before the last has left, and then one, who
// resets it while it refuses all others.
#pragma once

#include "base/atomics.hpp"

#include <cstdint>

namespace spillway::detail {

/// Thread safety: any number of them for one word, each used by one thread; lock-free.
template <class Atomics = StandardAtomics>
class DeviceUse {
public:
    using Word = typename Atomics::template atomic<std::uint32_t>;
    enum class Entry : std::uint8_t { in, to_reset, refused };

    explicit DeviceUse(Word& word) noexcept : word_(&word) {}

    [[nodiscard]] Entry enter() noexcept {
        std::uint32_t seen = word_->load(std::memory_order_relaxed);
        for (;;) {
            if (seen == is_lost) {
                // Acquire: pairs with leave(); what the others had is gone.
                if (word_->compare_exchange_weak(seen, is_lost | in_reset, std::memory_order_acquire,
                                                 std::memory_order_relaxed))
                    return Entry::to_reset;
            } else if (seen >= in_reset) {
                return Entry::refused;
            } else if (word_->compare_exchange_weak(seen, seen + 1, std::memory_order_acquire,
                                                    std::memory_order_relaxed)) {
                return Entry::in; // acquire: pairs with reset()
            }
        }
    }

    /// After Entry::to_reset. Where it worked, the caller is inside now.
    void reset(bool worked) noexcept { word_->store(worked ? 1 : is_lost, std::memory_order_release); }

    /// From inside: nobody else may enter until all have left.
    void lose() noexcept { word_->fetch_or(is_lost, std::memory_order_relaxed); }
    [[nodiscard]] bool lost() const noexcept { return (word_->load(std::memory_order_relaxed) & is_lost) != 0; }

    /// Release: pairs with the enter() that finds nobody inside.
    void leave() noexcept { word_->fetch_sub(1, std::memory_order_release); }

private:
    static constexpr std::uint32_t in_reset = 1U << 30U; // while it is, is_lost is set as well
    static constexpr std::uint32_t is_lost = 1U << 31U;  // with those who have not left yet below it
    Word* word_;
};

} // namespace spillway::detail
