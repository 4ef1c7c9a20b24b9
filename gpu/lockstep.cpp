#include "gpu/kernels.hpp"
#include "gpu/lockstep_lanes.hpp"
#include "gpu/numbers.hpp"
#include "gpu/sweep.hpp"
#include "gpu/walk.hpp"

#include <type_traits>

namespace spillway::gpu {

void run_in_lockstep(const Launch& launch) {
    for (std::uint32_t shape = 0; shape < shape_count; ++shape) {
        Work work = launch.work;
        with_kernel(shape, launch.local, [&](auto kernel) {
            using K = decltype(kernel);
            using Numbers = std::conditional_t<K::packed, Packed<LockstepLanes>, Wide<LockstepLanes>>;
            work.rank_scale = 1U << column_bits<K::columns>;
            for (std::uint32_t tile = 0; tile < launch.tiles[shape]; ++tile) {
                sweep<LockstepLanes, Numbers, K::columns, K::local>(work, work.tiles[launch.first_tile[shape] + tile],
                                                                    work.rows, 0);
            }
        });
    }
    Work work = launch.work;
    work.count = launch.pairs;
    for (std::uint32_t pair = 0; pair < launch.pairs; pair += warp_size) {
        launch.local ? walk<LockstepLanes, true>(work, pair) : walk<LockstepLanes, false>(work, pair);
    }
}

} // namespace spillway::gpu
