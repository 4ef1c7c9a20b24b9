// Counts the mutex and condition variable calls that our own code makes. The executable's own definitions stand before
// the C library's, for all code in the process; a call counts if it comes from this executable's text, on a thread that
// says of itself that it counts. Included by one source file of an executable.
//
//     on_counted_thread = true; // on each of these threads
//     counting = true; ...; counting = false; CHECK(calls == 0);
#pragma once

#include <atomic>
#include <cstdint>

#include <dlfcn.h>
#include <pthread.h>

extern "C" {
extern char __executable_start;
extern char etext;
}

namespace {

std::atomic<bool> counting{false};
thread_local bool on_counted_thread = false;
std::atomic<std::uint64_t> calls{0};

void count(const void* caller) {
    const auto at = reinterpret_cast<std::uintptr_t>(caller);
    const bool ours =
        at >= reinterpret_cast<std::uintptr_t>(&__executable_start) && at < reinterpret_cast<std::uintptr_t>(&etext);
    if (ours && on_counted_thread && counting.load(std::memory_order_relaxed))
        calls.fetch_add(1, std::memory_order_relaxed);
}

template <class F>
F* real(const char* name) {
    return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

} // namespace

// Each takes the place of the C library's function of its name, or of the C++ library's by its mangled one, counts its
// caller, and goes on there.
#define SPILLWAY_COUNTED(result, name, symbol, parameters, arguments)                                                  \
    extern "C" result name parameters __asm__(symbol);                                                                 \
    result name parameters {                                                                                           \
        static auto* next = real<result parameters>(symbol);                                                           \
        count(__builtin_return_address(0));                                                                            \
        return next arguments;                                                                                         \
    }
SPILLWAY_COUNTED(int, counted_timedlock, "pthread_mutex_timedlock", (void* mutex, const void* until), (mutex, until))
SPILLWAY_COUNTED(int, counted_clocklock, "pthread_mutex_clocklock", (void* mutex, int clock, const void* until),
                 (mutex, clock, until))
SPILLWAY_COUNTED(int, counted_timedwait, "pthread_cond_timedwait", (void* condition, void* mutex, const void* until),
                 (condition, mutex, until))
SPILLWAY_COUNTED(int, counted_clockwait, "pthread_cond_clockwait",
                 (void* condition, void* mutex, int clock, const void* until), (condition, mutex, clock, until))
SPILLWAY_COUNTED(int, counted_rdlock, "pthread_rwlock_rdlock", (void* lock), (lock))
SPILLWAY_COUNTED(int, counted_wrlock, "pthread_rwlock_wrlock", (void* lock), (lock))
SPILLWAY_COUNTED(int, counted_spin, "pthread_spin_lock", (void* lock), (lock))
SPILLWAY_COUNTED(int, counted_sem_wait, "sem_wait", (void* semaphore), (semaphore))
SPILLWAY_COUNTED(int, counted_sem_post, "sem_post", (void* semaphore), (semaphore))
// std::condition_variable calls the C library from inside the C++ library.
SPILLWAY_COUNTED(void, counted_wait, "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE",
                 (void* condition, void* lock), (condition, lock))
SPILLWAY_COUNTED(void, counted_one, "_ZNSt18condition_variable10notify_oneEv", (void* condition), (condition))
SPILLWAY_COUNTED(void, counted_all, "_ZNSt18condition_variable10notify_allEv", (void* condition), (condition))

extern "C" {
int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
    static auto* next = real<int(pthread_mutex_t*)>("pthread_mutex_lock");
    count(__builtin_return_address(0));
    return next(mutex);
}
int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
    static auto* next = real<int(pthread_mutex_t*)>("pthread_mutex_trylock");
    count(__builtin_return_address(0));
    return next(mutex);
}
int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
    static auto* next = real<int(pthread_cond_t*, pthread_mutex_t*)>("pthread_cond_wait");
    count(__builtin_return_address(0));
    return next(condition, mutex);
}
int pthread_cond_signal(pthread_cond_t* condition) noexcept {
    static auto* next = real<int(pthread_cond_t*)>("pthread_cond_signal");
    count(__builtin_return_address(0));
    return next(condition);
}
int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
    static auto* next = real<int(pthread_cond_t*)>("pthread_cond_broadcast");
    count(__builtin_return_address(0));
    return next(condition);
}
}
