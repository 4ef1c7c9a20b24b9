#!/usr/bin/env bash
# Builds the GPU kernels, counts their instructions, checks them against the CPU on fresh random pairs, and times them:
# one command for a machine with a GPU. Where there is none it checks and says so.
#   bench/align_gpu.sh [BUILD_DIR] [-- arguments of spillway-bench-align-gpu]
# On a GPU the tests of the device run first, with the caller's where htslib is there; with CHECK=1 also under
# compute-sanitizer, which must then be on the PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/gpu
if [ $# -gt 0 ] && [ "$1" != -- ]; then
    build=$1
    shift
fi
[ "${1:-}" = -- ] && shift

if [ "${CHECK:-0}" = 1 ] && ! command -v compute-sanitizer > /dev/null; then
    echo "CHECK=1: no compute-sanitizer on the PATH (it comes with the CUDA toolkit); put it there or leave CHECK out" >&2
    exit 1
fi
cuda=AUTO
command -v nvidia-smi > /dev/null && nvidia-smi -L > /dev/null 2>&1 && cuda=ON
mkdir -p "$build"
quietly() { "$@" > "$build/step.log" 2>&1 || { cat "$build/step.log" >&2; echo "FAILED: $*" >&2; exit 1; }; }
quietly cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DSPILLWAY_CUDA=$cuda
quietly cmake --build "$build" -j "$(nproc)" --target spillway-bench-align-gpu gpu_test

if [ -f "$build/gpu/kernels.o" ]; then
    python3 tests/gpu/ptxas_test.py "$build/gpu/ptxas.txt"
    # The ceiling is reckoned from what was compiled here.
    if python3 bench/sass_count.py "$build/gpu/kernels.o" 90 > "$build/instructions.txt"; then
        set -- --instructions "$build/instructions.txt" "$@"
    else
        [ $? = 77 ]
    fi
    cat "$build/instructions.txt"
fi
if [ "$cuda" = ON ]; then
    "$build/tests/gpu/gpu_test" "CUDA devices*"
    if [ -d "$build/tests/caller" ]; then
        quietly cmake --build "$build" -j "$(nproc)" --target caller_test
        "$build/tests/caller/caller_test" "the VCF is the same on the CUDA devices*"
    else
        echo "NOT CHECKED: the caller's VCF, for want of htslib"
    fi
    if [ "${CHECK:-0}" = 1 ]; then
        for tool in memcheck racecheck initcheck synccheck; do
            compute-sanitizer --error-exitcode 1 --tool "$tool" "$build/tests/gpu/gpu_test" "CUDA devices*"
        done
    fi
    mhz=$(nvidia-smi --query-gpu=clocks.max.sm --format=csv,noheader,nounits | head -1)
    set -- --mhz "$mhz" "$@"
fi
exec "$build/bench/spillway-bench-align-gpu" "$@"
