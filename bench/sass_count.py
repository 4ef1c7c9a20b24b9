#!/usr/bin/env python3
"""Counts the instructions of the sweep's inner loop in compiled kernels.

    sass_count.py OBJECT [SM [CUOBJDUMP]]          build/release/gpu/kernels.o 90

Prints, for each kernel: columns, kind, instructions of a row, those of the integer pipe, and both for a cell of a pack.
The inner loop is the one with the most max instructions. Exit 77 where there is no cuobjdump.
"""
import re
import shutil
import subprocess
import sys
from collections import Counter

# Of Hopper's opcodes those that the integer pipe does, 16 lanes a cycle for each quarter of a multiprocessor. IMAD and
# its kinds (moves, shifts) are the multiply pipe's; SHFL, LDS and LDG go to memory, U* to the uniform pipe, BRA to none.
INTEGER = {"VIADDMNMX", "VIMNMX", "VIMNMX3", "VIADD", "PRMT", "IADD3", "LEA", "LOP3", "SEL", "ISETP", "SHF", "MOV", "IMNMX"}

if len(sys.argv) < 2:
    sys.exit(__doc__)
architecture = sys.argv[2] if len(sys.argv) > 2 else "90"
tool = sys.argv[3] if len(sys.argv) > 3 else shutil.which("cuobjdump") or "/usr/local/cuda/bin/cuobjdump"
try:
    text = subprocess.run([tool, "-sass", "-arch", f"sm_{architecture}", sys.argv[1]], capture_output=True, text=True,
                          check=True).stdout
except FileNotFoundError:
    print("SKIPPED: no cuobjdump")
    sys.exit(77)

functions, body = {}, []
for line in text.splitlines():
    if found := re.search(r"Function : (\S+)", line):
        body = functions.setdefault(found.group(1), [])
    elif found := re.match(r"\s+/\*([0-9a-f]{4,5})\*/\s+(.*?);", line):
        body.append((int(found.group(1), 16), found.group(2)))

print(f"{'sm_' + architecture:<8} {'kernel':<16} {'a row':>6} {'integer':>8} {'a cell':>8} {'integer':>8}")
for name, code in sorted(functions.items()):
    shape = re.search(r"sweep_tilesILj(\d+)ELb([01])ELb([01])E", name)
    if not shape:
        continue
    columns, packed, local = (int(number) for number in shape.groups())
    loops = []
    for at, instruction in code:
        target = re.search(r"BRA.*?0x([0-9a-f]+)", instruction)
        if target and int(target.group(1), 16) <= at:
            loops.append([i for a, i in code if int(target.group(1), 16) <= a <= at])
    inner = max(loops, key=lambda loop: sum("MNMX" in i for i in loop))
    count = Counter(re.sub(r"^@!?U?P\d+\s+", "", i).split()[0].split(".")[0] for i in inner)
    integer = sum(number for opcode, number in count.items() if opcode in INTEGER)
    kind = f"{'packed' if packed else 'wide'} {columns} {'local' if local else 'query'}"
    print(f"{'':<8} {kind:<16} {len(inner):>6} {integer:>8} {len(inner) / columns:>8.2f} {integer / columns:>8.2f}")
