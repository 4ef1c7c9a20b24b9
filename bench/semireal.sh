#!/usr/bin/env bash
# Makes reads with a known truth from real variants: both haplotypes of a phased VCF, 2x150 reads of each, mapped.
#   bench/semireal.sh FASTA PHASED_VCF CONTIG:BEGIN-END OUT [DEPTH=40] [SEED=7]
# FASTA may begin with the contig only; the reads are of the contig's first END bases, and regions.bed holds BEGIN to END. Writes
# ref.fa, reads.bam, truth.vcf.gz and regions.bed to OUT, as bench/caller.sh takes them. README's figures are of HG001's
# phased variants (GIAB v3.3.2) of 20:60001-1000000 on hs37d5.
set -euo pipefail
usage() { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ $# -ge 4 ] && [ $# -le 6 ] && [[ $3 =~ ^(.+):([0-9]+)-([0-9]+)$ ]] || usage
contig=${BASH_REMATCH[1]} begin=${BASH_REMATCH[2]} end=${BASH_REMATCH[3]}
fasta=$1 variants=$2 out=$4 depth=${5:-40} seed=${6:-7}
for tool in samtools bcftools bwa art_illumina; do
    command -v "$tool" > /dev/null ||
        { echo "$tool is missing: apt-get install samtools bcftools bwa art-nextgen-simulation-tools" >&2; exit 3; }
done

mkdir -p "$out"
samtools faidx "$fasta" "$contig:1-$end" | sed "1s/.*/>$contig/" > "$out/ref.fa"
samtools faidx "$out/ref.fa"
bcftools view -e 'GT="0/0" || GT="./."' "$variants" -Ou | bcftools annotate -x 'INFO,^FORMAT/GT' -Ou |
    bcftools norm -d exact -Oz -o "$out/truth.vcf.gz"
bcftools index -ft "$out/truth.vcf.gz"
printf '%s\t%d\t%d\n' "$contig" "$((begin - 1))" "$end" > "$out/regions.bed"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for haplotype in 1 2; do
    bcftools consensus -H "$haplotype" -f "$out/ref.fa" "$out/truth.vcf.gz" > "$scratch/$haplotype.fa" 2> "$scratch/log"
    art_illumina -q -ss HS25 -i "$scratch/$haplotype.fa" -p -l 150 -f "$(awk -v d="$depth" 'BEGIN { print d / 2 }')" \
        -m 350 -s 50 -rs "$((seed + haplotype))" -na -o "$scratch/h${haplotype}_" > /dev/null
    for mate in 1 2; do sed "1~4s/^@/@h$haplotype-/" "$scratch/h${haplotype}_$mate.fq" >> "$scratch/$mate.fq"; done
done
bwa index -p "$scratch/index" "$out/ref.fa" 2> "$scratch/log"
bwa mem -t 2 -v 1 -R '@RG\tID:semireal\tSM:sample\tPL:ILLUMINA' "$scratch/index" "$scratch/1.fq" "$scratch/2.fq" |
    samtools sort -o "$out/reads.bam" -
samtools index "$out/reads.bam"
