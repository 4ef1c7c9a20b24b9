#!/bin/sh
# Checks one model completely:  check.sh model.pml pass|fail [-DBROKEN_FORM]
# fail: the broken form must be found out, or the model proves nothing. Exit 77: Spin or the C compiler is not installed.
set -eu

for tool in spin "${CC:-cc}"; do
    if ! command -v "$tool" >/dev/null; then
        echo "skipped: $tool is not installed (apt-get install spin gcc)"
        exit 77
    fi
done

model=$(realpath "$1")
expected=$2
broken_form=${3:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# shellcheck disable=SC2086 # no broken form is no argument
spin -a $broken_form "$model" >spin.log || { cat spin.log; exit 1; }
"${CC:-cc}" -O0 -w -DSAFETY -DCOLLAPSE -DMEMLIM=1024 -o pan pan.c
status=0
./pan -m100000 >pan.log 2>&1 || status=$?
sed -nE '/errors:|pan:|states, stored|depth reached/p' pan.log

if grep -qE "max search depth too small|out of memory|Search not completed" pan.log && [ "$expected" = pass ]; then
    echo "the model was not explored completely"
    exit 1
fi
case $expected in
pass) { [ "$status" = 0 ] && grep -q "errors: 0" pan.log; } || { echo "the protocol fails:"; spin -t -p $broken_form "$model" | tail -60; exit 1; } ;;
fail)
    # An error of the protocol, not of the model.
    grep -qE "pan:.*(invalid end state|assertion violated)" pan.log || { echo "the broken form was not found out"; exit 1; }
    ;;
esac
