#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test through ctest; the last lines are ctest's summary.
#   tests/run.sh [--preset release|debug|asan|tsan] [--core] [-- more arguments for ctest]
# --core leaves out the examples, and with them the caller's tests.
# Without the right to install it prints the one apt line and exits 3.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=release configure=()
while [ $# -gt 0 ]; do
    case $1 in
        --preset) preset=${2:?--preset needs a name}; shift 2 ;;
        --core) configure+=(-DSPILLWAY_EXAMPLES=OFF -DSPILLWAY_BENCH=OFF); shift ;;
        --) shift; break ;;
        *) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done

cmake/need-packages.sh build test

build=build/$preset
mkdir -p "$build"
quietly() { "$@" > "$build/step.log" 2>&1 || { cat "$build/step.log" >&2; echo "FAILED: $*" >&2; exit 1; }; }
quietly cmake --preset "$preset" "${configure[@]}"
quietly cmake --build --preset "$preset"

status=0
ctest --preset "$preset" --no-tests=error -j "$(nproc)" "$@" > "$build/ctest.log" 2>&1 || status=$?
if [ "$status" != 0 ]; then
    # What failed, with its output; the passed ones stay in the log.
    sed -E '/^ *Start |[. ]Passed /d' "$build/ctest.log" >&2
fi
# What could not run here, and why.
awk '/^[0-9]+\/[0-9]+ Test(ing)?: / { sub(/^[^:]*: /, ""); name = $0 }
     /^SKIPPED( in part)?: / { at = index($0, ": "); print substr($0, 1, at + 1) name substr($0, at) }' \
    "$build/Testing/Temporary/LastTest.log" | sort -u >&2
grep -E 'tests passed|No tests were found|^Total Test time' "$build/ctest.log"
exit "$status"
