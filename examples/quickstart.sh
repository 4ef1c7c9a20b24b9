#!/usr/bin/env bash
# From a clone to variants in one command.
#   examples/quickstart.sh              simulate a small genome with known variants, call it, and score the calls
#   examples/quickstart.sh FASTA BAM    call variants in your own sorted, indexed BAM or CRAM
# Installs what is missing (as root or through sudo; else it prints the one apt line and exits 3) and builds inside the clone.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
case $# in
    0) ;;
    2) reference=$(realpath -e "$1") && reads=$(realpath -e "$2") || exit 2 ;;
    *) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

"$top/cmake/need-packages.sh" build

build=$top/build/quickstart
mkdir -p "$build"
quietly() { "$@" > "$build/step.log" 2>&1 || { cat "$build/step.log" >&2; echo "FAILED: $*" >&2; exit 1; }; }
echo "Building in $build ..."
quietly cmake -S "$top" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSPILLWAY_TESTS=OFF \
    -DSPILLWAY_BENCH=OFF -DSPILLWAY_WERROR=OFF
quietly cmake --build "$build" --target spillway-simulate spillway-call
simulate=$(find "$build" -name spillway-simulate -type f) call=$(find "$build" -name spillway-call -type f)

out=$build/out
mkdir -p "$out"
if [ $# = 0 ]; then
    "$simulate" --out "$out"
    reference=$out/ref.fa reads=$out/reads.bam
fi

echo "Calling ..."
calls=$out/calls.vcf.gz
rm -f "$calls" "$calls".* # of an earlier run, which a failing one must not leave as its own
"$call" -f "$reference" -o "$calls" "$reads"

count=$(gzip -cd "$calls" | awk '!/^#/ { n++ } END { print n + 0 }')
echo
echo "$count variants; the first five:"
gzip -cd "$calls" | awk '!/^##/ && n++ < 6' | cut -c 1-120
if [ $# = 0 ]; then
    echo
    echo "Against the planted truth:"
    python3 "$top/examples/score.py" "$calls" "$out/truth.vcf.gz" "$reference" "$out/regions.bed"
fi
echo
echo "The calls are in $calls"
