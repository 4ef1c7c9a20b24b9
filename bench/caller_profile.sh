#!/usr/bin/env bash
# What part of a run of spillway-call is alignment, with each instruction set that the machine has?
#   bench/caller_profile.sh FASTA BAM [REPEATS=5] [OTHER...]
# OTHER are more binaries, such as one built from an older commit, to run beside. Runs take turns, on one thread so that the
# report's stages add up; medians are printed. The last column is what the stages would take of that if alignment cost nothing.
# Ends with 1 if two VCFs differ. SPILLWAY_CALL names the binary, else it is looked for in build/.
set -euo pipefail
usage() { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
top=$(cd "$(dirname "$0")/.." && pwd)
fasta=$1 bam=$2 repeats=${3:-5}
others=("${@:4}")
source "$top/bench/find_call.sh"

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
names=() binaries=() isas=()
for isa in baseline sse4 avx2 avx512 neon; do
    # What the machine lacks is refused before anything is read.
    SPILLWAY_ISA=$isa "$call" -f "$fasta" --threads 1 -o "$out/try.vcf.gz" "$bam" 2> "$out/log" ||
        { grep -q "this machine has" "$out/log" && continue; cat "$out/log" >&2; exit 1; }
    names+=("$isa") binaries+=("$call") isas+=("$isa")
done
for other in "${others[@]}"; do names+=("$other") binaries+=("$other") isas+=(""); done

TIMEFORMAT='%R %U %S'
for ((repeat = 0; repeat < repeats; ++repeat)); do
    for k in "${!names[@]}"; do
        { time SPILLWAY_ISA=${isas[k]} "${binaries[k]}" -v 2 -f "$fasta" --threads 1 -o "$out/$k.vcf.gz" "$bam" 2> "$out/log"; } 2> "$out/time"
        awk '{ printf "%s %s ", $1, $2 + $3 }' "$out/time" >> "$out/$k.runs"
        # Lines "  align   1250 candidates in 148 calls, 0.212 s": stages.
        awk '/ calls, .* s$/ { s = $(NF - 1); all += s; if ($1 == "align") align = s } END { print align, all }' "$out/log" >> "$out/$k.runs"
    done
done
# median K COLUMN
median() { awk -v c="$2" '{ print $c }' "$out/$1.runs" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
echo "| | wall s | CPU s | align s | of all stages | of them without it |"
echo "|---|---:|---:|---:|---:|---:|"
for k in "${!names[@]}"; do
    awk -v name="${names[k]}" -v wall="$(median "$k" 1)" -v cpu="$(median "$k" 2)" -v align="$(median "$k" 3)" -v all="$(median "$k" 4)" \
        'BEGIN { printf "| %s | %.2f | %.2f | %.3f | %.0f%% | %.2f |\n", name, wall, cpu, align, 100 * align / all, 1 - align / all }'
done
for k in "${!isas[@]}"; do
    [ -n "${isas[k]}" ] || continue
    cmp -s "$out/0.vcf.gz" "$out/$k.vcf.gz" || { echo "the VCF of ${names[k]} differs from that of ${names[0]}" >&2; exit 1; }
done
echo "the VCF is the same for ${isas[*]}"
