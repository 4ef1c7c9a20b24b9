/* The count of a gathering family (lib/directory/slot.hpp, Family::unfinished): one for the producer, one for each child that
   has not ended. The gather fires once, when all children have ended, dropped and failed ones too, also when there are none.

   Broken forms: PRODUCER_NOT_COUNTED   starts at 0: fires while children are still being made, or not at all for none
                 DROPPED_NOT_COUNTED    a dropped child does not end: never fires
                 READ_AFTER_DECREMENT   decrement and test are two steps: fires twice */

#define MOST 3 /* children; the fan-out makes any number up to it */
#define WORKERS 2

byte made = 0, ended = 0, fired = 0;
bool closed = false;
#ifdef PRODUCER_NOT_COUNTED
byte unfinished = 0;
#else
byte unfinished = 1;
#endif
chan children = [MOST] of { byte };

inline one_less() {
#ifdef READ_AFTER_DECREMENT
    unfinished--;
    last = (unfinished == 0);
#else
    atomic { unfinished--; last = (unfinished == 0) }
#endif
    if
    :: last ->
        assert(closed && ended == made);
        fired++;
        assert(fired == 1)
    :: else
    fi
}

active proctype producer() {
    bool last;
    do
    :: made < MOST ->
        unfinished++; /* before the child can be seen, so that it cannot end uncounted */
        made++;
        children!1
    :: break
    od;
    closed = true;
#ifdef PRODUCER_NOT_COUNTED
    skip
#else
    one_less()
#endif
}

active [WORKERS] proctype worker() {
    bool last;
end_work:
    do
    :: children?_ ->
        ended++;
        if
        :: one_less() /* done, or failed */
#ifdef DROPPED_NOT_COUNTED
        :: skip       /* dropped */
#endif
        fi
    od
}

/* All is quiet: nobody can go on. Then the gather has fired. */
active proctype quiet() {
    timeout;
    assert(fired == 1)
}
