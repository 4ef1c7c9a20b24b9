#!/usr/bin/env python3
"""Checks every #include against the house order of the project.

    check_includes.py SOURCE_DIR

Rooms are the folders of lib/ (and gpu/); a public header belongs to the room of its name unless listed below. A room
includes itself and the rooms below it. Public headers include the standard library and each other, nothing else.
examples/ and bench/ see public headers only, never lib/. Prints each breach as file:line; exit 1 if there is any.
"""
import re
import sys
from pathlib import Path

# What each room may include, beside itself; what those may include comes with them.
BELOW = {
    "base": [],
    "telemetry": ["base"],
    "region": ["telemetry"],
    "governor": ["telemetry"],
    "spill": ["telemetry"],
    "directory": ["region", "spill"],  # a slot names its payload and its place on disk
    "pool": ["governor", "directory"],
    "router": ["pool"],
    "pipeline": ["router"],
    "align": ["base"],
    "gpu": ["align"],
    "hts": ["base"],
    "tbb": ["pipeline"],  # one public header, for whoever lends the threads of an arena
}
# Public headers whose name is not a room's.
ROOM_OF_HEADER = {
    **dict.fromkeys(["aggregate", "candidate", "codec", "device", "error", "generator", "stage"], "base"),
    "profile": "hts",
    "routing": "telemetry",
    "journal": "spill",
    **dict.fromkeys(["device_form", "options", "pending", "resources", "run", "typed"], "pipeline"),
}
# The third-party headers each room may include; no other room and no public header may.
THIRD_PARTY = {
    "concurrentqueue/": ["directory", "pool", "router", "pipeline"],
    "xxhash.h": ["spill"],
    "lz4.h": ["spill"],
    "hwy/": ["align"],
    "immintrin.h": ["align"],
    "arm_neon.h": ["align"],
    "htslib/": ["hts"],
    "cuda": ["gpu"],
    "tbb/": ["tbb"],
}
# Rooms whose public header is there to join us with one third party.
JOINING = ["tbb"]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def closure(room):
    seen, todo = set(), [room]
    while todo:
        at = todo.pop()
        if at not in seen:
            seen.add(at)
            todo += BELOW[at]
    return seen


def room_of(path, root):
    """The room of a file or of an include as written ("spillway/pool.hpp", "pool/seat.hpp"), or None."""
    parts = path.relative_to(root).parts if root else path.parts
    if parts[:2] == ("include", "spillway"):
        parts = parts[1:]
    if parts[0] == "spillway":
        stem = Path(parts[-1]).stem
        return ROOM_OF_HEADER.get(stem, stem)
    if parts[0] == "lib":
        parts = parts[1:]
    return parts[0] if len(parts) > 1 or parts[0] == "gpu" else None


def is_standard(name):
    """<vector> yes; <unistd.h>, <sys/mman.h> and <htslib/sam.h> no."""
    return re.fullmatch(r"[a-z_0-9]+", name) is not None


def breaches(root):
    files = [f for top in ("include", "lib", "gpu", "examples", "bench") for f in (root / top).rglob("*")
             if f.suffix in (".hpp", ".h", ".cpp", ".cu", ".cuh")]
    if len(files) < 10:
        yield f"{root}: only {len(files)} source files found"
    for file in sorted(files):
        top = file.relative_to(root).parts[0]
        public = top == "include"
        room = room_of(file, root) if top in ("include", "lib", "gpu") else None
        if room is not None and room not in BELOW:
            yield f"{file.relative_to(root)}:1: no room '{room}': name its room in {Path(__file__).name}"
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            quoted, name = found.group(1) == '"', found.group(2)
            here = f"{file.relative_to(root)}:{number}: "
            target = room_of(Path(name), None) if "/" in name else None
            if room is None:
                # A folder of examples/ or bench/ may bear a room's name; what is found there is their own.
                own = (file.parent / name).is_file() and (file.parent / name).resolve().is_relative_to(root / top)
                if not own and not name.startswith("spillway/") and (target in BELOW or quoted and ".." in name):
                    yield here + f"{name} is not a public header"
                continue
            foreign = [rooms for prefix, rooms in THIRD_PARTY.items() if name.startswith(prefix)]
            if foreign and room in JOINING and room in foreign[0]:
                continue
            if foreign and (public or room not in foreign[0]):
                yield here + f"{name} does not belong in {'a public header' if public else room}"
            elif target in BELOW and target not in closure(room):
                yield here + f"{room} may not know {target}"
            elif target not in BELOW and name.startswith("spillway/"):
                yield here + f"no room for {name}"
            elif public and not name.startswith("spillway/") and (quoted or not is_standard(name)):
                yield here + f"a public header may not include {name}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = list(breaches(Path(sys.argv[1]).resolve()))
    print("\n".join(found) if found else "every include follows the house order")
    sys.exit(1 if found else 0)


main()
