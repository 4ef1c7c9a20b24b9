#include "calls.hpp"

#include <catch2/catch.hpp>

using namespace caller;

namespace {

Call call_of(std::int64_t position, std::string reference, std::string alternate, Phred quality = from_phred(50)) {
    Call call;
    call.contig = 0;
    call.position = position;
    call.reference = std::move(reference);
    call.alternates = {std::move(alternate)};
    call.quality = quality;
    call.genotype = {0, 1};
    call.depth = 10;
    call.allele_depth = {5, 5};
    call.likelihoods = {50, 0, 60};
    return call;
}

} // namespace

TEST_CASE("calls come out sorted although windows shift them, and no later than needed") {
    std::vector<std::int64_t> written;
    CallQueue queue({{0, 0, 10'000}}, [&](const Call& call) { written.push_back(call.position); });
    queue.push(0, 1000, {call_of(1005, "A", "C"), call_of(1200, "A", "C")});
    queue.push(0, 1100, {call_of(900, "GA", "G")}); // shifted left past the window before
    CHECK(written.empty());
    queue.push(0, 1100 + calls_before + 200, {});
    CHECK(written == std::vector<std::int64_t>{900, 1005, 1200});
    queue.finish();
    CHECK(written.size() == 3);
}

TEST_CASE("a variant that two windows found is written once, the surer call; others at its position stay") {
    std::vector<std::string> written;
    CallQueue queue({{0, 0, 10'000}}, [&](const Call& call) {
        written.push_back(call.reference + ">" + call.alternates[0] + " " + std::to_string(to_phred(call.quality)));
    });
    queue.push(0, 1000, {call_of(1005, "AT", "A", from_phred(20)), call_of(1005, "A", "C")});
    queue.push(0, 1030, {call_of(1005, "ATG", "AG", from_phred(30))});
    queue.finish();
    CHECK(written == std::vector<std::string>{"A>C 50", "ATG>AG 30"});
}

TEST_CASE("only calls whose POS is in a wanted interval are written") {
    std::vector<std::int64_t> written;
    CallQueue queue({{0, 100, 200}, {0, 300, 301}, {2, 0, 50}},
                    [&](const Call& call) { written.push_back(call.position); });
    std::vector<Call> calls;
    for (const std::int64_t position : {99, 100, 199, 200, 300, 301}) calls.push_back(call_of(position, "A", "C"));
    queue.push(0, 120, std::move(calls));
    queue.finish();
    CHECK(written == std::vector<std::int64_t>{100, 199, 300});
}

TEST_CASE("a record holds GT, DP, AD, GQ and PL in VCF's spelling") {
    auto call = call_of(41, "GAA", "GA", from_phred(12) + 32);
    call.alternates.push_back("G");
    call.genotype = {1, 2};
    call.allele_depth = {1, 4, 5};
    call.likelihoods = {90, 50, 80, 40, 0, 70};
    call.genotype_quality = 40;
    const auto record = record_of(call);
    CHECK(record.begin == 41);
    CHECK(record.reference == "GAA");
    CHECK(record.alternates == std::vector<std::string>{"GA", "G"});
    CHECK(record.quality == 12.5);
    CHECK(record.filters == std::vector<std::string>{"PASS"});
    CHECK(record.format == std::vector<std::pair<std::string, std::string>>{
                               {"GT", "1/2"}, {"DP", "10"}, {"AD", "1,4,5"}, {"GQ", "40"}, {"PL", "90,50,80,40,0,70"}});
    call.low_fraction = true;
    CHECK(record_of(call).filters == std::vector<std::string>{"LowFraction"});
}
