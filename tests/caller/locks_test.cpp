// Where reads become calls, our own code takes no lock.
#include "locks.hpp"

#include "base/file.hpp"
#include "many_contigs.hpp"

#include <catch2/catch.hpp>

#include <thread>

using namespace spillway::test;

namespace {

/// Counts from the first block of the output to the last but one: what is opened before has been, what is closed after
/// is not yet.
class CountingOutput : public spillway::FileSystem {
public:
    explicit CountingOutput(std::size_t last) : last_(last) {}

    std::int64_t append(int file, std::span<const std::byte> bytes) override {
        ++blocks;
        // The one worker: whoever started it may still be about to wait for the end.
        on_counted_thread = std::this_thread::get_id() != starter_;
        counting = blocks < last_;
        return FileSystem::append(file, bytes);
    }

    std::size_t blocks = 0;

private:
    std::size_t last_;
    std::thread::id starter_ = std::this_thread::get_id();
};

} // namespace

TEST_CASE("from reads to calls our code calls no mutex and no condition variable, from BAM and CRAM") {
    const ManyContigs inputs(80);
    for (const std::string& file : {inputs.bam, inputs.cram}) {
        caller::CallerOptions options = inputs.options(file);
        options.threads = 1; // of more some may start late, which locks
        const auto run = [&](std::size_t last) {
            const auto output = std::make_shared<CountingOutput>(last);
            caller::RunOptions how;
            how.files = output;
            calls = 0;
            CHECK(call(inputs.directory, options, std::move(how)).records.size() > 1000);
            counting = false;
            return output->blocks;
        };
        const std::size_t blocks = run(0);
        REQUIRE(blocks > 2); // some contigs are loaded and called in between
        static_cast<void>(run(blocks - 1));
        CAPTURE(file);
        CHECK(calls == 0);
    }
}
