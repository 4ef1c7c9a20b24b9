#!/usr/bin/env python3
"""Checks that README.md shows what stands in the tree: its C++ is the minimal example's, its output is that one's output, and
every path it names exists. Usage: readme_test.py SOURCE_DIR"""
import re
import sys
from pathlib import Path

root = Path(sys.argv[1])
readme = (root / "README.md").read_text()
failures = []


def blocks(language):
    found = re.findall(rf"^```{language}\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    if not found:
        failures.append(f"README.md has no {language} block")
    return found


example = (root / "examples/minimal/main.cpp").read_text()
failures += [f"not in examples/minimal/main.cpp:\n{block}" for block in blocks("cpp") if block not in example]
output = (root / "tests/package/minimal.txt").read_text()
failures += [f"not the output of the minimal example:\n{block}" for block in blocks("output") if block != output]
prose = re.sub(r"^```cpp.*?^```", "", readme, flags=re.MULTILINE | re.DOTALL)
named = re.findall(r"\]\(([^)#:]+)\)", prose) + re.findall(r"\b(?:examples|tests|bench|\.ci)/[\w./-]*\w", prose)
for path in named:
    if not path.startswith("bench/spillway-") and not (root / path).exists():
        failures.append(f"README.md names {path}, which does not exist")
print("\n".join(failures) if failures else f"README.md: {len(named)} paths")
sys.exit(1 if failures else 0)
