# Sets `call`, the spillway-call that a bench measures: SPILLWAY_CALL, else that of the release build, else of another. Sourced.
call=${SPILLWAY_CALL:-}
if [ -z "$call" ]; then
    for call in "$top"/build/release/examples/caller/spillway-call "$top"/build/*/examples/caller/spillway-call; do
        if [ -x "$call" ]; then break; fi
    done
fi
[ -x "$call" ] || { echo "no spillway-call: build it, or name it in SPILLWAY_CALL" >&2; exit 2; }
echo "measured: $call"
