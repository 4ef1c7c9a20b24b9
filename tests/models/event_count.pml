/* EventCount (lib/pool/event_count.hpp): no waiter sleeps while there is work. Spin's memory is sequentially consistent: what
   the fences are for is shown by tests/interleaving, what the order of steps is for is shown here.

   Broken forms: NO_SECOND_LOOK       the waiter does not look again between announcing itself and sleeping
                 WAITERS_READ_FIRST   the poster reads the waiters before it publishes
                 EPOCH_READ_LATE      the waiter reads the epoch after its second look
                 EPOCH_KEPT           the poster wakes without raising the epoch
   All must end in a state where a waiter sleeps for ever. */

#define WAITERS 2
#define POSTERS 2
#define EACH 2 /* items that each thread posts, and that each waiter takes before it ends */

byte items = 0, waiters = 0, epoch = 0;
bool asleep[WAITERS];

inline wake(count) {
    k = count;
    do
    :: k > 0 && asleep[0] -> asleep[0] = false; k--
    :: k > 0 && asleep[1] -> asleep[1] = false; k--
    :: k == 0 || (!asleep[0] && !asleep[1]) -> break
    od
}

active [POSTERS] proctype poster() {
    byte posted = 0, found, k;
    do
    :: posted < EACH ->
#ifdef WAITERS_READ_FIRST
        found = waiters;
        items++;
#else
        items++;
        found = waiters;
#endif
        posted++;
        if
        :: found > 0 ->
#ifndef EPOCH_KEPT
            epoch++;
#endif
            atomic { wake(1) } /* which of several sleepers: any */
        :: else
        fi
    :: else -> break
    od
}

active [WAITERS] proctype waiter() {
    byte me = _pid - POSTERS;
    byte taken = 0, ticket;
look:
    do
    :: atomic { items > 0 && taken < EACH -> items--; taken++ }
    :: taken == EACH -> goto ended
    :: items == 0 && taken < EACH -> break
    od;
    waiters++;
#ifndef EPOCH_READ_LATE
    ticket = epoch;
#endif
#ifndef NO_SECOND_LOOK
    if
    :: items > 0 -> waiters--; goto look
    :: else
    fi;
#endif
#ifdef EPOCH_READ_LATE
    ticket = epoch;
#endif
    atomic { asleep[me] = (epoch == ticket) } /* futex wait: the kernel compares and queues in one step */
    !asleep[me];
    waiters--;
    goto look;
ended:
    skip
}
