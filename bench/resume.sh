#!/usr/bin/env bash
# What a journal costs a run that nobody disturbs, and what is left to do after a kill at 90%.
#   bench/resume.sh FASTA BAM [REPEATS=9] [REGION_LENGTH=0, the program's own]
# spillway-call with two threads, without and with --resume, taking turns: wall and CPU seconds, medians and the least (what
# else the machine does only adds), and their ratios (goal: under 1.03). Then runs that are killed once they have used 90% of the CPU seconds of a full run with a journal, which other load
# on the machine changes less than the clock, and resumed: the resumed run's beside a full one's and beside the start-up's, a run over one
# empty region (goal: at most 0.15 of a full run, plus start-up). Every VCF must equal the first. SPILLWAY_CALL names the binary, else
# it is looked for in build/.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
top=$(cd "$(dirname "$0")/.." && pwd)
fasta=$1 bam=$2 repeats=${3:-9} length=${4:-0}
call=${SPILLWAY_CALL:-$(find "$top/build" -name spillway-call -type f -perm -u+x 2> /dev/null | head -n 1)}
[ -x "$call" ] || { echo "no spillway-call: build it, or name it in SPILLWAY_CALL" >&2; exit 2; }

cut=()
[ "$length" = 0 ] || cut=(--region-length "$length")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
call() { "$call" -f "$fasta" --threads 2 "${cut[@]}" -v 0 -o "$out/calls.vcf.gz" "$@" "$bam"; }
same() {
    [ -e "$out/first.vcf.gz" ] || cp "$out/calls.vcf.gz" "$out/first.vcf.gz"
    cmp "$out/calls.vcf.gz" "$out/first.vcf.gz" || exit 1
}
TIMEFORMAT='%R %U %S'
timed() { # NAME ARGUMENTS...: appends wall and CPU seconds to NAME.times
    local name=$1
    shift
    { time call "$@"; } 2> "$out/time" || { cat "$out/time" >&2; exit 1; }
    awk '{ print $1, $2 + $3 }' "$out/time" >> "$out/$name.times"
}
least() { cut -d' ' -f"$2" "$out/$1.times" | sort -n | head -n 1; }
median() { cut -d' ' -f"$2" "$out/$1.times" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f", a / b }'; }

call && same # Files are in the page cache from here on.
for ((repeat = 0; repeat < repeats; ++repeat)); do
    if ((repeat % 2)); then timed journal --resume "$out/kept" && same; fi
    timed plain && same
    if ! ((repeat % 2)); then timed journal --resume "$out/kept" && same; fi
done
contig=$(head -n 1 "$fasta.fai" 2> /dev/null | cut -f1)
for ((repeat = 0; repeat < 3; ++repeat)); do timed empty -r "$contig:1-1"; done
cpu=$(median plain 2) journaled=$(median journal 2) start=$(median empty 2)
echo "| run | wall s, median | least | CPU s, median | least |"
echo "|---|---:|---:|---:|---:|"
for name in plain journal empty; do
    echo "| $name | $(median $name 1) | $(least $name 1) | $(median $name 2) | $(least $name 2) |"
done
echo "journal / plain: wall $(ratio "$(median journal 1)" "$(median plain 1)"), CPU $(ratio "$journaled" "$cpu"); of the least:" \
    "wall $(ratio "$(least journal 1)" "$(least plain 1)"), CPU $(ratio "$(least journal 2)" "$(least plain 2)") (goal under 1.03)"

ticks=$(awk -v c="$journaled" -v hz="$(getconf CLK_TCK)" 'BEGIN { print int(0.9 * c * hz) }')
for ((repeat = 0; repeat < repeats; ++repeat)); do
    "$call" -f "$fasta" --threads 2 "${cut[@]}" -v 0 -o "$out/calls.vcf.gz" --resume "$out/kept" "$bam" &
    id=$!
    while used=$(awk '{ print $14 + $15 }' "/proc/$id/stat" 2> /dev/null) && [ "${used:-$ticks}" -lt "$ticks" ]; do sleep 0.01; done
    kill -9 "$id" 2> /dev/null || true
    wait "$id" 2> /dev/null || true
    [ -n "$(ls "$out/kept")" ] || continue # It was done with less than usual.
    timed resumed --resume "$out/kept" && same
done
[ -e "$out/resumed.times" ] || { echo "no run was still going at 90%: give a larger input" >&2; exit 1; }
again=$(median resumed 2)
left=$(awk -v r="$again" -v s="$start" 'BEGIN { print (r > s) ? r - s : 0 }')
echo "resumed after a kill at 90%: $again CPU s, $left of them beyond start-up: $(ratio "$left" "$cpu") of a full run (goal at most 0.15)"
