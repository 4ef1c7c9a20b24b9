#include "align/score_pass.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>

namespace spillway {

namespace {

constexpr std::size_t alignment = 64;

/// Where 8 bits are tried, a path may leave so many bases of the query at each end. More cost a tenth more a cell,
/// fewer leave more pairs to be done again: two mismatches near an end and an insertion of ten still fit.
constexpr std::ptrdiff_t proven_margin = 24;

/// Rows after which sums of 8 bits are lowered, at least.
constexpr std::ptrdiff_t lowering_period = 16;

/// The least that 8 bits must have room for, in matches, to be worth a try: what those bases would add.
constexpr std::int64_t least_budget = proven_margin;

/// Queries in one group differ in length by at most this, or an eighth.
constexpr std::ptrdiff_t spread = 12;

/// A group must fill one of so many lanes, or its pairs cost less one by one;
constexpr std::ptrdiff_t least_fill = 4;

/// and so many of eight to be better than a full one of several targets.
constexpr std::ptrdiff_t least_shared_eighths = 6;

/// Longer targets are aligned one by one: this bounds what a group takes in memory.
constexpr std::size_t longest_target = std::size_t{1} << 14;

/// In how many rows a path may then end at most: those of the margin, of the longest and the shortest query of a group,
/// and what blocks add at both ends.
constexpr std::ptrdiff_t most_ending = proven_margin + spread + 2 * LaneMatrix<std::int8_t>::block;

/// Where sums lie in a lane.
struct Sums {
    std::int64_t perfect; ///< Of a path that has lost nothing.
    std::int64_t floor;   ///< The least.
    std::int64_t budget;  ///< The least loss that cannot be told.
    bool fit;
};

/// If the greatest loss or gain between two lowerings, or of a whole query, is that of `rows` rows.
template <class Lane>
Sums sums(const ReducedScores& scores, std::ptrdiff_t rows) {
    const std::int64_t most = (scores.match + scores.gap_extend) * rows + scores.gap_extend * LaneMatrix<Lane>::tile;
    const std::int64_t largest = std::max({scores.match, -scores.mismatch, -scores.unknown, scores.gap_open});
    Sums sums{};
    sums.floor = least_floor<Lane>(std::min(scores.mismatch, scores.unknown), scores.gap_open, scores.gap_extend);
    sums.perfect = sizeof(Lane) == 4 ? 0 : greatest_sum<Lane> - most;
    sums.budget = sums.perfect - sums.floor;
    // Lanes hold what a tile, or a row that may end a path, is raised by, too.
    const std::int64_t raised = scores.gap_extend * std::max(rows, LaneMatrix<Lane>::tile);
    sums.fit = sums.budget >= least_budget * scores.match &&
               std::max(largest + 2 * scores.gap_extend, raised) <= greatest_sum<Lane>;
    return sums;
}

/// After how many rows to lower the sums, if there is room for `rows`: what is subtracted must itself fit a lane.
template <class Lane>
std::ptrdiff_t lowering_rows(const ReducedScores& scores, std::ptrdiff_t rows) {
    constexpr std::ptrdiff_t block = LaneMatrix<Lane>::block;
    const auto most = static_cast<std::ptrdiff_t>(greatest_sum<Lane> / (scores.match + scores.gap_extend));
    return std::max(block, std::min(rows, most) / block * block);
}

/// Whether the differences of neighbouring sums fit 8 bits, and each score.
bool differences_fit(const ReducedScores& scores) {
    const std::int64_t largest = std::max({scores.match, -scores.mismatch, -scores.unknown, scores.gap_open});
    return scores.whole_query && largest <= greatest_sum<std::int8_t> && scores.match + 2 * scores.gap_open <= 255;
}

constexpr std::ptrdiff_t round_up(std::ptrdiff_t value, std::ptrdiff_t to) {
    return (value + to - 1) / to * to;
}

} // namespace

template <class T>
T* AlignedRoom::of(std::size_t size) {
    const std::size_t needed = size * sizeof(T) + alignment;
    if (bytes_.size() < needed) bytes_ = std::vector<std::byte>(needed);
    void* at = bytes_.data();
    std::size_t room = bytes_.size();
    return static_cast<T*>(std::align(alignment, size * sizeof(T), at, room));
}

ReducedScores::ReducedScores(const Scores& scores, Span span)
    : match(scores.match), mismatch(scores.mismatch), unknown(scores.unknown), gap_open(scores.gap_open),
      gap_extend(scores.gap_extend), divisor(1), whole_query(span == Span::query) {
    divisor = std::gcd(std::gcd(std::gcd(match, mismatch), std::gcd(unknown, gap_open)), gap_extend);
    for (std::int64_t* score : {&match, &mismatch, &unknown, &gap_open, &gap_extend}) *score /= divisor;
}

ScorePass::ScorePass(const Scores& scores, Span span, Isa isa)
    : scores_(scores), span_(span), reduced_(scores, span), kernels_(lane_kernels(isa)),
      narrow_(sums<std::int8_t>(reduced_, most_ending).fit), differences_(differences_fit(reduced_)),
      one_by_one_(scores, span, instructions_of(isa)) {}

void ScorePass::run(std::span<const SequencePair> pairs, std::span<AlignmentEnd> ends) {
    pairs_ = pairs;
    ends_ = ends;
    Order order, left;
    for (std::uint32_t i = 0; i < pairs.size(); ++i) {
        const SequencePair& pair = pairs[i];
        if (kernels_.on8.lanes == 0 || !certifiable(scores_) || pair.query.empty() || pair.target.empty() ||
            pair.target.size() > longest_target || pair.query.size() > longest_target) {
            run_single(i);
        } else {
            order.push_back(i);
        }
    }
    if (narrow_) {
        run_lanes(kernels_.on8, true, order, left);
        order.swap(left);
    }
    if (differences_) {
        run_differences(order, left);
        order.swap(left);
    } else if (!narrow_) {
        run_lanes(kernels_.on16, true, order, left);
        order.swap(left);
    }
    run_lanes(kernels_.on16, false, order, left);
    order.swap(left);
    run_lanes(kernels_.on32, false, order, left);
    for (const std::uint32_t pair : left) run_single(pair);
}

void ScorePass::run_single(std::uint32_t pair) {
    one_by_one_.set_target(pairs_[pair].target);
    one_by_one_.align(pairs_[pair].query, single_);
    ends_[pair] = {single_.score, single_.query_end, single_.target_end};
}

/// Longest queries first, of these the longest targets: neighbours waste few rows and columns.
void ScorePass::sort_by_length(std::span<std::uint32_t> pairs) const {
    static_assert(longest_target < std::size_t{1} << 15);
    std::vector<std::uint64_t> keys;
    keys.reserve(pairs.size());
    for (const std::uint32_t pair : pairs) {
        const std::uint64_t query = longest_target - pairs_[pair].query.size();
        const std::uint64_t target = longest_target - pairs_[pair].target.size();
        keys.push_back(query << 47 | target << 32 | pair);
    }
    std::sort(keys.begin(), keys.end());
    std::transform(keys.begin(), keys.end(), pairs.begin(), [](std::uint64_t key) { return std::uint32_t(key); });
}

/// How many of the first `most` may be in one group.
std::ptrdiff_t ScorePass::alike(Group pairs, std::ptrdiff_t most, bool proves) const {
    const auto length = [&](std::uint32_t pair) { return std::ssize(pairs_[pair].query); };
    const std::ptrdiff_t longest = length(pairs.front());
    const std::ptrdiff_t shortest = longest - (proves ? spread : std::max(spread, longest / 8));
    const Group some = pairs.first(static_cast<std::size_t>(std::min(most, std::ssize(pairs))));
    return std::find_if(some.begin(), some.end(), [&](std::uint32_t pair) { return length(pair) < shortest; }) -
           some.begin();
}

bool ScorePass::share_target(std::uint32_t a, std::uint32_t b) const {
    const std::string_view target = pairs_[a].target, other = pairs_[b].target;
    return target.data() == other.data() && target.size() == other.size();
}

template <class Lane>
void ScorePass::run_lanes(const LaneKernel<Lane>& kernel, bool proves, Order& order, Order& left) {
    left.clear();
    tried_ = 0;
    std::sort(order.begin(), order.end()); // so that those of one target follow one another
    auto mixed = order.begin();
    for (auto at = order.begin(); at != order.end();) {
        const auto end = std::find_if(at, order.end(), [&](std::uint32_t pair) { return !share_target(*at, pair); });
        const auto others = static_cast<std::ptrdiff_t>(run_shared(kernel, proves, std::span(at, end), left));
        mixed = std::copy(at, at + others, mixed);
        at = end;
    }
    order.erase(mixed, order.end());
    sort_by_length(order);
    for (Group rest(order); !rest.empty();) {
        const std::ptrdiff_t count = alike(rest, kernel.lanes, proves);
        const Group group = rest.first(static_cast<std::size_t>(count));
        rest = rest.subspan(group.size());
        if (count * least_fill < kernel.lanes) {
            for (const std::uint32_t pair : group) run_single(pair);
        } else {
            run_group(kernel, proves, false, group, left);
        }
    }
}

template <class Lane>
std::size_t ScorePass::run_shared(const LaneKernel<Lane>& kernel, bool proves, std::span<std::uint32_t> pairs,
                                  Order& left) {
    const auto enough = [&](std::ptrdiff_t count) { return count * 8 >= kernel.lanes * least_shared_eighths; };
    if (sizeof(Lane) == 4 || !enough(std::ssize(pairs))) return pairs.size();
    sort_by_length(pairs);
    auto others = pairs.begin();
    for (Group rest = pairs; !rest.empty();) {
        const std::ptrdiff_t count = alike(rest, kernel.lanes, proves);
        const Group group = rest.first(static_cast<std::size_t>(count));
        rest = rest.subspan(group.size());
        if (enough(count)) {
            run_group(kernel, proves, true, group, left);
        } else {
            others = std::copy(group.begin(), group.end(), others);
        }
    }
    return static_cast<std::size_t>(others - pairs.begin());
}

const char* ScorePass::texts(Group group, bool queries, std::ptrdiff_t stride, std::ptrdiff_t lanes) {
    const auto size = static_cast<std::size_t>(stride * lanes);
    if (texts_.size() < size) texts_.resize(size);
    char* to = texts_.data();
    for (const std::uint32_t pair : group) {
        const std::string_view text = queries ? pairs_[pair].query : pairs_[pair].target;
        std::memcpy(to, text.data(), text.size());
        to += stride;
    }
    return texts_.data();
}

template <class Lane>
void ScorePass::pack(Group group, bool shared, std::ptrdiff_t lanes, LaneMatrix<Lane>& m) {
    const std::ptrdiff_t packed = std::max<std::ptrdiff_t>(lanes, 16); // lanes that are packed at least
    bool unknown = false;
    const auto side = [&](bool queries, std::ptrdiff_t length, std::uint8_t code, AlignedRoom& room) {
        const std::ptrdiff_t stride = round_up(length, 16);
        const LaneText text{texts(group, queries, stride, packed), stride, length};
        std::uint8_t* const bytes = codes_.of<std::uint8_t>(static_cast<std::size_t>(stride * packed));
        unknown = kernels_.pack(text, packed, code, bytes) || unknown;
        Lane* const lane = room.of<Lane>(static_cast<std::size_t>(stride * lanes));
        const std::ptrdiff_t run = packed == lanes ? stride * lanes : lanes; // that lies side by side in both
        for (std::ptrdiff_t at = 0; at < stride * lanes; at += run)
            std::copy_n(bytes + at / lanes * packed, run, lane + at);
        return lane;
    };
    m.query = side(true, m.rows, 4, query_);
    if (shared) {
        shared_target_.assign(pairs_[group.front()].target);
        m.shared_target = shared_target_.at(0);
        m.profile = profile_.of<Lane>(static_cast<std::size_t>(m.rows * LaneMatrix<Lane>::bases * lanes));
    } else {
        m.target = side(false, m.columns, 8, target_);
    }
    m.distinguishes = unknown && reduced_.unknown != reduced_.mismatch;
}

template <class Lane>
const Lane* ScorePass::say_where_paths_end(Group group, std::ptrdiff_t lanes, const LaneMatrix<Lane>& m) {
    Lane* const ends = ends_room_.of<Lane>(static_cast<std::size_t>((m.rows - m.first_last) * lanes));
    for (std::ptrdiff_t row = m.first_last; row < m.rows; ++row) {
        for (std::ptrdiff_t lane = 0; lane < lanes; ++lane) {
            const std::ptrdiff_t last =
                lane < std::ssize(group) ? std::ssize(pairs_[group[static_cast<std::size_t>(lane)]].query) - 1 : -1;
            const bool may_end = m.whole_query ? row == last : row <= last;
            ends[(row - m.first_last) * lanes + lane] = may_end ? greatest_sum<Lane> : least_sum<Lane>;
        }
    }
    return ends;
}

/// All of `m` that follows from the group and the scores, but for where sums lie and where paths begin and end.
template <class Lane>
void ScorePass::lay_out(Group group, bool shared, std::ptrdiff_t lanes, LaneMatrix<Lane>& m) {
    target_sizes_.fill(0);
    for (std::size_t lane = 0; lane < group.size(); ++lane) {
        target_sizes_[lane] = static_cast<std::int32_t>(pairs_[group[lane]].target.size());
    }
    m.target_sizes = target_sizes_.data();
    m.columns = *std::max_element(target_sizes_.begin(), target_sizes_.end());
    pack(group, shared, lanes, m);
    m.match = static_cast<Lane>(reduced_.match);
    m.mismatch = static_cast<Lane>(reduced_.mismatch);
    m.unknown = static_cast<Lane>(reduced_.unknown);
    m.gap_open = static_cast<Lane>(reduced_.gap_open);
    m.gap_extend = static_cast<Lane>(reduced_.gap_extend);
    m.edge = edge_.of<Lane>(static_cast<std::size_t>(m.rows * LaneMatrix<Lane>::edges * lanes));
    m.ends = say_where_paths_end(group, lanes, m);
}

template <class Lane>
void ScorePass::run_group(const LaneKernel<Lane>& kernel, bool proves, bool shared, Group group, Order& left) {
    if (proves && tried_ >= 8 * static_cast<std::size_t>(kernel.lanes) && left.size() * 2 > tried_) {
        left.insert(left.end(), group.begin(), group.end()); // these pairs are not alike: no more tries
        return;
    }
    tried_ += group.size();
    constexpr std::ptrdiff_t block = LaneMatrix<Lane>::block;
    const std::ptrdiff_t longest = std::ssize(pairs_[group.front()].query);
    const std::ptrdiff_t shortest = std::ssize(pairs_[group.back()].query);
    LaneMatrix<Lane> m;
    m.rows = round_up(longest, block);
    m.whole_query = span_ == Span::query;
    m.first_last = (m.whole_query ? shortest - 1 : shortest) / block * block;
    if (m.whole_query) {
        m.first_end = m.first_last;
    } else {
        m.begins = m.rows;
        if (proves && shortest > 2 * proven_margin) {
            m.begins = proven_margin;
            m.first_end = (shortest - proven_margin) / block * block;
        }
    }
    Sums room_of = sums<Lane>(reduced_, m.rows);
    if (proves && !room_of.fit) {
        const std::ptrdiff_t rows_at_once = std::max(lowering_period, m.rows - m.first_end);
        room_of = sums<Lane>(reduced_, rows_at_once);
        m.period = lowering_rows<Lane>(reduced_, rows_at_once);
    }
    if (!room_of.fit || (!proves && room_of.perfect < 0)) {
        left.insert(left.end(), group.begin(), group.end());
        return;
    }

    lay_out(group, shared, kernel.lanes, m);
    m.perfect = static_cast<Lane>(room_of.perfect);
    m.floor = static_cast<Lane>(room_of.floor);
    m.end_sums = end_sums_.of<Lane>(static_cast<std::size_t>(m.window * m.tile * kernel.lanes));
    // The least that a path loses which was left out: it begins or ends too far inside, or sank out of reach.
    const auto left_out = [&](std::uint32_t pair) {
        const std::ptrdiff_t query = std::ssize(pairs_[pair].query);
        std::int64_t loss = room_of.budget;
        if (m.begins < m.rows && !m.whole_query) loss = std::min(loss, reduced_.match * (m.begins + 1));
        if (m.first_end > 0 && !m.whole_query) loss = std::min(loss, reduced_.match * (query - m.first_end));
        return loss;
    };
    const auto least_score = [&](std::uint32_t pair) { // of no use, or less
        return reduced_.match * std::ssize(pairs_[pair].query) - left_out(pair);
    };
    const bool all = !proves && !m.whole_query; // a sum below 0 is no part of a local path
    m.least_score = 0;
    if (!all) {
        const auto least = std::min_element(group.begin(), group.end(), [&](std::uint32_t a, std::uint32_t b) {
            return least_score(a) < least_score(b);
        });
        m.least_score = least_score(*least);
    }
    LaneEnd found[64];
    kernel.fill(m, found);

    for (std::size_t lane = 0; lane < group.size(); ++lane) {
        const std::ptrdiff_t query = std::ssize(pairs_[group[lane]].query);
        if (!all && found[lane].score <= least_score(group[lane])) {
            left.push_back(group[lane]);
            continue;
        }
        AlignmentEnd& end = ends_[group[lane]];
        end.score = static_cast<std::int32_t>(found[lane].score * reduced_.divisor);
        end.query_end = found[lane].row + 1;
        end.target_end = found[lane].column + 1;
        const std::int64_t inserted = reduced_.all_inserted(query);
        if (m.whole_query && inserted >= found[lane].score) {
            end = {static_cast<std::int32_t>(inserted * reduced_.divisor), static_cast<std::int32_t>(query), 0};
        } else if (!m.whole_query && found[lane].score <= 0) {
            end = {};
        }
    }
}

void ScorePass::run_differences(Order& order, Order& left) {
    const std::ptrdiff_t lanes = kernels_.differences.lanes;
    left.clear();
    sort_by_length(order);
    for (Group rest(order); !rest.empty();) {
        const std::ptrdiff_t count = alike(rest, lanes, false);
        const Group group = rest.first(static_cast<std::size_t>(count));
        rest = rest.subspan(group.size());
        if (count * 2 > lanes) { // fewer take half a register of 16 bits
            run_differences_of(group);
        } else {
            left.insert(left.end(), group.begin(), group.end());
        }
    }
}

void ScorePass::run_differences_of(Group group) {
    constexpr std::ptrdiff_t block = LaneMatrix<std::int8_t>::block;
    LaneMatrix<std::int8_t> m;
    m.rows = round_up(std::ssize(pairs_[group.front()].query), block);
    m.first_last = (std::ssize(pairs_[group.back()].query) - 1) / block * block;
    m.whole_query = true;
    lay_out(group, false, kernels_.differences.lanes, m);
    LaneEnd found[64];
    kernels_.differences.fill(m, found);
    for (std::size_t lane = 0; lane < group.size(); ++lane) {
        const std::ptrdiff_t query = std::ssize(pairs_[group[lane]].query);
        const std::int64_t score = reduced_.all_inserted(query) + std::max(0, found[lane].score);
        ends_[group[lane]] = {static_cast<std::int32_t>(score * reduced_.divisor), static_cast<std::int32_t>(query),
                              found[lane].score > 0 ? found[lane].column + 1 : 0};
    }
}

} // namespace spillway
