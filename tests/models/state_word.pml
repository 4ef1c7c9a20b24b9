/* The state word and its hints (lib/directory/state_word.hpp): two candidates, one after the other, pass two stages through one
   slot, beside a spiller that moves the payload to disk out of Ready and out of Parked. Each step changes the whole word at once.

     Free -> Filling -> Ready(memory) -> Claimed -> Ready(memory) -> Claimed -> Parked(memory) -> Done -> Free
                        Ready(memory) -> Spilling -> Ready(disk or recipe) -> Loading -> Claimed, or Failed -> Free
                        Parked(memory) -> Spilling -> Parked(disk or recipe)
                        Ready or Parked(disk) -> Loading -> Ready or Parked(memory), read ahead of need
     Spilling fails -> back to where it was, in memory. A candidate that cannot be enqueued is claimed and carried by its maker.

   Checked: an owned state has one owner; a Ready slot has exactly one hint that matches it, in a queue, on its way there, or in
   the hand of a worker; each candidate passes each stage once, is claimed by a hint of that stage's queue, and is emitted once;
   when nobody can go on, nothing is under way.

   Broken forms: HINT_NOT_REISSUED     a spiller publishes without a hint
                 VERSION_KEPT          a step into Ready does not raise the version
                 VERSION_NOT_COMPARED  a worker claims whatever is Ready in the slot of its hint
                 NOT_COMPARED_AT_ONCE  a worker looks at the word, and takes it in a second step
                 SPILL_OWES_NO_DRAIN   a spiller puts a parked candidate back and does not drain
                 FAILED_NOT_EMITTED    a failed candidate does not fill its place in the order
                 DROPPED_AS_IN_MEMORY  a spiller drops the payload and says that it is in memory */

#define WORKERS 2
#define STAGES 2
#define CANDIDATES 2
#define SPILLS 2    /* for all: each raises the version, which must stay below VERSIONS */
#define LOADS 1     /* read ahead; likewise */
#define VERSIONS 8  /* 2 candidates, 2 stages, 2 spills, 1 load: versions 1 to 7 */

mtype = { free, filling, ready, claimed, parked, spilling, loading, failed, done };
mtype state = free;
byte version = 0, stage = 0;
bool on_disk = false, dropped = false; /* the word's place: disk, recipe; neither: memory */

byte queued[VERSIONS];     /* hints in queues, by version; no order among them is relied on */
byte live[VERSIONS];       /* and those on their way there, or in a worker's hand: for the checks only */
byte queue_stage[VERSIONS];

byte owners = 0, passed = 0, emitted = 0, made = 0, spills = 0;
bool payload_in_memory = false, payload_on_disk = false;
bool draining = false;

inline own() { owners++; assert(owners == 1) }
inline disown() { assert(owners == 1); owners-- }

inline into_ready(mine) {
    atomic {
#ifndef VERSION_KEPT
        version++;
#endif
        mine = version;
        live[mine]++;
        queue_stage[mine] = stage;
        disown();
        state = ready
    }
}

inline take_hint(v) { queued[v] > 0 -> queued[v]--; hint = v }

/* The sink's turn: Drain as drain.pml has it. */
inline drain() {
    do
    :: atomic { busy = draining; draining = true }
        if
        :: busy -> break
        :: else
        fi;
        if
        :: atomic { state == parked -> state = done; own() }
            assert(passed == STAGES && (dropped || (on_disk -> payload_on_disk : payload_in_memory)));
            emit()
#ifndef FAILED_NOT_EMITTED
        :: atomic { state == failed -> own() }
            emit()
#endif
        :: else
        fi;
        draining = false;
        if
        :: state == parked
#ifndef FAILED_NOT_EMITTED
        :: state == failed
#endif
        :: else -> break
        fi
    od
}

inline emit() {
    atomic {
        emitted++;
        passed = 0;
        payload_in_memory = false;
        payload_on_disk = false;
        on_disk = false;
        dropped = false;
        disown();
        state = free
    }
}

active proctype maker() {
    byte mine;
    do
    :: made < CANDIDATES ->
        atomic { state == free -> state = filling; stage = 0; own(); made++; payload_in_memory = true }
        into_ready(mine);
        queued[mine]++
    :: else -> break
    od
}

active [WORKERS] proctype worker() {
    byte mine, hint;
    bool busy, stored;
end_look:
    do
    :: atomic {
            if
            :: take_hint(0) :: take_hint(1) :: take_hint(2) :: take_hint(3) :: take_hint(4) :: take_hint(5) :: take_hint(6) :: take_hint(7)
            fi
        }
take:
#ifdef NOT_COMPARED_AT_ONCE
        if
        :: state == ready && version == hint
        :: else -> atomic { live[hint]--; goto end_look }
        fi;
#endif
        atomic {
            live[hint]--;
            if
#if defined(NOT_COMPARED_AT_ONCE)
            :: true
#elif defined(VERSION_NOT_COMPARED)
            :: state == ready
#else
            :: state == ready && version == hint
#endif
                -> own();
                   assert(stage == queue_stage[hint] && stage == passed);
                   stored = on_disk || dropped;
                   state = (stored -> loading : claimed)
            :: else -> goto end_look /* stale: whoever made it so owes a new one */
            fi
        }
        if
        :: stored ->
            assert((dropped || payload_on_disk) && !payload_in_memory);
            if
            :: atomic { payload_in_memory = true; payload_on_disk = false; on_disk = false; dropped = false; state = claimed }
            :: atomic { disown(); state = failed }
                drain();
                goto end_look
            fi
        :: else
        fi;
        assert(payload_in_memory);
        passed++;
        if
        :: passed < STAGES ->
            stage++;
            into_ready(mine);
            if
            :: queued[mine]++
            :: hint = mine; goto take /* cannot enqueue */
            fi
        :: else ->
            atomic { disown(); state = parked }
            drain()
        fi
    od
}

inline put_back() {
        if
        :: was_parked ->
            atomic { disown(); state = parked }
#ifndef SPILL_OWES_NO_DRAIN
            drain()
#endif
        :: else ->
            into_ready(mine);
#ifdef HINT_NOT_REISSUED
            live[mine]--
#else
            queued[mine]++
#endif
        fi
}

active proctype spiller() {
    byte mine, loads = 0;
    bool busy, was_parked;
end_look:
    do
    :: atomic {
            (state == ready || state == parked) && !on_disk && !dropped && spills < SPILLS ->
            was_parked = (state == parked);
            state = spilling;
            own();
            spills++
        }
        assert(payload_in_memory);
        if
        :: atomic { payload_on_disk = true; payload_in_memory = false; on_disk = true }
        :: atomic { payload_in_memory = false
#ifndef DROPPED_AS_IN_MEMORY
            dropped = true
#endif
            }
        :: skip /* the disk is full */
        fi;
        put_back()
    :: atomic { /* the same one, that it reads ahead is bounded as well */
            (state == ready || state == parked) && on_disk && loads < LOADS ->
            was_parked = (state == parked);
            state = loading;
            own();
            loads++
        }
        assert(payload_on_disk && !payload_in_memory);
        atomic { payload_in_memory = true; payload_on_disk = false; on_disk = false }
        put_back()
    od
}

/* In no state is a Ready slot without its one hint. */
active proctype one_live_hint() {
end_watch:
    atomic { state == ready && live[version] != 1 -> assert(false) }
}

/* When nobody can go on, nothing is under way. */
active proctype quiet() {
    timeout;
    assert(state == free && emitted == CANDIDATES)
}
