#include "interleaving/simulation.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

// AddressSanitizer wants to know which stack it is on.
#if defined(__SANITIZE_ADDRESS__)
#define SPILLWAY_ANNOTATE_FIBERS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SPILLWAY_ANNOTATE_FIBERS 1
#endif
#endif
#if defined(SPILLWAY_ANNOTATE_FIBERS)
#include <sanitizer/common_interface_defs.h>
#endif

namespace spillway::interleaving {
namespace {

// Enough for the pieces under test with the sanitizers' larger frames.
constexpr std::size_t stack_bytes = 128 * 1024;

// No run of a test here takes as many steps: more means that it makes no progress.
constexpr std::size_t max_steps = 2'000;

// The last steps say what went wrong; a run without progress has thousands.
constexpr std::size_t traced_events = 40;

// The traits that stand in for StandardAtomics are static functions, so the run they belong to is found here.
thread_local Simulation* active = nullptr;

bool acquires(std::memory_order order) {
    return order == std::memory_order_acquire || order == std::memory_order_acq_rel;
}

bool releases(std::memory_order order) {
    return order == std::memory_order_release || order == std::memory_order_acq_rel;
}

} // namespace

void Knowledge::join(const Knowledge& other) {
    for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other.clock[i]);
    for (std::size_t i = 0; i < view.size(); ++i) view[i] = std::max(view[i], other.view[i]);
}

// Exploration: runs, choices, and the way back.

Outcome explore(const Options& options, const std::function<void(Simulation&)>& make) {
    Simulation simulation(options);
    active = &simulation;
    Outcome outcome;
    bool more = true;
    while (more) {
        ++outcome.runs;
        if (!simulation.run(make)) {
            outcome.failure = simulation.failure_ + "\n" + simulation.trace();
            break;
        }
        if (options.random_runs > 0) {
            more = outcome.runs < options.random_runs;
            outcome.complete = !more;
        } else {
            outcome.complete = !simulation.backtrack();
            more = !outcome.complete && outcome.runs < options.max_runs;
        }
    }
    active = nullptr;
    outcome.sites = simulation.sites_;
    std::sort(outcome.sites.begin(), outcome.sites.end());
    return outcome;
}

std::string verify_each_order_is_needed(const Options& options, const std::function<void(Simulation&)>& make,
                                        const std::vector<std::string>& within) {
    const Outcome whole = explore(options, make);
    if (!whole.failure.empty()) return "fails as it is: " + whole.failure;
    if (!whole.complete) return "not explored completely";
    std::ostringstream wrong;
    std::set<std::string_view> met;
    for (const Site& site : whole.sites) {
        // Some compilers add a template's arguments to the function's name.
        const auto named = [&](const std::string& name) { return site.function.starts_with(name); };
        const auto wanted = std::find_if(within.begin(), within.end(), named);
        if (wanted == within.end()) continue;
        met.insert(*wanted);
        Options mutated = options;
        mutated.mutated = site;
        if (explore(mutated, make).failure.empty()) {
            wrong << "nothing fails without the order of " << site.function << ":" << site.line << "\n";
        }
    }
    for (const std::string& function : within) {
        if (!met.contains(function)) wrong << "no ordered operation was met in " << function << "\n";
    }
    return wrong.str();
}

void expect(bool condition, const char* failure) {
    if (!condition) Simulation::current().fail(failure);
}

Simulation::Simulation(const Options& options) : options_(options), random_(options.seed) {}

Simulation& Simulation::current() {
    if (active == nullptr) throw std::logic_error("a simulated atomic is used outside explore()");
    return *active;
}

void Simulation::thread(std::function<void()> body) {
    if (thread_count_ == max_threads) throw std::logic_error("more threads than the simulation has room for");
    prepare(thread_count_++, std::move(body));
}

void Simulation::finally(std::function<void()> check) {
    finally_ = std::move(check);
}

bool Simulation::run(const std::function<void(Simulation&)>& make) {
    position_ = 0;
    preemptions_left_ = options_.preemptions;
    failed_spuriously_ = false;
    steps_ = 0;
    locations_.clear();
    fenced_view_ = {};
    events_.clear();
    finally_ = nullptr;
    thread_count_ = 1;
    running_ = 0;
    threads_[0].now = threads_[0].pending = threads_[0].released = {};
    make(*this);

    Thread& self = threads_[0];
    for (std::size_t i = 1; i < thread_count_; ++i) threads_[i].now = self.now;
    hand_over();
    see_all();
    if (failure_.empty() && finally_) {
        prepare(1, finally_);
        threads_[1].now = self.now;
        thread_count_ = 2;
        hand_over();
        see_all();
    }
    // What a thread captured goes with the run, not with the next one.
    for (Thread& thread : threads_) thread.body = nullptr;
    finally_ = nullptr;
    return failure_.empty();
}

// All threads have ended: whoever goes on, be it a destructor, knows all that they did.
void Simulation::see_all() {
    Knowledge& now = threads_[0].now;
    for (std::size_t i = 1; i < thread_count_; ++i) now.join(threads_[i].now);
    for (std::size_t i = 0; i < locations_.size(); ++i)
        now.view[i] = static_cast<std::uint16_t>(locations_[i].size() - 1);
}

bool Simulation::backtrack() {
    while (!path_.empty() && path_.back().taken + 1 == path_.back().count) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().taken;
    return true;
}

std::size_t Simulation::choose(std::size_t count) {
    if (count == 1) return 0;
    if (options_.random_runs > 0) {
        // The first is what usually happens: the thread goes on, the load sees the newest store.
        if (random_() % 8 < 5) return 0;
        return 1 + random_() % (count - 1);
    }
    if (position_ == path_.size()) path_.push_back({0, count});
    return path_[position_++].taken;
}

// Fibers.

void Simulation::prepare(std::size_t index, std::function<void()> body) {
    Thread& thread = threads_[index];
    if (!thread.stack) thread.stack = std::make_unique<std::byte[]>(stack_bytes);
    thread.body = std::move(body);
    thread.status = Status::runnable;
    thread.gave_way = false;
    thread.now = thread.pending = thread.released = {};
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.get();
    thread.context.uc_stack.ss_size = stack_bytes;
    thread.context.uc_link = nullptr;
    makecontext(&thread.context, reinterpret_cast<void (*)()>(&Simulation::enter), 1, static_cast<int>(index));
}

void Simulation::enter(int index) {
    Simulation& simulation = current();
    simulation.arrived(nullptr);
    Thread& self = simulation.threads_[static_cast<std::size_t>(index)];
    self.body();
    self.status = Status::ended;
    simulation.hand_over();
}

void Simulation::switch_to(std::size_t next) {
    threads_[next].gave_way = false;
    const std::size_t previous = std::exchange(running_, next);
    if (previous == next) return;
    void* kept = nullptr;
#if defined(SPILLWAY_ANNOTATE_FIBERS)
    const Thread& thread = threads_[next];
    __sanitizer_start_switch_fiber(&kept, next == 0 ? main_stack_ : thread.stack.get(),
                                   next == 0 ? main_stack_bytes_ : stack_bytes);
#endif
    swapcontext(&threads_[previous].context, &threads_[next].context);
    arrived(kept);
}

void Simulation::arrived([[maybe_unused]] void* kept) {
#if defined(SPILLWAY_ANNOTATE_FIBERS)
    const void* stack = nullptr;
    std::size_t bytes = 0;
    __sanitizer_finish_switch_fiber(kept, &stack, &bytes);
    if (main_stack_bytes_ > 0) return;
    main_stack_ = stack; // the first fiber of all is entered from here
    main_stack_bytes_ = bytes;
#endif
}

Simulation::Others Simulation::runnable_except(std::size_t thread) const {
    Others found;
    for (std::size_t i = 1; i < thread_count_; ++i) {
        if (i == thread) continue;
        const Status status = threads_[i].status;
        if (status == Status::runnable || status == Status::asleep_timed) found.threads[found.count++] = i;
    }
    return found;
}

// Those that have not given way themselves: several that spin must not give way to each other for ever. All where all
// spin.
Simulation::Others Simulation::not_spinning(const Others& all) {
    Others found;
    for (std::size_t i = 0; i < all.count; ++i) {
        if (!threads_[all.threads[i]].gave_way) found.threads[found.count++] = all.threads[i];
    }
    return found.count > 0 ? found : all;
}

// The running thread cannot go on: another does, or the run is over.
void Simulation::hand_over() {
    const Others others = runnable_except(0);
    if (others.count == 0) {
        for (std::size_t i = 1; i < thread_count_; ++i) {
            if (threads_[i].status == Status::asleep)
                fail("deadlock: nobody is left to wake thread " + std::to_string(i));
        }
        return switch_to(0);
    }
    const std::size_t next = others.threads[choose(others.count)];
    threads_[next].status = Status::runnable; // a sleep that had not been woken timed out
    switch_to(next);
}

// A step is about to be taken: perhaps another thread goes first.
void Simulation::schedule(const Site& site) {
    if (running_ == 0) return; // making the state: nobody else is there
    if (++steps_ > max_steps) fail("no progress, last in " + std::string(site.function));
    if (options_.random_runs == 0 && preemptions_left_ == 0) return;
    const Others others = runnable_except(running_);
    const std::size_t choice = choose(1 + others.count);
    if (choice == 0) return;
    if (options_.random_runs == 0) --preemptions_left_;
    threads_[others.threads[choice - 1]].status = Status::runnable;
    switch_to(others.threads[choice - 1]);
}

void Simulation::fail(std::string what) {
    failure_ = std::move(what);
    // The fibers stay where they are, with all that is on their stacks: a piece's functions are noexcept, so there is
    // no unwinding them.
    switch_to(0);
    std::abort();
}

// The memory.

std::memory_order Simulation::effective(std::memory_order order, const Site& site) {
    if (order == std::memory_order_relaxed) return order;
    if (order == std::memory_order_seq_cst) throw std::logic_error("only fences are seq_cst here");
    if (std::find(sites_.begin(), sites_.end(), site) == sites_.end()) sites_.push_back(site);
    return options_.mutated == site ? std::memory_order_relaxed : order;
}

std::size_t Simulation::add_location(std::uint64_t value) {
    if (locations_.size() == max_locations) throw std::logic_error("more atomics than the simulation has room for");
    locations_.push_back({Store{value, {}}});
    return locations_.size() - 1;
}

void Simulation::learn(const Store& store, std::memory_order order) {
    Thread& self = threads_[running_];
    (acquires(order) ? self.now : self.pending).join(store.released);
}

void Simulation::append(std::size_t location, std::uint64_t value, std::memory_order order,
                        const Knowledge& inherited) {
    Thread& self = threads_[running_];
    std::vector<Store>& history = locations_[location];
    self.now.view[location] = static_cast<std::uint16_t>(history.size());
    Store store{value, releases(order) ? self.now : self.released};
    store.released.join(inherited);
    history.push_back(store);
}

std::uint64_t Simulation::load(std::size_t location, std::memory_order order, const Site& site) {
    schedule(site);
    const std::memory_order with = effective(order, site);
    Thread& self = threads_[running_];
    const std::vector<Store>& history = locations_[location];
    const std::size_t newest = history.size() - 1;
    const std::size_t behind = choose(newest - self.now.view[location] + 1);
    const Store& store = history[newest - behind];
    self.now.view[location] = static_cast<std::uint16_t>(newest - behind);
    learn(store, with);
    log("load", location, store.value, behind, site);
    return store.value;
}

void Simulation::store(std::size_t location, std::uint64_t value, std::memory_order order, const Site& site) {
    schedule(site);
    append(location, value, effective(order, site), {});
    log("store", location, value, 0, site);
}

std::uint64_t Simulation::modify(std::size_t location, const std::function<std::uint64_t(std::uint64_t)>& change,
                                 std::memory_order order, const Site& site) {
    schedule(site);
    const std::memory_order with = effective(order, site);
    const Store before = locations_[location].back();
    learn(before, with);
    const std::uint64_t after = change(before.value);
    append(location, after, with, before.released); // a read-modify-write continues the release sequence
    log("modify", location, after, 0, site);
    return before.value;
}

bool Simulation::compare_exchange(std::size_t location, std::uint64_t& expected, std::uint64_t desired, bool weak,
                                  std::memory_order success, std::memory_order failure, const Site& site) {
    schedule(site);
    const std::memory_order on_success = effective(success, site);
    const std::memory_order on_failure = effective(failure, site);
    Thread& self = threads_[running_];
    const std::vector<Store>& history = locations_[location];
    const std::size_t newest = history.size() - 1;
    // It may fail on any store that is not the expected value; it may succeed on the newest only.
    std::vector<std::size_t> outcomes;
    for (std::size_t i = newest + 1; i-- > self.now.view[location];) {
        if (i == newest || history[i].value != expected) outcomes.push_back(i);
    }
    const bool may_succeed = history[newest].value == expected;
    const std::size_t choice = choose(outcomes.size() + (weak && may_succeed && !failed_spuriously_ ? 1 : 0));
    const bool spurious = choice == outcomes.size();
    const std::size_t read = spurious ? newest : outcomes[choice];
    const Store before = history[read];
    failed_spuriously_ = failed_spuriously_ || spurious;
    if (read == newest && may_succeed && !spurious) {
        learn(before, on_success);
        append(location, desired, on_success, before.released);
        log("exchange", location, desired, 0, site);
        return true;
    }
    self.now.view[location] = static_cast<std::uint16_t>(read);
    learn(before, on_failure);
    log("failed exchange", location, before.value, newest - read, site);
    expected = before.value;
    return false;
}

void Simulation::fence(const Site& site) {
    schedule(site);
    if (std::find(sites_.begin(), sites_.end(), site) == sites_.end()) sites_.push_back(site);
    if (options_.mutated == site) return;
    Thread& self = threads_[running_];
    self.now.join(self.pending);
    for (std::size_t i = 0; i < max_locations; ++i) {
        self.now.view[i] = fenced_view_[i] = std::max(self.now.view[i], fenced_view_[i]);
    }
    self.released = self.now;
    log("fence", max_locations, 0, 0, site);
}

void Simulation::yield(const Site& site) {
    if (running_ == 0) return;
    if (++steps_ > max_steps) fail("no progress, last in " + std::string(site.function));
    // Who spins reads a store in finite time, without any order that would come with it, and does not keep the others
    // from making theirs.
    Thread& self = threads_[running_];
    for (std::size_t i = 0; i < locations_.size(); ++i)
        self.now.view[i] = static_cast<std::uint16_t>(locations_[i].size() - 1);
    const Others others = not_spinning(runnable_except(running_));
    if (others.count == 0) return;
    const std::size_t next = others.threads[choose(others.count)];
    threads_[next].status = Status::runnable;
    self.gave_way = true;
    switch_to(next);
}

void Simulation::futex_wait(std::size_t location, std::uint64_t expected, bool timed, const Site& site) {
    schedule(site);
    Thread& self = threads_[running_];
    // The kernel reads the newest on behalf of this thread, which then cannot read an older one: one core, one
    // location.
    self.now.view[location] = static_cast<std::uint16_t>(locations_[location].size() - 1);
    const bool sleeps = locations_[location].back().value == expected;
    log(sleeps ? "sleep" : "no sleep", location, expected, 0, site);
    if (!sleeps) return;
    self.status = timed ? Status::asleep_timed : Status::asleep;
    self.sleeps_on = location;
    hand_over();
}

void Simulation::futex_wake(std::size_t location, std::uint32_t count, const Site& site) {
    schedule(site);
    log("wake", location, count, 0, site);
    for (; count > 0; --count) {
        std::vector<std::size_t> sleepers;
        for (std::size_t i = 1; i < thread_count_; ++i) {
            const bool sleeps = threads_[i].status == Status::asleep || threads_[i].status == Status::asleep_timed;
            if (sleeps && threads_[i].sleeps_on == location) sleepers.push_back(i);
        }
        if (sleepers.empty()) return;
        threads_[sleepers[choose(sleepers.size())]].status = Status::runnable;
    }
}

const Knowledge& Simulation::plain_access() {
    Thread& self = threads_[running_];
    ++self.now.clock[running_];
    return self.now;
}

// The trace.

void Simulation::log(const char* operation, std::size_t location, std::uint64_t value, std::size_t behind,
                     const Site& site) {
    if (running_ != 0) events_.push_back({running_, operation, location, value, behind, site});
}

std::string Simulation::trace() const {
    std::ostringstream text;
    const std::size_t left_out = events_.size() > traced_events ? events_.size() - traced_events : 0;
    if (left_out > 0) text << "(" << left_out << " earlier steps)\n";
    for (std::size_t i = left_out; i < events_.size(); ++i) {
        const Event& event = events_[i];
        text << std::string(event.thread * 4, ' ') << "thread " << event.thread << ": " << event.operation;
        if (event.location < max_locations) text << " of atomic " << event.location << ": " << event.value;
        if (event.behind > 0) text << ", " << event.behind << " behind the newest";
        // Without the arguments that some compilers add to a template's name.
        text << "  (" << event.site.function.substr(0, event.site.function.find('<')) << ":" << event.site.line
             << ")\n";
    }
    return text.str();
}

} // namespace spillway::interleaving
