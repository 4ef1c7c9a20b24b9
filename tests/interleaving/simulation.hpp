// Runs a lock-free piece under every interleaving of its threads, on a memory as weak as C++ allows it to be.
//
//     Outcome outcome = explore({.preemptions = 3}, [](Simulation& simulation) {
//         auto state = std::make_shared<State>();                    // holds SimulatedAtomics::atomic<...> and
//         Plain<...> simulation.thread([=] { state->flag.store(true, std::memory_order_release); });
//         simulation.thread([=] { if (state->flag.load(std::memory_order_acquire)) state->payload.read(); });
//         simulation.finally([=] { expect(state->payload.read() == 1, "the payload arrived"); });
//     });
//     CHECK(outcome.failure == "");                                  // else what failed, with the trace that led there
//
// Threads are fibers that give way only at an atomic operation, so a run is a list of choices (who goes on, which store
// a load returns, who is woken, whose sleep times out) and can be repeated. Exhaustive exploration walks the tree of
// choices with at most `preemptions` switches away from a thread that could go on; random exploration draws them from a
// seed.
//
// The memory keeps every store to an atomic. A load returns any that is not older than what its thread knows of: its
// own accesses, those that happen before it through release and acquire, and, after a seq_cst fence, those that came
// before earlier seq_cst fences. Read-modify-writes return the newest. Not modelled: a store never enters an atomic's
// modification order before one that was executed earlier, and no load returns a store that is executed later (load
// buffering).
//
// A mutation leaves out one fence, or relaxes the order of one operation, found by its place in the source. A test
// shows that the piece holds, then that it fails with each mutation: an order that no test needs is either wrong or too
// strong.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <ucontext.h>

namespace spillway::interleaving {

inline constexpr std::size_t max_threads = 5;    // the simulation itself and four threads
inline constexpr std::size_t max_locations = 32; // atomics made in one run

/// Where in the source an operation stands.
struct Site {
    std::string_view function;
    int line = 0;

    friend bool operator==(const Site&, const Site&) = default;
    friend auto operator<=>(const Site&, const Site&) = default;
};

struct Options {
    std::size_t preemptions = 2;      ///< Exhaustive: switches away from a thread that could go on.
    std::size_t random_runs = 0;      ///< Above 0: as many random runs instead, with any number of switches.
    std::uint64_t seed = 1;           ///< For random runs.
    std::size_t max_runs = 2'000'000; ///< Exhaustive exploration gives up here; Outcome::complete is then false.
    std::optional<Site> mutated{};    ///< The fence there is left out; the operation there is relaxed.
};

struct Outcome {
    std::string failure;     ///< Empty: nothing found. Else what failed first, and the trace.
    std::size_t runs = 0;    ///< How many were made.
    bool complete = false;   ///< All choices within the bounds were tried.
    std::vector<Site> sites; ///< Every fence and every operation that was not relaxed, once: what can be mutated.
};

class Simulation;

/// Calls `make` for each run: it makes fresh state, and gives the simulation its threads. Not reentrant.
Outcome explore(const Options& options, const std::function<void(Simulation&)>& make);

/// The given test as it is must pass, completely; with each mutation in the functions named in `within`, it must fail.
/// Returns what went otherwise, empty if nothing did.
std::string verify_each_order_is_needed(const Options& options, const std::function<void(Simulation&)>& make,
                                        const std::vector<std::string>& within);

/// Ends the run, and the exploration, with this failure if `condition` does not hold. Called from simulated threads.
void expect(bool condition, const char* failure);

/// What a thread knows: the accesses that happen before its next step.
struct Knowledge {
    std::array<std::uint32_t, max_threads> clock{};  // plain accesses of each thread
    std::array<std::uint16_t, max_locations> view{}; // the oldest store of each atomic that it may still read

    void join(const Knowledge& other);
};

class Simulation {
public:
    /// Adds a thread; they all start together. `body` must own no heap memory on its stack: a failed run abandons it.
    void thread(std::function<void()> body);

    /// Runs when all threads have ended, and knows all that they did.
    void finally(std::function<void()> check);

    // What the simulated types call.

    static Simulation& current();

    std::size_t add_location(std::uint64_t value);
    std::uint64_t load(std::size_t location, std::memory_order order, const Site& site);
    void store(std::size_t location, std::uint64_t value, std::memory_order order, const Site& site);
    std::uint64_t modify(std::size_t location, const std::function<std::uint64_t(std::uint64_t)>& change,
                         std::memory_order order, const Site& site);
    bool compare_exchange(std::size_t location, std::uint64_t& expected, std::uint64_t desired, bool weak,
                          std::memory_order success, std::memory_order failure, const Site& site);
    void fence(const Site& site);
    void yield(const Site& site);
    void futex_wait(std::size_t location, std::uint64_t expected, bool timed, const Site& site);
    void futex_wake(std::size_t location, std::uint32_t count, const Site& site);

    /// The running thread's clock after one more plain access, and what it knows of the others.
    const Knowledge& plain_access();
    [[nodiscard]] std::size_t running() const { return running_; }
    [[noreturn]] void fail(std::string what);

private:
    friend Outcome explore(const Options&, const std::function<void(Simulation&)>&);

    enum class Status { unused, runnable, asleep, asleep_timed, ended };

    struct Thread {
        std::function<void()> body;
        std::unique_ptr<std::byte[]> stack;
        ucontext_t context{};
        Status status = Status::unused;
        bool gave_way = false; // it spins, and has not run since
        std::size_t sleeps_on = 0;
        Knowledge now;
        Knowledge pending;  // from relaxed loads: an acquire fence makes it known
        Knowledge released; // at the last fence: what relaxed stores since then release
    };

    struct Store {
        std::uint64_t value = 0;
        Knowledge released; // what an acquire load of it learns
    };

    struct Event {
        std::size_t thread = 0;
        const char* operation = "";
        std::size_t location = max_locations; // none
        std::uint64_t value = 0;
        std::size_t behind = 0; // stores newer than the one that was read
        Site site;
    };

    struct Others {
        std::array<std::size_t, max_threads> threads{};
        std::size_t count = 0;
    };

    struct Choice {
        std::size_t taken, count;
    };

    explicit Simulation(const Options& options);

    bool run(const std::function<void(Simulation&)>& make);
    void see_all();
    bool backtrack();
    std::size_t choose(std::size_t count);
    Others runnable_except(std::size_t thread) const;
    Others not_spinning(const Others& all);
    void schedule(const Site& site);
    void hand_over();
    void switch_to(std::size_t next);
    void prepare(std::size_t index, std::function<void()> body);
    static void enter(int index);
    void arrived(void* kept);
    std::memory_order effective(std::memory_order order, const Site& site);
    void learn(const Store& store, std::memory_order order);
    void append(std::size_t location, std::uint64_t value, std::memory_order order, const Knowledge& inherited);
    void log(const char* operation, std::size_t location, std::uint64_t value, std::size_t behind, const Site& site);
    std::string trace() const;

    Options options_;
    std::mt19937_64 random_;
    std::vector<Choice> path_;
    std::size_t position_ = 0;
    std::size_t preemptions_left_ = 0;
    bool failed_spuriously_ = false; // a weak exchange does so at most once a run, or its loop need not end
    std::size_t steps_ = 0;
    std::array<Thread, max_threads> threads_;
    std::size_t thread_count_ = 1;
    std::size_t running_ = 0;
    std::function<void()> finally_;
    std::vector<std::vector<Store>> locations_;
    std::array<std::uint16_t, max_locations> fenced_view_{}; // what all seq_cst fences so far have seen
    [[maybe_unused]] const void* main_stack_ = nullptr;      // known to AddressSanitizer only
    [[maybe_unused]] std::size_t main_stack_bytes_ = 0;
    std::vector<Event> events_;
    std::vector<Site> sites_;
    std::string failure_;
};

// Every operation names its order, and where it stands in the source.
#define SPILLWAY_SITE const char *function = __builtin_FUNCTION(), int line = __builtin_LINE()

/// std::atomic as far as our lock-free pieces use it. Orders are explicit, and seq_cst only exists as a fence.
template <class T>
class SimulatedAtomic {
public:
    explicit(false) SimulatedAtomic(T value = T{}) : location_(Simulation::current().add_location(to_bits(value))) {}
    SimulatedAtomic(const SimulatedAtomic&) = delete;
    SimulatedAtomic& operator=(const SimulatedAtomic&) = delete;

    T load(std::memory_order order, SPILLWAY_SITE) const {
        return from_bits(Simulation::current().load(location_, order, {function, line}));
    }
    void store(T value, std::memory_order order, SPILLWAY_SITE) {
        Simulation::current().store(location_, to_bits(value), order, {function, line});
    }
    T exchange(T value, std::memory_order order, SPILLWAY_SITE) {
        return modify([=](T) { return value; }, order, {function, line});
    }
    T fetch_add(T value, std::memory_order order, SPILLWAY_SITE) {
        return modify([=](T old) { return static_cast<T>(old + value); }, order, {function, line});
    }
    T fetch_sub(T value, std::memory_order order, SPILLWAY_SITE) {
        return modify([=](T old) { return static_cast<T>(old - value); }, order, {function, line});
    }
    T fetch_or(T value, std::memory_order order, SPILLWAY_SITE) {
        return modify([=](T old) { return static_cast<T>(old | value); }, order, {function, line});
    }
    bool compare_exchange_strong(T& expected, T desired, std::memory_order order, SPILLWAY_SITE) {
        return compare_exchange(expected, desired, false, order, on_failure(order), {function, line});
    }
    bool compare_exchange_weak(T& expected, T desired, std::memory_order order, SPILLWAY_SITE) {
        return compare_exchange(expected, desired, true, order, on_failure(order), {function, line});
    }
    bool compare_exchange_strong(T& expected, T desired, std::memory_order success, std::memory_order failure,
                                 SPILLWAY_SITE) {
        return compare_exchange(expected, desired, false, success, failure, {function, line});
    }
    bool compare_exchange_weak(T& expected, T desired, std::memory_order success, std::memory_order failure,
                               SPILLWAY_SITE) {
        return compare_exchange(expected, desired, true, success, failure, {function, line});
    }

    [[nodiscard]] std::size_t location() const { return location_; }

private:
    static std::uint64_t to_bits(T value) {
        if constexpr (std::is_pointer_v<T>) {
            return reinterpret_cast<std::uintptr_t>(value);
        } else {
            return static_cast<std::uint64_t>(value);
        }
    }
    static T from_bits(std::uint64_t bits) {
        if constexpr (std::is_pointer_v<T>) {
            return reinterpret_cast<T>(static_cast<std::uintptr_t>(bits));
        } else {
            return static_cast<T>(bits);
        }
    }

    // As the standard derives it: a failure stores nothing, so it releases nothing.
    static std::memory_order on_failure(std::memory_order order) {
        if (order == std::memory_order_acq_rel) return std::memory_order_acquire;
        return order == std::memory_order_release ? std::memory_order_relaxed : order;
    }

    template <class Change>
    T modify(Change change, std::memory_order order, const Site& site) {
        return from_bits(Simulation::current().modify(
            location_, [&](std::uint64_t old) { return to_bits(change(from_bits(old))); }, order, site));
    }
    bool compare_exchange(T& expected, T desired, bool weak, std::memory_order success, std::memory_order failure,
                          const Site& site) {
        std::uint64_t bits = to_bits(expected);
        const bool done =
            Simulation::current().compare_exchange(location_, bits, to_bits(desired), weak, success, failure, site);
        expected = from_bits(bits);
        return done;
    }

    std::size_t location_;
};

/// Stands in for StandardAtomics (base/atomics.hpp).
struct SimulatedAtomics {
    template <class T>
    using atomic = SimulatedAtomic<T>;

    static void fence_seq_cst(SPILLWAY_SITE) { Simulation::current().fence({function, line}); }
    static void pause(SPILLWAY_SITE) { Simulation::current().yield({function, line}); }
    static void futex_wait(atomic<std::uint32_t>& word, std::uint32_t expected,
                           std::optional<std::chrono::nanoseconds> timeout = {}, std::uint32_t = 1, SPILLWAY_SITE) {
        Simulation::current().futex_wait(word.location(), expected, timeout.has_value(), {function, line});
    }
    /// Any sleepers may be the woken ones, preferred or not.
    static std::uint32_t futex_wake(atomic<std::uint32_t>& word, std::uint32_t count, std::uint32_t = 0,
                                    SPILLWAY_SITE) {
        Simulation::current().futex_wake(word.location(), count, {function, line});
        return 1;
    }
};

#undef SPILLWAY_SITE

/// An ordinary variable: two accesses of which one writes and neither happens before the other fail the run.
template <class T>
class Plain {
public:
    explicit(false) Plain(T value = T{}) : value_(value) { note_write(); }

    [[nodiscard]] T read() const {
        const Knowledge& known = Simulation::current().plain_access();
        const std::size_t self = Simulation::current().running();
        if (known.clock[writer_] < written_) Simulation::current().fail("race: read of a variable beside its write");
        read_[self] = known.clock[self];
        return value_;
    }

    void write(T value) {
        note_write();
        value_ = value;
    }

private:
    void note_write() {
        const Knowledge& known = Simulation::current().plain_access();
        const std::size_t self = Simulation::current().running();
        if (known.clock[writer_] < written_) Simulation::current().fail("race: two writes of a variable");
        for (std::size_t thread = 0; thread < max_threads; ++thread) {
            if (known.clock[thread] < read_[thread])
                Simulation::current().fail("race: write of a variable beside a read");
        }
        writer_ = self;
        written_ = known.clock[self];
    }

    T value_;
    std::size_t writer_ = 0;
    std::uint32_t written_ = 0;
    mutable std::array<std::uint32_t, max_threads> read_{};
};

} // namespace spillway::interleaving
