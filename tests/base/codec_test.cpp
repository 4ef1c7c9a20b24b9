#include "spillway/codec.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <random>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>

using namespace spillway;

namespace {

struct Call {
    int position;
    std::string reference, alternative;
    std::vector<double> likelihoods;
    friend bool operator==(const Call&, const Call&) = default;
};

enum class Strand : std::uint8_t { forward, reverse };

struct Point {
    std::int32_t x;
    double y;
    Strand strand;
    friend bool operator==(const Point&, const Point&) = default;
};

struct Bases {
    char name[6];
    std::uint16_t counts[2][3];
    std::array<Point, 2> points;
};

struct Empty {
    friend bool operator==(const Empty&, const Empty&) = default;
};

struct Sixteen {
    int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o;
    std::string p;
    friend bool operator==(const Sixteen&, const Sixteen&) = default;
};

struct Nested {
    Call call;
    std::optional<Point> point;
    std::vector<Call> calls;
    std::unique_ptr<Call> owned;
    std::tuple<int, std::string, Empty> tuple;
    std::vector<bool> flags;
    std::map<std::string, std::vector<int>> by_name;
};

struct HoldsView {
    int a;
    std::string_view view;
};
struct HoldsPointer {
    int a;
    const char* pointer;
};
struct HoldsSpan {
    std::span<const char> bases;
};
struct HoldsReference {
    int& a;
};

/// No default constructor, and its own idea of its bytes.
class Window {
public:
    Window(long begin, std::string bases) : begin_(begin), bases_(std::move(bases)) {}
    [[nodiscard]] long begin() const { return begin_; }
    [[nodiscard]] const std::string& bases() const { return bases_; }
    friend bool operator==(const Window&, const Window&) = default;

private:
    long begin_;
    std::string bases_;
};

struct Site {
    std::int64_t position;
    Window window;
    friend bool operator==(const Site&, const Site&) = default;
};

/// Trivially copyable, but its codec writes something else: an index relative to the parent.
struct Handle {
    std::uint64_t address;
};
struct HoldsHandle {
    int a;
    Handle handle;
};

template <typename T>
struct Box {
    T value;
};

} // namespace

template <>
struct spillway::codec<Window> {
    static void encode(Writer& out, const Window& window) { out(window.begin(), window.bases()); }
    static Window decode(Reader& in) {
        const auto begin = in.get<long>();
        return {begin, in.get<std::string>()};
    }
    static std::size_t footprint(const Window& window) { return window.bases().capacity() + 1; }
};

template <>
struct spillway::codec<Handle> {
    static void encode(Writer&, const Handle&) {}
    static Handle decode(Reader& in) { return {reinterpret_cast<std::uint64_t>(in.parent())}; }
};

template <typename T>
struct spillway::codec<Box<T>> {
    static void encode(Writer& out, const Box<T>& box) { out('b', box.value); }
    static Box<T> decode(Reader& in) {
        if (in.get<char>() != 'b') Reader::malformed("not a box");
        return {in.get<T>()};
    }
};

namespace {

template <typename T>
std::vector<std::byte> encoded(const T& value) {
    std::vector<std::byte> bytes;
    Writer out(bytes);
    out(value);
    CHECK(out.size() == bytes.size());
    CHECK(encoded_size(value) == bytes.size());
    return bytes;
}

template <typename T>
T back(const T& value) {
    const auto bytes = encoded(value);
    Reader in(bytes);
    T result = in.get<T>();
    in.expect_end();
    return result;
}

} // namespace

TEST_CASE("a plain struct with strings and vectors comes back equal without a codec") {
    const Call call{17, "ACG", "A", {0.5, -1e300, 0.0}};
    CHECK(back(call) == call);
    CHECK(back(Call{}) == Call{});
    CHECK(back(std::vector<Call>{call, {}, call}) == std::vector<Call>{call, {}, call});
}

TEST_CASE("sixteen members, no members and built-in arrays are listed rightly") {
    STATIC_REQUIRE(detail::member_count<Sixteen> == 16);
    STATIC_REQUIRE(detail::member_count<Empty> == 0);
    STATIC_REQUIRE(detail::member_count<Bases> == 3);
    STATIC_REQUIRE(detail::member_count<Nested> == 7);
    STATIC_REQUIRE(detail::member_count<Site> == 2);
    STATIC_REQUIRE(is_plain<Bases>);
    const Sixteen sixteen{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, "sixteen"};
    CHECK(back(sixteen) == sixteen);
    CHECK(back(std::vector<Empty>(3)).size() == 3);
    const Bases bases{"chr20", {{1, 2, 3}, {4, 5, 6}}, {{{7, 8.5, Strand::reverse}, {9, -1, Strand::forward}}}};
    const Bases copy = back(bases);
    CHECK(std::string_view(copy.name) == "chr20");
    CHECK(copy.counts[1][2] == 6);
    CHECK(copy.points == bases.points);
}

TEST_CASE("nested members of every supported kind come back equal") {
    Nested value;
    value.call = {1, "A", "", {}};
    value.point = Point{-3, 2.5, Strand::reverse};
    value.calls = {{2, std::string(1000, 'T'), "G", {1, 2, 3}}};
    value.owned = std::make_unique<Call>(Call{3, "C", "CC", {0.25}});
    value.tuple = {42, "tuple", {}};
    value.flags = {true, false, true};
    value.by_name = {{"a", {1, 2}}, {"", {}}};
    const Nested copy = back(value);
    CHECK(copy.call == value.call);
    CHECK(copy.point == value.point);
    CHECK(copy.calls == value.calls);
    REQUIRE(copy.owned);
    CHECK(*copy.owned == *value.owned);
    CHECK(copy.tuple == value.tuple);
    CHECK(copy.flags == value.flags);
    CHECK(copy.by_name == value.by_name);
    CHECK(back(std::unique_ptr<int>()) == nullptr);
    CHECK(back(std::optional<std::string>()) == std::nullopt);
    CHECK(back(std::unordered_map<int, std::string>{{1, "x"}, {2, "y"}}).at(2) == "y");
    CHECK(back(std::set<std::string>{"b", "a"}) == std::set<std::string>{"a", "b"});
    CHECK(back(std::pair<int, std::array<std::string, 2>>{1, {"p", "q"}}).second[1] == "q");
}

TEST_CASE("numbers keep every bit") {
    CHECK(back(std::numeric_limits<std::int64_t>::min()) == std::numeric_limits<std::int64_t>::min());
    CHECK(std::bit_cast<std::uint64_t>(back(std::bit_cast<double>(0x7ff8dead0000beefULL))) == 0x7ff8dead0000beefULL);
    CHECK(std::signbit(back(-0.0)));
    CHECK(back(Strand::reverse) == Strand::reverse);
}

TEST_CASE("a class of the user's needs a codec of a few lines, also inside an aggregate") {
    const Site site{5, Window(3, "ACGT")};
    CHECK(back(site) == site);
    CHECK(back(std::vector<Site>{site, site}) == std::vector<Site>{site, site});
    CHECK(back(Box<int>{7}).value == 7);
    CHECK(encoded(Box<int>{7}).size() == 1 + sizeof(int));
}

TEST_CASE("what cannot be coded is said so at compile time") {
    STATIC_REQUIRE(!Coded<HoldsView>);
    STATIC_REQUIRE(!Coded<HoldsPointer>);
    STATIC_REQUIRE(!Coded<HoldsSpan>);
    STATIC_REQUIRE(!Coded<HoldsReference>);
    STATIC_REQUIRE(!Coded<std::vector<HoldsPointer>>);
    STATIC_REQUIRE(!Coded<std::array<std::string_view, 2>>);
    STATIC_REQUIRE(!Coded<std::optional<const char*>>);
    STATIC_REQUIRE(!Coded<std::string_view>);
    STATIC_REQUIRE(!Coded<std::span<int>>);
    STATIC_REQUIRE(!Coded<void*>);
    STATIC_REQUIRE(!is_plain<HoldsPointer>);
    STATIC_REQUIRE(!is_plain<std::array<const char*, 2>>);
    STATIC_REQUIRE(Coded<Nested>);
    STATIC_REQUIRE(Coded<Site>);
}

TEST_CASE("a trivially copyable type with a codec of its own is never copied as bytes") {
    STATIC_REQUIRE(!is_plain<Handle>);
    STATIC_REQUIRE(!is_plain<HoldsHandle>);
    int parent = 0;
    const std::vector<HoldsHandle> value{{1, {0xdead}}, {2, {0xbeef}}};
    const auto bytes = encoded(value);
    Reader in(bytes, &parent);
    const auto copy = in.get<std::vector<HoldsHandle>>();
    REQUIRE(copy.size() == 2);
    CHECK(copy[1].a == 2);
    CHECK(copy[1].handle.address == reinterpret_cast<std::uint64_t>(&parent));
}

TEST_CASE("pmr containers are made on the reader's resource, nested ones too") {
    struct Payload {
        int a;
        std::pmr::vector<std::pmr::string> names;
    };
    const Payload value{1, {"a name that is too long for the small buffer", "another such name, as long as that one"}};
    const auto bytes = encoded(value);
    std::pmr::monotonic_buffer_resource resource;
    Reader in(bytes, nullptr, &resource);
    const auto copy = in.get<Payload>();
    CHECK(copy.names == value.names);
    CHECK(copy.names.get_allocator().resource() == &resource);
    CHECK(copy.names[1].get_allocator().resource() == &resource);
}

TEST_CASE("the footprint of plain types is nothing, of others their codec's figure or 1.5 times their bytes") {
    CHECK(footprint(Point{}) == 0);
    CHECK(footprint(std::array<int, 100>{}) == 0);
    const std::vector<double> numbers(1000);
    CHECK(footprint(numbers) == (8 + 8000) * 3 / 2);
    const Window window(1, std::string(100, 'A'));
    CHECK(footprint(window) == window.bases().capacity() + 1);
}

TEST_CASE("a value cut short anywhere is an error and never read beyond its end") {
    const std::tuple<Call, std::vector<std::string>, std::optional<Site>, std::map<int, Call>> value{
        {1, "ACG", "T", {1, 2}}, {"x", "yy", std::string(300, 'z')}, Site{9, Window(8, "TTT")}, {{4, {}}, {5, {}}}};
    const auto bytes = encoded(value);
    for (std::size_t length = 0; length != bytes.size(); ++length) {
        const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
        Reader in(cut);
        CHECK_THROWS_AS(in.get<std::remove_const_t<decltype(value)>>(), Error);
    }
}

TEST_CASE("damaged bytes give a value or an error, whatever the damage") {
    using Value =
        std::tuple<Call, std::vector<std::string>, std::vector<bool>, std::optional<Site>, std::vector<Empty>>;
    const Value value{{1, "ACG", "T", {1, 2}}, {"x", "yy"}, {true}, Site{9, Window(8, "TTT")}, {{}}};
    const auto bytes = encoded(value);
    std::mt19937_64 random(11); // NOLINT: a fixed seed is wanted
    int errors = 0;
    for (int round = 0; round != 20000; ++round) {
        auto damaged = bytes;
        for (std::uint64_t flips = 1 + random() % 3; flips != 0; --flips) {
            damaged[random() % damaged.size()] = static_cast<std::byte>(random());
        }
        Reader in(damaged);
        try {
            static_cast<void>(in.get<Value>());
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::disk);
            CHECK(std::string_view(error.what()).find("record malformed") != std::string_view::npos);
            ++errors;
        }
    }
    CHECK(errors > 0);
}

TEST_CASE("left-over bytes are an error when the end is expected") {
    auto bytes = encoded(1);
    bytes.push_back(std::byte{0});
    Reader in(bytes);
    static_cast<void>(in.get<int>());
    CHECK_THROWS_AS(in.expect_end(), Error);
}
