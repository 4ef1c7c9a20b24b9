#!/usr/bin/env python3
"""Holds what ptxas said of the kernels to what they were designed for.

    ptxas_test.py REPORT [NVCC]

No kernel spills on any architecture, and none takes more registers than let the blocks of its shape be on a
multiprocessor at once (65,536 registers, 128 threads a block). The architectures are those of ARCHITECTURES that NVCC
knows. Without a report it is skipped (77).
"""
import re
import subprocess
import sys

ARCHITECTURES = {80, 90, 100}

# Blocks on a multiprocessor by columns a thread: as kernels.cu asks.
BLOCKS = {10: 6, 20: 4, 32: 3}
BLOCKS_ON_HOPPER = {10: 6, 20: 5, 32: 3}
THREADS = 128
REGISTERS = 65536

if len(sys.argv) < 2 or not sys.argv[1]:
    print("SKIPPED: this build has no CUDA kernels (SPILLWAY_CUDA)")
    sys.exit(77)

kernels, name = [], None
for line in open(sys.argv[1]):
    if found := re.search(r"Compiling entry function '(\S+)' for 'sm_(\d+)'", line):
        # _ZN...11sweep_tilesILj20ELb1ELb0EEE...: columns, packed, local
        name, architecture = found.group(1), int(found.group(2))
    elif found := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
        stack = [int(number) for number in found.groups()]
    elif (found := re.search(r"Used (\d+) registers", line)) and name:
        kernels.append((name, architecture, stack, int(found.group(1))))
        name = None

failed = 0
sweeps = set()
for name, architecture, stack, registers in kernels:
    shape = re.search(r"sweep_tilesILj(\d+)ELb([01])ELb([01])E", name)
    label = "walk"
    limit = REGISTERS // THREADS
    if shape:
        columns, packed, local = (int(number) for number in shape.groups())
        label = f"sweep of {columns} columns, {'packed' if packed else 'wide'}, {'local' if local else 'query'}"
        limit = REGISTERS // THREADS // (BLOCKS_ON_HOPPER if architecture == 90 else BLOCKS)[columns]
        sweeps.add((architecture, columns, packed, local))
    right = stack == [0, 0, 0] and registers <= limit
    failed += not right
    print(f"{'ok' if right else 'FAILED'}: sm_{architecture} {label}: {registers} registers (at most {limit}), "
          f"stack {stack[0]}, spill stores {stack[1]}, spill loads {stack[2]}")
architectures = {architecture for architecture, *_ in sweeps}
if len(sweeps) != 8 * len(architectures) or not architectures:
    print(f"FAILED: {len(sweeps)} sweeps for {sorted(architectures)}: 8 each are compiled")
    failed += 1
if len(sys.argv) > 2:
    listed = subprocess.run([sys.argv[2], "--list-gpu-code"], capture_output=True, text=True, check=True).stdout
    wanted = ARCHITECTURES & {int(number) for number in re.findall(r"sm_(\d+)\b", listed)}
    if architectures != wanted:
        print(f"FAILED: compiled for {sorted(architectures)}, not for {sorted(wanted)}, which nvcc knows")
        failed += 1
sys.exit(1 if failed else 0)
