// Lends the threads of a oneTBB arena to a run. Link spillway::tbb.
//
//     auto handle = calling.start(pool, options);             // the pool may be as small as one thread
//     spillway::Report report = spillway::run_in(arena, handle);
//
// A stage that uses oneTBB itself does so in another arena or in tbb::this_task_arena::isolate: a thread that waits
// inside a stage must not begin to help a second time.
#pragma once

#include "spillway/pipeline.hpp"

#include <tbb/task_arena.h>
#include <tbb/task_group.h>

namespace spillway {

/// Works on the run from the calling thread and as many of the arena's as it has to give, beside the pool's own, until
/// it ends. Throws the run's Error.
template <class T>
Report run_in(tbb::task_arena& arena, Handle<T>& handle) {
    arena.execute([&] {
        tbb::task_group lent;
        const int others = arena.max_concurrency() - 1;
        for (int i = 0; i < others; ++i) lent.run([&] { handle.help(); });
        handle.help();
        lent.wait();
    });
    return handle.wait();
}

} // namespace spillway
