// A host, such as a server, hands candidates to a pipeline as they come: a full pipeline refuses them or makes the host
// wait, a faulty candidate is left out, and a run is cancelled midway.
#include <spillway/pipeline.hpp>

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

struct Site {
    std::string contig;
    int position;
};
struct Call {
    std::string text;
};

/// Stands for a device that gives so many answers and then makes its callers wait.
class Device {
public:
    void allow(int answers) {
        const std::lock_guard lock(mutex_);
        allowed_ += answers;
        changed_.notify_all();
    }
    void take() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return allowed_ > 0; });
        --allowed_;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int allowed_ = 0;
};

int main() {
    Device device;
    auto calling = spillway::pipeline<Site>("host")
                       .map("call",
                            [&](Site site) {
                                device.take();
                                if (site.position < 1) throw std::invalid_argument("a position below 1");
                                return Call{site.contig + ":" + std::to_string(site.position)};
                            })
                       .in_order("answer", [](const Call& call) { std::puts(call.text.c_str()); });
    spillway::Pool pool({.max_threads = 2}); // One for all pipelines of a host.
    std::stop_source stop;
    std::string faulty;
    spillway::Options options{.open_items = 4, .stop = stop.get_token()};
    options.on_error = [&](const spillway::Error& error, const spillway::Key&) {
        faulty = error.what();
        return spillway::Reaction::drop;
    };

    auto first = calling.start(pool, options);
    int taken = 0, refused = 0;
    for (const int position : {100, 200, 0, 400, 500, 600}) ++(first.try_push({"chr1", position}) ? taken : refused);
    std::printf("%d taken, %d refused\n", taken, refused);
    spillway::Progress progress = first.progress();
    std::printf("%d of %d answered\n", static_cast<int>(progress.finished), static_cast<int>(progress.sources));
    std::thread client([&] { static_cast<void>(first.push({"chr1", 700})); }); // Waits until there is room.
    device.allow(taken + 1);
    client.join();
    first.close();
    const spillway::Report report = first.wait();
    std::printf("%d answered, %d left out: %s\n", static_cast<int>(report.emitted), static_cast<int>(report.failed),
                faulty.c_str());

    auto second = calling.start(pool, options);
    static_cast<void>(second.push({"chr2", 100}));
    device.allow(1);
    while (second.progress().finished == 0) std::this_thread::yield();
    for (const int position : {200, 300}) static_cast<void>(second.push({"chr2", position}));
    stop.request_stop();
    std::printf("after the stop: %s\n", second.push({"chr2", 400}) ? "taken" : "refused");
    device.allow(2); // What is inside a stage is not interrupted.
    try {
        static_cast<void>(second.wait());
        return 1; // A run that was stopped does not end as if it were whole.
    } catch (const spillway::Error& error) {
        std::puts(error.what());
        return error.code() == spillway::ErrorCode::cancelled ? 0 : spillway::exit_code(error.code());
    }
}
