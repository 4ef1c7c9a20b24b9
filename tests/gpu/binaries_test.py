#!/usr/bin/env python3
"""Holds what was built to where it must run: on GPUs that are newer than it, and where CUDA is not installed at all.

    binaries_test.py [--kernels OBJECT] PROGRAM...

The kernels' OBJECT has PTX of the newest architecture that it has code for; no PROGRAM needs a library of CUDA at
run time.
"""
import argparse
import re
import struct
import subprocess
import sys

# What nvcc puts into .nv_fatbin: this number, 2 bytes of version, 2 bytes that say how long the header is, 8 bytes of
# size; then entries of 2 bytes of kind, 2 others, 4 bytes of header's size, 8 bytes of size, architecture at byte 28.
FATBIN = struct.pack("<I", 0xBA55ED50)
PTX, CODE = 1, 2


def entries(data):
    at = data.find(FATBIN)
    while at >= 0:
        header, size = struct.unpack_from("<HQ", data, at + 6)
        entry, end = at + header, at + header + size
        while entry < end:
            kind, _, entry_header, entry_size = struct.unpack_from("<HHIQ", data, entry)
            yield kind, struct.unpack_from("<I", data, entry + 28)[0]
            entry += entry_header + entry_size
        at = data.find(FATBIN, end)


parser = argparse.ArgumentParser()
parser.add_argument("--kernels")
parser.add_argument("programs", nargs="+")
given = parser.parse_args()
failed = 0
if given.kernels:
    with open(given.kernels, "rb") as file:
        found = set(entries(file.read()))
    code = {architecture for kind, architecture in found if kind == CODE}
    ptx = {architecture for kind, architecture in found if kind == PTX}
    right = bool(code) and max(code) in ptx
    failed += not right
    print(f"{'ok' if right else 'FAILED'}: code for {sorted(code)}, PTX for {sorted(ptx)}")
for program in given.programs:
    read = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", read)
    right = "libc.so.6" in needed and not any(re.match(r"lib(cuda|nv)", library) for library in needed)
    failed += not right
    print(f"{'ok' if right else 'FAILED'}: {program} needs {' '.join(needed)}")
sys.exit(1 if failed else 0)
