#!/usr/bin/env bash
# Runs a program ten times and compares what it prints.
#   same_output.sh EXPECTED PROGRAM
set -euo pipefail
for _ in {1..10}; do "$2" | diff "$1" -; done
