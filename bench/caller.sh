#!/usr/bin/env bash
# spillway-call beside `bcftools mpileup | call` and freebayes on the same files: wall and CPU seconds, F1 where truth is given,
# and what it costs to cut the work smaller.
#   bench/caller.sh FASTA BAM [TRUTH BED] [REPEATS=3]
#   bench/caller.sh DIRECTORY...     each with ref.fa, reads.bam, truth.vcf.gz and regions.bed; F1 of all, times of the first
# The rivals, which run on one thread, are scattered over two regions: the halves of the stretch that BED (else the BAM's reads)
# covers on its first contig. spillway-call gets two threads and the whole file. Runs take turns; medians are printed.
# SPILLWAY_CALL names the binary, else it is looked for in build/. A rival that is not installed is left out.
set -euo pipefail
usage() { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ $# -ge 1 ] || usage
top=$(cd "$(dirname "$0")/.." && pwd)
sets=() repeats=3
if [ -d "$1" ]; then
    for directory in "$@"; do
        sets+=("$directory/ref.fa" "$directory/reads.bam" "$directory/truth.vcf.gz" "$directory/regions.bed")
    done
else
    [ $# -ge 2 ] || usage
    sets=("$1" "$2" "${3:-}" "${4:-}") repeats=${5:-3}
fi
source "$top/bench/find_call.sh"
"$top/cmake/need-packages.sh" test bench
callers=(spillway)
for rival in bcftools freebayes; do
    if command -v "$rival" > /dev/null; then callers+=("$rival"); else echo "$rival is not installed: left out"; fi
done

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# use SET: the files of a set, by its number.
use() {
    local at=$((4 * $1))
    bam=${sets[at + 1]} truth=${sets[at + 2]} bed=${sets[at + 3]} fasta=$out/$1.fa
    if [ ! -e "$fasta" ]; then
        gzip -cdf "${sets[at]}" > "$fasta" # freebayes reads no compressed FASTA.
        samtools faidx "$fasta"
    fi
    if [ -n "$bed" ]; then
        read -r contig begin end < <(awk 'NR == 1 { c = $1; b = $2 } $1 == c && $3 > e { e = $3 } END { print c, b, e }' "$bed")
        awk -v c="$contig" '$1 == c' "$bed" > "$out/$1.bed" # What all callers have looked at is scored.
        bed=$out/$1.bed
    else
        contig=$(samtools idxstats "$bam" | awk '$3 > 0 && !n++ { print $1 }')
        read -r begin end < <(samtools view "$bam" "$contig" | awk 'NR == 1 { b = $4 - 1 } { e = $4 } END { print b, e + 500 }')
    fi
    bounds=("$begin" "$(((begin + end) / 2))" "$end")
}

run_spillway() { "$call" -f "$fasta" --threads 2 -o "$out/spillway.vcf.gz" "$bam" 2> "$out/spillway.log"; }
# A half: begin (0-based), end, output.
half_bcftools() { bcftools mpileup -f "$fasta" -r "$contig:$(($1 + 1))-$2" -Ou "$bam" | bcftools call -mv -Oz -o "$3"; }
half_freebayes() { freebayes -f "$fasta" -r "$contig:$1-$2" "$bam" | bcftools view -Oz -o "$3"; }
scatter() {
    local name=$1 ids=() i
    for i in 0 1; do
        "half_$name" "${bounds[i]}" "${bounds[i + 1]}" "$out/$name.$i.vcf.gz" 2> "$out/$name.$i.log" &
        ids+=($!)
    done
    for i in "${ids[@]}"; do wait "$i" || return 1; done
    bcftools concat -Oz -o "$out/$name.vcf.gz" "$out/$name".[01].vcf.gz 2> /dev/null
}
run_bcftools() { scatter bcftools; }
run_freebayes() { scatter freebayes; }
# run_regions LENGTH FILE: the whole stretch, as regions of so many bases, one beside the other; the report goes into regions.log.
run_regions() { "$call" -v 2 -f "$fasta" --threads 2 -R "$out/tiles.$1.bed" -o "$out/regions.vcf.gz" "$2" 2> "$out/regions.log"; }

TIMEFORMAT='%R %U %S'
# timed NAME COMMAND...: adds a line of wall and CPU seconds to NAME.times.
timed() {
    local name=$1
    shift
    { time "$@"; } 2> "$out/time" || { cat "$out"/*.log >&2; exit 1; }
    awk '{ print $1, $2 + $3 }' "$out/time" >> "$out/$name.times"
}
# median NAME COLUMN
median() { awk -v c="$2" '{ print $c }' "$out/$1.times" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
# goal WHAT FIGURE at-most|at-least LIMIT: says whether it is met.
goal() {
    awk -v what="$1" -v is="$2" -v how="$3" -v limit="$4" 'BEGIN {
        met = how == "at-most" ? is <= limit : is >= limit
        sub("-", " ", how)
        printf "%s: %s (goal %s %s: %s)\n", what, is, how, limit, met ? "met" : "MISSED" }'
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }

use 0
for ((repeat = 0; repeat < repeats; ++repeat)); do
    for caller in "${callers[@]}"; do timed "$caller" "run_$caller"; done
done
echo "| caller | wall s | CPU s | wall, spillway over it |"
echo "|---|---:|---:|---:|"
for caller in "${callers[@]}"; do
    wall=$(median "$caller" 1)
    printf '| %s | %.2f | %.2f | %s |\n' "$caller" "$wall" "$(median "$caller" 2)" "$(ratio "$(median spillway 1)" "$wall")"
done

if command -v bcftools > /dev/null; then
    goal "wall over that of bcftools" "$(ratio "$(median spillway 1)" "$(median bcftools 1)")" at-most 1.5
fi

if [ -n "$truth" ]; then
    printf '\n| reads | caller | SNV F1 | indel F1 | all F1 | false + missed |\n|---|---|---:|---:|---:|---:|\n'
    for ((set = 0; 4 * set < ${#sets[@]}; ++set)); do
        use "$set"
        for caller in "${callers[@]}"; do
            [ "$set" = 0 ] || "run_$caller"
            # Lines SNV, INDEL and ALL: TP n FP n FN n ... F1.
            python3 "$top/examples/score.py" "$out/$caller.vcf.gz" "$truth" "$fasta" "$bed" > "$out/score"
            printf '| %s | %s | %s |\n' "$bam" "$caller" \
                "$(awk '{ printf "%s | ", $NF } END { print $5 + $7 }' "$out/score")"
            awk -v c="$caller" 'END { print c, $5 + $7 }' "$out/score" >> "$out/errors"
            awk 'END { print $NF }' "$out/score" > "$out/$caller.f1"
        done
        [ ! -e "$out/bcftools.f1" ] || goal "F1 of all, beside bcftools" "$(< "$out/spillway.f1")" at-least "$(< "$out/bcftools.f1")"
    done
    [ "${#sets[@]}" = 4 ] || awk '{ n[$1] += $2 } END { for (c in n) print c ": " n[c] " false or missed in all" }' "$out/errors"
fi

use 0
samtools view -C -T "$fasta" -o "$out/reads.cram" "$bam"
samtools index "$out/reads.cram"
in_file=$(samtools view -c "$bam")
lengths=(500 10000 1000000)
for length in "${lengths[@]}"; do
    samtools idxstats "$bam" | awk -v l="$length" -v OFS='\t' '$2 > 0 && $3 > 0 {
        for (b = 0; b < $2; b += l) print $1, b, b + l < $2 ? b + l : $2 }' > "$out/tiles.$length.bed"
done
for ((repeat = 0; repeat < repeats; ++repeat)); do
    for length in "${lengths[@]}"; do
        for file in "$bam" "$out/reads.cram"; do
            timed "${file##*.}.$length" run_regions "$length" "$file"
            sed -n 's/.* reads (\([0-9]*\) decoded.*/\1/p' "$out/regions.log" > "$out/${file##*.}.$length.decoded"
        done
    done
done
printf '\n| regions of | decoded / in file, BAM | CRAM | wall s, BAM | CPU s, BAM | wall s, CRAM | CPU s, CRAM |\n'
echo "|---:|---:|---:|---:|---:|---:|---:|"
for length in "${lengths[@]}"; do
    printf '| %d | %.3f | %.3f | %.2f | %.2f | %.2f | %.2f |\n' "$length" \
        "$(awk -v n="$in_file" '{ print $1 / n }' "$out/bam.$length.decoded")" \
        "$(awk -v n="$in_file" '{ print $1 / n }' "$out/cram.$length.decoded")" \
        "$(median "bam.$length" 1)" "$(median "bam.$length" 2)" "$(median "cram.$length" 1)" "$(median "cram.$length" 2)"
done
for kind in bam cram; do
    for length in "${lengths[@]}"; do
        goal "reads decoded over those in the file, regions of $length bases, $kind" \
            "$(awk -v n="$in_file" '{ printf "%.3f", $1 / n }' "$out/$kind.$length.decoded")" at-most 1.1
    done
    goal "CPU of regions of 500 bases over that of 10 kb, $kind" "$(ratio "$(median "$kind.500" 2)" "$(median "$kind.10000" 2)")" at-most 1.2
    goal "wall of regions of 500 bases over that of 10 kb, $kind" "$(ratio "$(median "$kind.500" 1)" "$(median "$kind.10000" 1)")" at-most 1.2
done
