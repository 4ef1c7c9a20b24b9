/* Drain (lib/pool/drain.hpp): bodies never overlap, and when the publishers have gone no item is left.

   Broken forms: NO_SECOND_LOOK        the drainer goes as soon as it has released the flag
                 LOOK_BEFORE_RELEASE   it looks again while it still holds the flag, and then goes
   Both must fail the assertion that nothing is left. */

#define PUBLISHERS 3
#define EACH 2

byte items = 0, inside = 0, gone = 0;
bool busy = false;

active [PUBLISHERS] proctype publisher() {
    byte published = 0;
    bool more, taken;
    do
    :: published < EACH ->
        items++;
        published++;
        do
        :: atomic { taken = busy; busy = true }
            if
            :: taken -> break
            :: else
            fi;
            inside++;
            assert(inside == 1);
            do
            :: items > 0 -> items--
            :: else -> break
            od;
            inside--;
#ifdef LOOK_BEFORE_RELEASE
            more = (items > 0);
            busy = false;
#else
            busy = false;
            more = (items > 0);
#endif
#ifdef NO_SECOND_LOOK
            more = false;
#endif
            if
            :: more
            :: else -> break
            fi
        od
    :: else -> break
    od;
    gone++;
    assert(gone < PUBLISHERS || items == 0)
}
