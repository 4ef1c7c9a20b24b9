// What the lock-free pieces stand on: atomics, the one fence they use, and the futex, behind one name.
//
//     template <class Atomics = StandardAtomics>
//     class Flag {
//         typename Atomics::template atomic<bool> raised_{false};
//     };
//
// Each lock-free piece is a template on such a type, so that the same source runs on the machine's atomics here and
// under the interleaving scheduler of tests/interleaving, which also chooses the older stores that a load may return.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define SPILLWAY_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SPILLWAY_UNDER_TSAN 1
#endif
#endif

namespace spillway {

/// The machine's atomics. Thread safety: every function may be called from any thread at any time.
struct StandardAtomics {
    template <class T>
    using atomic = std::atomic<T>;

    /// All stores before it are visible to whoever fences later, in one order of all such fences.
    static void fence_seq_cst() noexcept {
#if defined(SPILLWAY_UNDER_TSAN)
        // ThreadSanitizer does not model fences. The hardware's own keeps the protocol right and adds no happens-before
        // edge that could hide a race, as a read-modify-write in its place would.
#if defined(__x86_64__)
        asm volatile("mfence" ::: "memory");
#elif defined(__aarch64__)
        asm volatile("dmb ish" ::: "memory");
#else
#error "ThreadSanitizer builds need the hardware fence of this architecture here"
#endif
#else
        std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
    }

    /// Tells the core that this is a spin, so that its sibling thread gets the issue slots.
    static void pause() noexcept {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }

    /// Sleeps while `word` holds `expected`, at most `timeout`. May also return for no reason: the caller looks again.
    /// The kernel compares and goes to sleep in one step with respect to futex_wake(). `bits`, not 0, say which wakes
    /// prefer this sleeper.
    static void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                           std::optional<std::chrono::nanoseconds> timeout = {}, std::uint32_t bits = 1) noexcept {
        timespec until{}; // this form of the call takes the time of the end
        if (timeout) {
            constexpr long second = 1'000'000'000;
            ::clock_gettime(CLOCK_MONOTONIC, &until);
            const auto ns = timeout->count() < 0 ? 0 : timeout->count();
            until.tv_sec += static_cast<std::time_t>(ns / second);
            until.tv_nsec += static_cast<long>(ns % second);
            if (until.tv_nsec >= second) {
                until.tv_nsec -= second;
                ++until.tv_sec;
            }
        }
        syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, timeout ? &until : nullptr, nullptr, bits);
    }

    /// Wakes at most `count` threads that sleep on `word`, first of all those that share one of `preferred` bits (0: no
    /// preference). Returns how many system calls that took.
    static std::uint32_t futex_wake(std::atomic<std::uint32_t>& word, std::uint32_t count,
                                    std::uint32_t preferred = 0) noexcept {
        constexpr std::uint32_t all = 0x7fffffffU;
        const auto wake = [&](std::uint32_t most, std::uint32_t bits) {
            return syscall(SYS_futex, &word, FUTEX_WAKE_BITSET_PRIVATE, most, nullptr, nullptr, bits);
        };
        count = count < all ? count : all;
        if (preferred == 0) {
            wake(count, FUTEX_BITSET_MATCH_ANY);
            return 1;
        }
        const long woken = wake(count, preferred);
        if (woken >= 0 && static_cast<std::uint32_t>(woken) >= count) return 1;
        wake(count - static_cast<std::uint32_t>(woken > 0 ? woken : 0), FUTEX_BITSET_MATCH_ANY);
        return 2;
    }

    static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free,
                  "the kernel must see the atomic as a plain 32-bit word");
};

/// Two words that different cores write lie this far apart (bytes). Two lines, since the prefetcher of x86 fetches
/// pairs.
inline constexpr std::size_t cache_line_pair = 128;

} // namespace spillway
