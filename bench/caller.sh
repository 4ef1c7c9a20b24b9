#!/usr/bin/env bash
# spillway-call beside `bcftools mpileup | call` and freebayes on the same files: wall and CPU seconds, and F1 where truth is given.
#   bench/caller.sh FASTA BAM [TRUTH BED] [REPEATS=3]
# The rivals, which run on one thread, are scattered over two regions: the halves of the stretch that BED (else the BAM's reads)
# covers on its first contig. spillway-call gets two threads and the whole file. Runs take turns; medians are printed.
# SPILLWAY_CALL names the binary, else it is looked for in build/. A rival that is not installed is left out.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
top=$(cd "$(dirname "$0")/.." && pwd)
fasta=$1 bam=$2 truth=${3:-} bed=${4:-} repeats=${5:-3}
call=${SPILLWAY_CALL:-$(find "$top/build" -name spillway-call -type f -perm -u+x 2> /dev/null | head -n 1)}
[ -x "$call" ] || { echo "no spillway-call: build it, or name it in SPILLWAY_CALL" >&2; exit 2; }
"$top/cmake/need-packages.sh" bench

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
gzip -cdf "$fasta" > "$out/ref.fa" # freebayes reads no compressed FASTA.
fasta=$out/ref.fa
samtools faidx "$fasta"
if [ -n "$bed" ]; then
    read -r contig begin end < <(awk 'NR == 1 { c = $1; b = $2 } $1 == c && $3 > e { e = $3 } END { print c, b, e }' "$bed")
else
    contig=$(samtools idxstats "$bam" | awk '$3 > 0 && !n++ { print $1 }')
    read -r begin end < <(samtools view "$bam" "$contig" | awk 'NR == 1 { b = $4 - 1 } { e = $4 } END { print b, e + 500 }')
fi
middle=$(((begin + end) / 2))
bounds=("$begin" "$middle" "$end")

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

callers=(spillway)
for rival in bcftools freebayes; do
    if command -v "$rival" > /dev/null; then callers+=("$rival"); else echo "$rival is not installed: left out"; fi
done

TIMEFORMAT='%R %U %S'
for ((repeat = 0; repeat < repeats; ++repeat)); do
    for caller in "${callers[@]}"; do
        { time "run_$caller"; } 2> "$out/time" || { cat "$out/$caller".*log >&2; exit 1; }
        awk '{ print $1, $2 + $3 }' "$out/time" >> "$out/$caller.times"
    done
done

median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
echo "| caller | wall s | CPU s | SNV F1 | indel F1 | all F1 |"
echo "|---|---:|---:|---:|---:|---:|"
for caller in "${callers[@]}"; do
    f1="- | - | -"
    if [ -n "$truth" ]; then
        f1=$(python3 "$top/examples/score.py" "$out/$caller.vcf.gz" "$truth" "$fasta" "$bed" |
            awk '{ printf "%s%s", (NR > 1 ? " | " : ""), $NF }')
    fi
    printf '| %s | %.2f | %.2f | %s |\n' "$caller" "$(awk '{ print $1 }' "$out/$caller.times" | median)" \
        "$(awk '{ print $2 }' "$out/$caller.times" | median)" "$f1"
done
