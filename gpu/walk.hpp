// The second kernel: begin of every pair whose path by the tie rule has no gap; one thread a pair.
//
//     walk<CudaLanes, true>(work, first_pair);        // local
//
// Going back from the end along its diagonal, what is left of the score falls by each pair. If it comes to nothing
// where a path may begin, all cells on the way have the value that is left there (were one higher, the end's score
// would be higher too), so the pair attains each, and the tie rule takes pairs first: this is the path. If it does not,
// the path has a gap.
#pragma once

#include "gpu/lanes.hpp"
#include "gpu/work.hpp"

#include <cstdint>

namespace spillway::gpu {

template <class Lanes, bool local>
SPILLWAY_ON_DEVICE void walk(const Work& work, std::uint32_t first_pair) {
    using Word = typename Lanes::Word;
    using Mask = typename Lanes::Mask;
    const auto constant = [](std::int32_t value) { return Lanes::all(static_cast<std::uint32_t>(value)); };
    const Word match = constant(work.scores.match);
    const Word mismatch = constant(work.scores.mismatch);
    const Word unknown = constant(work.scores.unknown);

    const Word number = Lanes::lane() + first_pair;
    const Mask working = Lanes::less(number, work.count);
    const Word pair = Lanes::select(working, number, 0U);
    const Word query_at = Lanes::load(work.pairs, pair, 0);
    const Word target_at = Lanes::load(work.pairs, pair, 1);
    Word left = Lanes::load(work.ends, pair, 0);
    Word query = Lanes::load(work.ends, pair, 1);
    Word target = Lanes::load(work.ends, pair, 2);
    const Mask empty = Lanes::equal(query, 0U);
    Word begin = Lanes::select(empty, 0U, 0xFFFFFFFFU);
    Mask going = Lanes::both(working, Lanes::both(Lanes::less(0U, query), Lanes::less(0U, target)));
    while (Lanes::any(going)) {
        const Word q = Lanes::load8(work.bases, Lanes::select(going, query_at + query - 1U, 0U));
        const Word t = Lanes::load8(work.bases, Lanes::select(going, target_at + target - 1U, 0U));
        const Mask known = Lanes::both(Lanes::less(q, unknown_base), Lanes::less(t, unknown_base));
        left = left - Lanes::select(known, Lanes::select(Lanes::equal(q, t), match, mismatch), unknown);
        query = query - 1U;
        target = target - 1U;
        const Mask inside = Lanes::both(Lanes::less(0U, query), Lanes::less(0U, target));
        Mask begins = Lanes::both(going, Lanes::equal(left, 0U));
        if constexpr (!local) begins = Lanes::both(begins, Lanes::equal(query, 0U));
        begin = Lanes::select(begins, target, begin);
        going = Lanes::both(Lanes::both(going, inside), Lanes::none_of(begins));
        // H is never below 0 in a local alignment.
        if constexpr (local) going = Lanes::both(going, Lanes::less(0U, left));
    }
    Lanes::store(work.ends, pair, 3, begin, working);
}

} // namespace spillway::gpu
