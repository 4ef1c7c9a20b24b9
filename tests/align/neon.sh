#!/usr/bin/env bash
# Builds the alignment for aarch64 and holds its NEON kernels to the oracle under qemu: neon.sh [PAIRS=1000]
# About a minute. Exits 3 with the packages that are missing.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
missing=()
command -v aarch64-linux-gnu-g++ > /dev/null || missing+=(g++-aarch64-linux-gnu)
command -v qemu-aarch64 > /dev/null || missing+=(qemu-user)
[ ${#missing[@]} -eq 0 ] || { echo "apt-get install ${missing[*]}" >&2; exit 3; }

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# Highway's headers alone: the others beside them are this machine's.
hwy=$(dirname "$(echo '#include <hwy/highway.h>' | g++ -x c++ -std=c++20 -M - | tr ' ' '\n' | grep -m 1 'hwy/highway.h$')")
mkdir "$out/include" && ln -s "$hwy" "$out/include/hwy"
export out top
printf '%s\0' "$top"/lib/align/*.cpp "$top"/lib/base/error.cpp "$top"/tests/align/neon_check.cpp |
    xargs -0 -P "$(nproc)" -I{} bash -c 'aarch64-linux-gnu-g++ -std=c++20 -O1 -I"$out/include" -I"$top/lib" \
        -I"$top/include" -I"$top/tests" -c "$1" -o "$out/$(basename "$1").o"' _ {}
aarch64-linux-gnu-g++ -static "$out"/*.o -o "$out/check"
qemu-aarch64 "$out/check" "${1:-1000}"
