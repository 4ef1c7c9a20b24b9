#!/usr/bin/env bash
# Installs what is missing of cmake/debian-packages.txt for the given uses (build, test, check, bench).
# As root or through sudo; else prints the one apt line and exits 3. On a system without dpkg it only says where the list is.
set -euo pipefail
list=$(cd "$(dirname "$0")" && pwd)/debian-packages.txt

if ! command -v dpkg-query > /dev/null; then
    echo "This is not a Debian system: what the build needs is listed in $list" >&2
    exit 0
fi

missing=()
for use in "$@"; do
    while read -r package; do
        status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2> /dev/null || true)
        [ "$status" = installed ] || missing+=("$package")
    done < <(awk -v use="$use" '$1 == use { print $2 }' "$list")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" = 0 ]; then
    as_root=()
elif command -v sudo > /dev/null && sudo -n true 2> /dev/null; then
    as_root=(sudo)
elif command -v sudo > /dev/null && [ -t 0 ] && sudo -v; then
    as_root=(sudo)
else
    echo "Missing packages. As root, run:" >&2
    echo "    apt-get install --no-install-recommends -y ${missing[*]}" >&2
    exit 3
fi
echo "Installing ${missing[*]}" >&2
"${as_root[@]}" apt-get update -qq >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --no-install-recommends -y -qq "${missing[@]}" > /dev/null
