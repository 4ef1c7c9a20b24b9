#!/usr/bin/env python3
"""Counts the instructions of the lane kernels' inner loops, as compiled, and says what bound they set.

    bench/align_count.py build/lib/libspillway_align.a

A loop makes four cells of a register. Two bounds are printed, in cells of a lane a cycle: AVX2 with four vector units
(AMD Zen 2 and later; blends, shuffles, and saturation on two of them), and AVX-512 with two, of which one makes maxima
(Intel). 16-bit lanes; 8-bit ones are twice as many.

Exit 1 unless each of the eight loops is there and takes as many vector operations a cell as lib/align/lanes.hpp says;
77 where there is no objdump.
"""
import re
import shutil
import subprocess
import sys

CELLS = 4
STATED = {
    f"{isa}, {target}, {ends}": operations + more
    for isa in ("AVX2", "AVX-512")
    for target, operations in (("one target", 6), ("own targets", 8))
    for ends, more in (("no ends", 0), ("all ends", 2))
}
ONE_OF_TWO = ("vpmax", "vpmin")  # 512 bits, Intel
TWO_OF_FOUR = ("vpblendvb", "vpshufb", "vpadds", "vpsubs")


def functions(library):
    text = subprocess.run(["objdump", "-d", "-C", "--no-show-raw-insn", library], capture_output=True, text=True, check=True).stdout
    name, body = None, []
    for line in text.splitlines():
        if line.endswith(">:"):
            name, body = line.split("<", 1)[1][:-2], []
        elif not line.strip() and name:
            yield name, body
            name = None
        elif match := re.match(r"\s*([0-9a-f]+):\s+(\S+)\s*(.*)", line):
            body.append((int(match[1], 16), match[2], match[3]))


def inner_loop(body):
    """The loop with the most maxima among those without a loop inside."""
    at = {address: k for k, (address, _, _) in enumerate(body)}
    loops = []
    for k, (_, operation, operands) in enumerate(body):
        target = re.match(r"([0-9a-f]+)", operands)
        if operation.startswith("j") and target and at.get(int(target[1], 16), k) < k:
            loops.append(body[at[int(target[1], 16)] : k + 1])
    return max(loops, key=lambda loop: (sum(o.startswith("vpmax") for _, o, _ in loop), -len(loop)), default=[])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if not shutil.which("objdump"):
        print("SKIPPED: no objdump (package binutils) to look at the compiled loops with")
        sys.exit(77)
    found = {}
    print("| kernel | instructions a cell | vector operations a cell | cells of a lane a cycle at most |\n|---|---:|---:|---:|")
    for name, body in functions(sys.argv[1]):
        form = re.search(r"N_(AVX2|AVX3)::.*sweep<.*<(short|signed char),.*?::(\w+)Pairs<.*?(true|false), .*Ends\)(\d)", name)
        if not form:
            continue
        isa, lane, pairs, _, ends = form.groups()
        begins = re.search(r"(true|false), \(.*Ends\)", name)[1]
        if begins == "true" or ends == "2" or lane == "signed char" or re.search(r"Compared.*?, true>, ", name):
            continue
        loop = inner_loop(body)
        vector = [o for _, o, operands in loop if o.startswith("vp") and not o.startswith("vpbroadcast")]
        if isa == "AVX2":
            cycles = max(len(vector) / 4, sum(o.startswith(TWO_OF_FOUR) for o in vector) / 2)
            lanes = 16
        else:
            cycles = max(len(vector) / 2, sum(o.startswith(ONE_OF_TWO) for o in vector))
            lanes = 32
        what = f"{isa.replace('AVX3', 'AVX-512')}, {'one target' if pairs == 'Profiled' else 'own targets'}, {'no' if ends == '0' else 'all'} ends"
        found[what] = len(vector) / CELLS
        print(f"| {what} | {len(loop) / CELLS:.2f} | {len(vector) / CELLS:.2f} | {lanes * CELLS / cycles:.1f} |")
    for what in sorted(STATED.keys() | found.keys()):
        if found.get(what) != STATED.get(what):
            print(f"WRONG: {what}: {found.get(what)} vector operations a cell, stated are {STATED.get(what)}")
    sys.exit(found != STATED)


if __name__ == "__main__":
    main()
