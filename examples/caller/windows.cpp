#include "windows.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace caller {

using spillway::hts::Read;
using spillway::hts::ReadBlock;

namespace {

/// Marks are settled in steps of this many bases: sorting them together costs less than one by one.
constexpr std::int64_t settle_step = 256;

/// Of reads that come block by block, one that may touch the slice.
void add_read(Window& window, const Read& read, const std::shared_ptr<const ReadBlock>& block) {
    if (read.begin >= window.slice_end() || read.end <= window.slice_begin()) return;
    window.reads.push_back(&read);
    if (window.blocks.empty() || window.blocks.back() != block) window.blocks.push_back(block);
}

void sort_reads(Window& window) {
    std::ranges::stable_sort(window.reads, {},
                             [](const Read* read) { return std::tuple(read->begin, read->name_hash, read->flags); });
}

} // namespace

WindowMaker::WindowMaker(const spillway::hts::Interval& wanted, std::shared_ptr<const std::string> reference,
                         EvidenceRules rules)
    : wanted_(wanted), reference_(std::move(reference)), rules_(rules) {}

void WindowMaker::push(const Read& read, const std::shared_ptr<const ReadBlock>& block) {
    frontier_ = std::max(frontier_, read.begin);
    if (frontier_ >= settled_ + settle_step) settle(frontier_);
    held_.push_back({&read, block});
    if (read.mapping_quality >= rules_.min_mapping_quality) mark(read);
}

void WindowMaker::mark(const Read& read) {
    std::int64_t at = read.begin, stretch = read.begin;
    const auto end_stretch = [&] {
        if (at == stretch) return;
        marks_.push_back({stretch, 0, 0, nullptr, 0, 1});
        marks_.push_back({at, 0, 0, nullptr, 0, -1});
    };
    for (const auto element : read.cigar) {
        const auto operation = cigar::operation(element);
        if (operation == spillway::hts::cigar_skip) {
            end_stretch();
            stretch = at + cigar::length(element);
        }
        if (cigar::takes_reference(operation)) at += cigar::length(element);
    }
    end_stretch();
    for_each_difference(read, Sequence(*reference_), [&](const Difference& d) {
        if (d.quality < rules_.min_base_quality) return;
        marks_.push_back({d.position, d.deleted, read.name_hash, d.inserted.data(),
                          static_cast<std::int32_t>(d.inserted.size()), 0});
    });
    for_each_clip(read, rules_, [&](std::int64_t position, bool at_end) {
        marks_.push_back({position, at_end ? -2 : -1, read.name_hash, nullptr, 0, 0});
    });
}

void WindowMaker::settle(std::int64_t final) {
    const auto middle =
        std::partition(marks_.begin(), marks_.end(), [&](const Mark& m) { return m.position >= final; });
    std::vector<Mark> ready(middle, marks_.end());
    marks_.erase(middle, marks_.end());
    const auto inserted = [](const Mark& m) {
        return std::string_view(m.inserted, static_cast<std::size_t>(m.inserted_size));
    };
    std::sort(ready.begin(), ready.end(), [&](const Mark& a, const Mark& b) {
        if (a.position != b.position) return a.position < b.position;
        if ((a.depth == 0) != (b.depth == 0)) return a.depth != 0;
        if (a.depth != 0) return false;
        if (a.deleted != b.deleted) return a.deleted < b.deleted;
        if (a.inserted_size != b.inserted_size) return a.inserted_size < b.inserted_size;
        if (const int order = inserted(a).compare(inserted(b)); order != 0) return order < 0;
        return a.name_hash < b.name_hash;
    });
    for (auto first = ready.cbegin(); first != ready.cend();) {
        if (first->depth != 0) {
            depth_ += first->depth;
            ++first;
            continue;
        }
        auto last = std::find_if(first, ready.cend(), [&](const Mark& m) {
            return m.position != first->position || m.depth != 0 || m.deleted != first->deleted ||
                   inserted(m) != inserted(*first);
        });
        weigh(first, last);
        first = last;
    }
    settled_ = final;
    // An insertion that settles later still begins one base before its place.
    if (!run_.empty() && settled_ - 1 > run_end_ + join_gap) close_run();
    drop_reads();
}

void WindowMaker::weigh(std::vector<Mark>::const_iterator first, std::vector<Mark>::const_iterator last) {
    std::int64_t templates = 1;
    for (auto next = first + 1; next != last; ++next) templates += next->name_hash != (next - 1)->name_hash ? 1 : 0;
    if (!rules_.enough(templates, depth_, rules_.min_share)) return;
    const std::string_view inserted(first->inserted, static_cast<std::size_t>(first->inserted_size));
    const bool clip = first->deleted < 0, substitution = first->deleted == 1 && inserted.size() == 1;
    const std::int64_t freedom =
        clip || substitution ? 0 : right_freedom(first->position, first->deleted, inserted, Sequence(*reference_));
    // An insertion or a clip lies between two bases: the one before it stands for its place.
    add({first->position - (first->deleted <= 0 ? 1 : 0),
         first->position + std::max<std::int64_t>(0, first->deleted) + freedom});
}

void WindowMaker::add(const Evidence& evidence) {
    if (!run_.empty() && evidence.begin > run_end_ + join_gap) close_run();
    if (run_.empty()) {
        run_begin_ = evidence.begin;
        run_end_ = evidence.end;
        next_multiple_ = (run_begin_ / long_run + 1) * long_run;
    }
    run_.push_back(evidence);
    run_end_ = std::max(run_end_, evidence.end);
    cut_run(false);
}

/// Cuts what can be decided; all of it if the run is complete.
void WindowMaker::cut_run(bool complete) {
    if (run_end_ - run_begin_ <= long_run) return;
    while (next_multiple_ < run_end_ && (complete || run_.back().begin > next_multiple_ + long_run / 2)) {
        std::size_t best = 0;
        auto best_rank = std::tuple(true, std::numeric_limits<std::int64_t>::max());
        std::int64_t covered = run_.front().end;
        for (std::size_t i = 1; i < run_.size(); ++i) {
            const std::int64_t distance = std::abs(run_[i].begin - next_multiple_);
            const auto rank = std::tuple(run_[i].begin < covered, distance);
            if (distance < long_run / 2 && run_[i].begin > run_[i - 1].begin && rank < best_rank) {
                best = i;
                best_rank = rank;
            }
            covered = std::max(covered, run_[i].end);
        }
        if (best > 0) emit(best);
        next_multiple_ += long_run;
    }
}

void WindowMaker::close_run() {
    cut_run(true);
    emit(run_.size());
}

/// Makes the first `count` pieces of evidence of the run a window.
void WindowMaker::emit(std::size_t count) {
    const auto last = run_.begin() + static_cast<std::ptrdiff_t>(count);
    std::int64_t end = 0;
    for (auto piece = run_.begin(); piece != last; ++piece) end = std::max(end, piece->end);
    const std::int64_t begin = run_.front().begin;
    run_.erase(run_.begin(), last);
    if (begin >= wanted_.begin && begin < wanted_.end) closed_.push_back({begin, end});
}

void WindowMaker::drop_reads() {
    std::int64_t needed = settled_;
    if (!run_.empty()) needed = std::min(needed, run_.front().begin);
    if (!closed_.empty()) needed = std::min(needed, closed_.front().begin);
    // One more than the flank: an insertion's evidence begins one base before its place.
    std::erase_if(held_, [&](const Held& h) { return h.read->end < needed - flank - 1; });
}

void WindowMaker::finish() {
    settle(std::numeric_limits<std::int64_t>::max() / 2);
    if (!run_.empty()) close_run();
    frontier_ = settled_;
}

std::optional<Window> WindowMaker::pop() {
    if (closed_.empty() || frontier_ <= closed_.front().end + flank) return std::nullopt;
    Window window;
    window.contig = wanted_.contig;
    window.begin = closed_.front().begin;
    window.end = closed_.front().end;
    window.reference = reference_;
    closed_.pop_front();
    for (const Held& held : held_) {
        if (held.read->begin >= window.slice_end()) break;
        add_read(window, *held.read, held.block);
    }
    sort_reads(window);
    return window;
}

Window window_at(const spillway::hts::Interval& evidence, std::shared_ptr<const std::string> reference,
                 spillway::hts::ReadStream& stream) {
    Window window{evidence.contig, evidence.begin, evidence.end, std::move(reference), {}, {}};
    stream.seek({evidence.contig, window.slice_begin(), window.slice_end()});
    while (const auto block = stream.next()) {
        for (const Read& read : block->reads()) add_read(window, read, block);
    }
    sort_reads(window);
    return window;
}

} // namespace caller
