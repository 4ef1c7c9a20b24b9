#!/usr/bin/env bash
# Installs a build into a scratch prefix and uses it as hosts do: through find_package and through pkg-config.
#   check.sh BUILD_DIR SCRATCH_DIR CXX
set -euo pipefail
build=$1 scratch=$2 cxx=$3
here=$(cd "$(dirname "$0")" && pwd)
minimal=$here/../../examples/minimal
fail() { echo "FAILED: $*" >&2; exit 1; }

# expect WHAT WANTED COMMAND...: the command's output is the wanted text.
expect() {
    local what=$1 wanted=$2 got
    shift 2
    got=$("$@") || fail "$what: exit $?"
    [ "$got" = "$wanted" ] || fail "$what printed '$got', not '$wanted'"
    echo "ok: $what"
}

rm -rf "$scratch"
mkdir -p "$scratch"
cmake --install "$build" --prefix "$scratch/prefix" > "$scratch/install.log" || fail "install: see $scratch/install.log"

cmake -S "$here/host" -B "$scratch/cmake" -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$scratch/prefix" \
    -DCMAKE_CXX_COMPILER="$cxx" -DMINIMAL_EXAMPLE="$minimal/main.cpp" > "$scratch/cmake.log" 2>&1 ||
    { cat "$scratch/cmake.log" >&2; fail "find_package"; }
cmake --build "$scratch/cmake" -j2 > "$scratch/build.log" 2>&1 || { cat "$scratch/build.log" >&2; fail "building the host"; }
expect "find_package, spillway::spillway" "$(cat "$here/minimal.txt")" "$scratch/cmake/minimal"
expect "find_package, spillway::align" "32 2-10 8M" "$scratch/cmake/align_only"
if [ -x "$scratch/cmake/on_device" ]; then
    expect "find_package, spillway::gpu" "32 2-10 8M" "$scratch/cmake/on_device"
fi
if [ -x "$scratch/cmake/lent_threads" ]; then
    expect "spillway::tbb lends an arena's threads" "55 10" "$scratch/cmake/lent_threads"
fi
if [ -x "$scratch/cmake/allocator" ]; then
    expect "spillway::jemalloc sets the allocator" "60000 1" "$scratch/cmake/allocator"
    MALLOC_CONF=dirty_decay_ms:7 expect "MALLOC_CONF has the last word" "7 1" "$scratch/cmake/allocator"
fi

# A host without what the scheduler needs takes the alignment alone, and is told what is missing where it wants more.
mkdir -p "$scratch/bare/project" "$scratch/bare/modules"
cat > "$scratch/bare/project/CMakeLists.txt" << EOF
cmake_minimum_required(VERSION 3.25)
project(bare LANGUAGES CXX)
find_package(spillway REQUIRED COMPONENTS \${WANTED})
add_executable(align_only $here/host/align_only.cpp)
target_link_libraries(align_only PRIVATE spillway::align)
EOF
# bare WANTED: configures that project where pkg-config finds no module.
bare() {
    PKG_CONFIG_PATH="" PKG_CONFIG_LIBDIR="$scratch/bare/modules" cmake -S "$scratch/bare/project" -B "$scratch/bare/build" "-DWANTED=$1" \
        -DCMAKE_PREFIX_PATH="$scratch/prefix" -DCMAKE_CXX_COMPILER="$cxx" > "$scratch/bare/log" 2>&1
}
bare align || { cat "$scratch/bare/log" >&2; fail "find_package, align alone"; }
cmake --build "$scratch/bare/build" > "$scratch/bare/log" 2>&1 || { cat "$scratch/bare/log" >&2; fail "building with align alone"; }
expect "find_package without xxHash and LZ4, COMPONENTS align" "32 2-10 8M" "$scratch/bare/build/align_only"
if bare spillway; then fail "a scheduler without xxHash was found"; fi
grep -q "core needs lib" "$scratch/bare/log" || { cat "$scratch/bare/log" >&2; fail "what is missing is not named"; }
echo "ok: what the scheduler lacks is named"

PKG_CONFIG_PATH=$(dirname "$(find "$scratch/prefix" -name spillway.pc)")
export PKG_CONFIG_PATH
# Word splitting of what pkg-config prints is its interface.
# shellcheck disable=SC2046
"$cxx" -std=c++20 -O1 $(pkg-config --cflags spillway) "$minimal/main.cpp" $(pkg-config --libs spillway) -o "$scratch/minimal"
# shellcheck disable=SC2046
"$cxx" -std=c++20 -O1 $(pkg-config --cflags spillway-align) "$here/host/align_only.cpp" $(pkg-config --libs spillway-align) \
    -o "$scratch/align_only"
# shellcheck disable=SC2046
"$cxx" -std=c++20 -O1 $(pkg-config --cflags spillway-gpu spillway) "$here/host/on_device.cpp" \
    $(pkg-config --libs spillway-gpu spillway) -o "$scratch/on_device"
expect "pkg-config spillway-gpu" "32 2-10 8M" "$scratch/on_device"
expect "pkg-config spillway" "$(cat "$here/minimal.txt")" "$scratch/minimal"
expect "pkg-config spillway-align" "32 2-10 8M" "$scratch/align_only"
if pkg-config --exists spillway-hts; then
    # shellcheck disable=SC2046
    "$cxx" -std=c++20 -O1 $(pkg-config --cflags spillway-hts) "$here/host/digest.cpp" $(pkg-config --libs spillway-hts) \
        -o "$scratch/digest"
    expect "pkg-config spillway-hts" "f1f8f4bf413b16ad135722aa4591043e" "$scratch/digest"
fi
