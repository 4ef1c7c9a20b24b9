#include "pipeline/spill_choice.hpp"

#include <catch2/catch.hpp>

using namespace spillway;
using namespace spillway::detail;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t record = 20'000;

/// Writes until the disk is known, at so much a record.
void write_some(SpillChoice& choice, std::chrono::nanoseconds each) {
    for (int i = 0; i < 500; ++i) choice.written(record, each);
}

/// Of a thousand choices, how many drop; what is chosen costs what it did before.
int dropped(SpillChoice& choice, std::chrono::nanoseconds again, std::chrono::nanoseconds disk) {
    int count = 0;
    for (int i = 0; i < 1000; ++i) {
        if (choice.drops(record)) {
            ++count;
            choice.rebuilt(record, again);
        } else {
            choice.written(record, disk / 2);
            choice.read(record, disk / 2);
        }
        choice.put_away(record);
    }
    return count;
}

} // namespace

TEST_CASE("a trial is wanted once") {
    SpillChoice choice;
    CHECK(choice.wants_trial());
    CHECK_FALSE(choice.wants_trial());
}

TEST_CASE("without a trial nothing is dropped, and before anything is written the disk is taken for a usual one") {
    SpillChoice untried;
    write_some(untried, 10ms);
    CHECK_FALSE(untried.drops(record));
    SpillChoice cheap;
    cheap.rebuilt(record, 30us); // a usual disk takes 20 us each way
    CHECK(cheap.drops(record));
    SpillChoice dear;
    dear.rebuilt(record, 50us);
    CHECK_FALSE(dear.drops(record));
    for (int i = 0; i < 50; ++i) dear.written(record, 2us); // into buffers
    CHECK_FALSE(dear.drops(record));
    dear.written(record, 20ms); // and a flush: 21 ms for the first MB
    CHECK(dear.drops(record));
}

TEST_CASE("the cheaper way is taken nearly always, the dearer at most as often as costs a percent") {
    SpillChoice cheap;
    cheap.rebuilt(record, 10us);
    write_some(cheap, 100us);
    CHECK(dropped(cheap, 10us, 200us) >= 999); // 190 us more: once in 1900
    SpillChoice dear;
    dear.rebuilt(record, 300us);
    write_some(dear, 100us);
    const int count = dropped(dear, 300us, 200us);
    CHECK(count >= 10); // 100 us more of 200: once in 50
    CHECK(count <= 20);
}

TEST_CASE("where the disk takes nothing, what is dear is never dropped to learn its price") {
    SpillChoice choice;
    choice.rebuilt(record, 2ms);
    bool dropped = false;
    for (int refused = 0; refused < 100'000; ++refused) dropped = dropped || choice.drops(record);
    CHECK_FALSE(dropped);
}

TEST_CASE("lumps are spread over all records that were gathered before them") {
    SpillChoice choice;
    choice.rebuilt(record, 150us);
    for (int i = 1; i <= 1000; ++i) choice.written(record, i % 50 == 0 ? 5000us : 2us); // 102 us each
    // Twice 102, until the disk has been read from.
    CHECK(dropped(choice, 150us, 204us) > 950);
    SpillChoice faster;
    faster.rebuilt(record, 250us);
    for (int i = 1; i <= 1000; ++i) faster.written(record, i % 50 == 0 ? 5000us : 2us);
    CHECK(dropped(faster, 250us, 204us) < 50);
}

TEST_CASE("a disk that becomes slow, or a rebuild that becomes cheap, changes the choice") {
    SpillChoice choice;
    choice.rebuilt(record, 300us);
    write_some(choice, 50us);
    CHECK(dropped(choice, 300us, 100us) < 10);
    static_cast<void>(dropped(choice, 300us, 2000us)); // twenty times slower
    static_cast<void>(dropped(choice, 300us, 2000us));
    CHECK(dropped(choice, 300us, 2000us) > 950);
}
