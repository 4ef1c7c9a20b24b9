#!/usr/bin/env python3
"""Measures the table of the README's first screen and writes it there.

    bench/readme_table.py [DIRECTORY]   with ref.fa, reads.bam, truth.vcf.gz and regions.bed, as bench/caller.sh takes it;
                                        without it spillway-simulate makes one, by its defaults

Runs spillway-bench-scheduler and bench/caller.sh; both print their tables here, too.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- bench/readme_table.py writes from here -->", "<!-- to here -->"


def rows(text):
    """The cells of each line of Markdown tables."""
    return [[cell.strip().strip("*") for cell in line.strip().strip("|").split("|")]
            for line in text.splitlines() if line.startswith("|")]


def run(*command):
    print("$", *command, flush=True)
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    print(text, flush=True)
    return text


def main():
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as place:
        directory = sys.argv[1].rstrip("/") if len(sys.argv) == 2 else simulated(place)
        write_table(directory)


def simulated(place):
    directory = place + "/what spillway-simulate makes"
    run(str(TOP / "build/release/examples/simulate/spillway-simulate"), "--out", directory)
    return directory


def write_table(directory):
    scheduler = run(str(TOP / "build/release/bench/spillway-bench-scheduler"))
    calling = run(str(TOP / "bench/caller.sh"), directory)

    empty, working = [dict((row[0], row) for row in rows(part))
                      for part in re.split(r"(?=^\d+ candidates, three stages)", scheduler, flags=re.M)[1:3]]
    short = {"oneTBB parallel_pipeline": "parallel_pipeline", "oneTBB flow graph": "flow graph",
             "pool with mutex and condition variable": "mutex pool", "shards, one buffer each, semaphores": "shards"}
    others = lambda table, column: ", ".join(f"{name} {table[key][column]}" for key, name in short.items() if key in table)
    callers = [row for row in rows(calling) if row[0] in ("spillway", "bcftools", "freebayes")]
    scores = {row[1]: row[4] for row in rows(calling) if len(row) == 6 and row[0] == directory + "/reads.bam"}
    cpu = {row[0]: row[2] for row in callers}
    rivals = [name for name in cpu if name != "spillway"]
    lines = [
        "| | Spillway | others, in the same run |",
        "|---|---:|---|",
        f"| ns to schedule a candidate, no work | {empty['Spillway'][1]} | {others(empty, 1)} |",
        f"| the same with 5 us of work, over a loop split beforehand | "
        f"{float(working['Spillway'][1]) / float(working['bare loop, split beforehand'][1]):.2f} | "
        + ", ".join(f"{name} {float(working[key][1]) / float(working['bare loop, split beforehand'][1]):.2f}"
                    for key, name in short.items() if key in working) + " |",
        f"| CPU seconds to call {pathlib.Path(directory).name} | {cpu['spillway']} | "
        + ", ".join(f"{name} {cpu[name]}" for name in rivals) + " |",
        f"| F1 of these calls | {scores['spillway']} | " + ", ".join(f"{name} {scores[name]}" for name in rivals) + " |",
    ]
    readme = TOP / "README.md"
    text = readme.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    readme.write_text(text[:begin] + "\n" + "\n".join(lines) + "\n" + text[end:])


main()
