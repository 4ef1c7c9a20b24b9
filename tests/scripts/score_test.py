#!/usr/bin/env python3
"""Checks examples/score.py on records that read like the biology. Usage: score_test.py path/to/score.py"""
import subprocess
import sys
import tempfile
from pathlib import Path

#            0         1         2         3         4         5         6         7
#            0123456789012345678901234567890123456789012345678901234567890123456789012345678
REFERENCE = "ACGTTGCATGACACACACATTGGCTAAGCTTTTTTGCATCGATCGGATTACAGATTACAGGCTAGCTAGGATCCGATAC"


def record(position, ref, alt, genotype, quality=50, filters="PASS"):
    assert REFERENCE[position - 1:].startswith(ref), (position, ref)
    return f"chr1\t{position}\t.\t{ref}\t{alt}\t{quality}\t{filters}\t.\tGT\t{genotype}\n"


def score(calls, truth, bed=None):
    """The counts of the line ALL: (TP, FP, FN)."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        header = "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tsample\n"
        (folder / "ref.fa").write_text(f">chr1 a description\n{REFERENCE[:40]}\n{REFERENCE[40:].lower()}\n")
        (folder / "calls.vcf").write_text(header + "".join(calls))
        (folder / "truth.vcf").write_text(header + "".join(truth))
        command = [sys.executable, sys.argv[1], folder / "calls.vcf", folder / "truth.vcf", folder / "ref.fa"]
        if bed is not None:
            (folder / "regions.bed").write_text(bed)
            command.append(folder / "regions.bed")
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        fields = printed.splitlines()[2].split()
        assert fields[0] == "ALL"
        return int(fields[2]), int(fields[4]), int(fields[6])


SNV = record(5, "T", "A", "0/1")
CASES = {
    "equal records are found": ([SNV], [SNV], (1, 0, 0)),
    "a phased genotype equals an unphased one": ([SNV], [record(5, "T", "A", "1|0")], (1, 0, 0)),
    "a wrong genotype is one false call and one missed": ([SNV], [record(5, "T", "A", "1/1")], (0, 1, 1)),
    "a wrong allele is one false call and one missed": ([SNV], [record(5, "T", "G", "0/1")], (0, 1, 1)),
    "a missing call is missed": ([], [SNV], (0, 0, 1)),
    "a call too many is false": ([SNV], [], (0, 1, 0)),
    "a deletion in a repeat is found wherever it is placed":
        ([record(17, "ACA", "A", "1/1")], [record(10, "GAC", "G", "1/1")], (1, 0, 0)),
    "two bases changed in one record equal two records":
        ([record(5, "TG", "AA", "1/1")], [record(5, "T", "A", "1/1"), record(6, "G", "A", "1/1")], (2, 0, 0)),
    "two heterozygous changes on different haplotypes equal one record with two alleles":
        ([record(5, "T", "A,C", "1/2")], [record(5, "T", "A", "0/1"), record(5, "T", "C", "0/1")], (2, 0, 0)),
    "a call of low quality is left out": ([record(5, "T", "A", "0/1", quality=19)], [], (0, 0, 0)),
    "a call that failed a filter is left out": ([record(5, "T", "A", "0/1", filters="LowQual")], [], (0, 0, 0)),
    "a call without a genotype is left out": ([record(5, "T", "A", "./.")], [], (0, 0, 0)),
    "a respelled deletion is found beside a false call":
        ([record(5, "T", "A", "0/1"), record(17, "ACA", "A", "1/1")], [record(10, "GAC", "G", "1/1")], (1, 1, 0)),
}

failures = []
for what, (calls, truth, wanted) in CASES.items():
    got = score(calls, truth)
    if got != wanted:
        failures.append(f"{what}: TP, FP, FN are {got}, not {wanted}")
if score([SNV], [SNV, record(70, "G", "A", "0/1")], bed="chr1\t0\t20\n") != (1, 0, 0):
    failures.append("records outside the regions are left out")
if score([SNV], [SNV], bed="chr1\t5\t20\n") != (0, 0, 0):
    failures.append("a region begins after the base at its 0-based begin")
print("\n".join(failures) if failures else f"{len(CASES) + 2} cases")
sys.exit(1 if failures else 0)
