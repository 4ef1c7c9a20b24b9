#!/usr/bin/env python3
"""Scores calls against truth: prints TP, FP, FN, precision, recall and F1 for SNVs, indels and all.

    score.py CALLS.vcf[.gz] TRUTH.vcf[.gz] REF.fa [REGIONS.bed] [--min-quality 20] [--list]

Two records that spell one sequence differently are equal. Records that lie near each other form a group; a group is right when
some phasing of the calls and some phasing of the truth give the same two haplotypes. In a group that is not, records that agree
in place, alleles and genotype are found, and of the others the fewest without which the haplotypes agree are FP and FN; so a
wrong genotype is one of each. Calls that failed a filter or fall below the quality are left out, as are records outside the
regions. --list prints each error. Exit 2 on bad input.
"""
import argparse
import bisect
import gzip
import itertools
import sys

NEAR = 50  # Bases between records that may be spellings of one change: beyond the reach of most repeats.
MOST_HETS = 10  # Phasings are tried up to 2^9 a side; groups with more are compared record by record.
MOST_SEARCHED = 8  # Records of a group among which the wrong ones are sought.


def open_text(path):
    with open(path, "rb") as file:
        magic = file.read(2)
    return gzip.open(path, "rt") if magic == b"\x1f\x8b" else open(path)


def read_fasta(path):
    contigs, parts = {}, None
    with open_text(path) as file:
        for line in file:
            if line.startswith(">"):
                parts = contigs.setdefault(line[1:].split()[0], [])
            else:
                parts.append(line.strip().upper())
    return {name: "".join(parts) for name, parts in contigs.items()}


def read_regions(path):
    """Contig -> sorted [begin, end), or None for everywhere."""
    if path is None:
        return None
    regions = {}
    with open_text(path) as file:
        for line in file:
            if line.strip() and not line.startswith(("#", "track", "browser")):
                contig, begin, end = line.split()[:3]
                regions.setdefault(contig, []).append((int(begin), int(end)))
    return {contig: sorted(each) for contig, each in regions.items()}


def inside(regions, contig, position):
    if regions is None:
        return True
    each = regions.get(contig, [])
    at = bisect.bisect_right(each, (position, sys.maxsize)) - 1
    return at >= 0 and position < each[at][1]


def trim(position, ref, alt):
    while ref and alt and ref[-1] == alt[-1]:
        ref, alt = ref[:-1], alt[:-1]
    while ref and alt and ref[0] == alt[0]:
        position, ref, alt = position + 1, ref[1:], alt[1:]
    return position, ref, alt


class Record:
    """One VCF record of one sample; its two alleles are trimmed (position, ref, alt), or None for the reference."""

    def __init__(self, contig, position, alleles, genotype, line):
        self.contig, self.line = contig, line
        self.alleles = tuple(trim(position, alleles[0], alleles[i]) if i else None for i in genotype)
        real = [a for a in self.alleles if a]
        self.begin = min(a[0] for a in real)
        self.end = max(a[0] + len(a[1]) for a in real)
        self.kind = "INDEL" if any(len(a[1]) != len(a[2]) for a in real) else "SNV"
        self.identity = tuple(sorted(map(repr, self.alleles)))


def read_records(path, regions, min_quality=None):
    records = []
    with open_text(path) as file:
        for line in file:
            if line.startswith("#"):
                continue
            fields = line.rstrip("\n").split("\t")
            contig, position, ref, alt = fields[0], int(fields[1]) - 1, fields[3].upper(), fields[4].upper()
            if not inside(regions, contig, position):
                continue
            if min_quality is not None:
                if fields[6] not in ("PASS", ".") or fields[5] == "." or float(fields[5]) < min_quality:
                    continue
            sample = dict(zip(fields[8].split(":"), fields[9].split(":")))
            genotype = sample["GT"].replace("|", "/").split("/")
            if "." in genotype:
                continue
            genotype = [int(i) for i in genotype] * (2 if len(genotype) == 1 else 1)
            alleles = [ref] + alt.split(",")
            if any(genotype) and not any(alleles[i].startswith(("*", "<")) for i in genotype):
                records.append(Record(contig, position, alleles, genotype, "\t".join(fields[:5]) + "\t" + sample["GT"]))
    return records


def groups(calls, truth):
    """Lists of (calls, truth) that lie within NEAR of each other."""
    both = sorted([(r, 0) for r in calls] + [(r, 1) for r in truth], key=lambda each: (each[0].contig, each[0].begin))
    group, contig, end = ([], []), None, 0
    for record, side in both:
        if record.contig != contig or record.begin > end + NEAR:
            if contig is not None:
                yield group
            group, contig, end = ([], []), record.contig, record.end
        group[side].append(record)
        end = max(end, record.end)
    if contig is not None:
        yield group


def haplotype(reference, begin, end, alleles):
    """The sequence with the alleles put in, or None if two of them overlap."""
    parts, at = [], begin
    for position, ref, alt in sorted(set(alleles)):
        if position < at:
            return None
        parts += [reference[at:position], alt]
        at = position + len(ref)
    return "".join(parts) + reference[at:end]


def diplotypes(reference, begin, end, records):
    """Every pair of haplotypes that some phasing of the records gives."""
    hets = [r for r in records if r.alleles[0] != r.alleles[1]]
    pairs = set()
    for flips in itertools.product((0, 1), repeat=max(len(hets) - 1, 0)):
        flip = dict(zip(map(id, hets), (0,) + flips))
        sides = [[r.alleles[side ^ flip.get(id(r), 0)] for r in records] for side in (0, 1)]
        spelled = [haplotype(reference, begin, end, [a for a in side if a]) for side in sides]
        if None not in spelled:
            pairs.add(tuple(sorted(spelled)))
    return pairs


def same_haplotypes(reference, calls, truth):
    if any(sum(r.alleles[0] != r.alleles[1] for r in side) > MOST_HETS for side in (calls, truth)):
        return False
    begin = max(0, min((r.begin for r in calls + truth), default=1) - 1)
    end = max((r.end for r in calls + truth), default=0) + 1
    return bool(diplotypes(reference, begin, end, calls) & diplotypes(reference, begin, end, truth))


def compare(reference, calls, truth):
    """(false calls, missed truth) of one group."""
    if same_haplotypes(reference, calls, truth):
        return [], []
    false_calls, missed = [], list(truth)
    for call in calls:
        twin = next((t for t in missed if t.identity == call.identity), None)
        if twin:
            missed.remove(twin)
        else:
            false_calls.append(call)
    # Among what is left, spellings of one change may stand beside records that are wrong: the fewest are wrong.
    left = false_calls + missed
    if len(left) <= MOST_SEARCHED:
        for count in range(1, len(left)):
            for wrong in itertools.combinations(left, count):
                kept = [[r for r in side if r not in wrong] for side in (false_calls, missed)]
                if same_haplotypes(reference, *kept):
                    return [c for c in false_calls if c in wrong], [t for t in missed if t in wrong]
    return false_calls, missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("calls")
    parser.add_argument("truth")
    parser.add_argument("reference")
    parser.add_argument("regions", nargs="?")
    parser.add_argument("--min-quality", type=float, default=20.0)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    try:
        reference = read_fasta(options.reference)
        regions = read_regions(options.regions)
        calls = read_records(options.calls, regions, options.min_quality)
        truth = read_records(options.truth, regions)
    except (OSError, ValueError, KeyError, IndexError, AttributeError) as error:
        sys.stderr.write(f"score.py: unusable input: {error!r}\n")
        sys.exit(2)
    false_calls, missed = [], []
    for some_calls, some_truth in groups(calls, truth):
        wrong, lost = compare(reference[(some_calls + some_truth)[0].contig], some_calls, some_truth)
        false_calls += wrong
        missed += lost
    for kind in ("SNV", "INDEL", "ALL"):
        made, false, real, lost = (sum(kind in ("ALL", r.kind) for r in each) for each in (calls, false_calls, truth, missed))
        precision = (made - false) / made if made else 0.0
        recall = (real - lost) / real if real else 0.0
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        print(f"{kind:<5}  TP {real - lost}  FP {false}  FN {lost}  "
              f"precision {precision:.4f}  recall {recall:.4f}  F1 {f1:.4f}")
    if options.list:
        print("\n".join(["FP\t" + r.line for r in false_calls] + ["FN\t" + r.line for r in missed]))


main()
