#include "gpu/kernels.hpp"
#include "gpu/lockstep_lanes.hpp"
#include "gpu/sweep.hpp"
#include "gpu/walk.hpp"

namespace spillway::gpu {
namespace {

template <PackForm form>
void sweep_all(const Launch& launch) {
    for (std::uint32_t shape = 0; shape < shape_count; ++shape) {
        Work work = launch.work;
        with_kernel(shape, launch.local, [&](auto kernel) {
            using K = decltype(kernel);
            work.rank_scale = 1U << column_bits<K::columns>;
            for (std::uint32_t tile = 0; tile < launch.tiles[shape]; ++tile) {
                sweep_tile<LockstepLanes, form, K::columns, K::packed, K::local>(
                    work, work.tiles[launch.first_tile[shape] + tile], work.rows);
            }
        });
    }
}

} // namespace

void run_in_lockstep(const Launch& launch, PackForm form) {
    form == PackForm::together ? sweep_all<PackForm::together>(launch) : sweep_all<PackForm::one_by_one>(launch);
    Work work = launch.work;
    work.count = launch.pairs;
    for (std::uint32_t pair = 0; pair < launch.pairs; pair += warp_size) {
        launch.local ? walk<LockstepLanes, true>(work, pair) : walk<LockstepLanes, false>(work, pair);
    }
}

} // namespace spillway::gpu
