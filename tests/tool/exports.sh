#!/bin/sh
# SPDX-License-Identifier: MIT
# Holds the library's exported symbols against the version script and the public headers, and its needed libraries
# against the promise to link no part of CUDA.
library=${abs_top_builddir:-.}/.libs/libhdrt.so
source=${abs_top_srcdir:-.}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
number=0

result() { # $1: status, $2: what was checked, $3: a file with the lines that are wrong
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
        [ -n "$3" ] && sed 's/^/# /' "$3"
    fi
}

if ! command -v nm >/dev/null || ! command -v readelf >/dev/null; then
    echo "1..0 # SKIP nm and readelf are needed (binutils)"
    exit 0
fi
echo 1..6

# A declaration may spread over lines: join each from HDRT_EXPORT to its semicolon, then take the name before "(".
cat "$source"/include/hdrt.h "$source"/include/hdrt/*.h | sed '/^ *#/d' | tr '\n' ' ' |
    grep -o 'HDRT_EXPORT [^;]*;' | sed 's/(.*//; s/.*[ *]//' | sort >"$scratch/headers"
sed -n 's/^ *\([a-z][a-z0-9_]*\);$/\1/p' "$source/lib/libhdrt.map" | sort >"$scratch/map"
nm -D --defined-only "$library" | awk '{print $3}' >"$scratch/symbols"
grep -v '^HDRT_[0-9.]*$' "$scratch/symbols" | sed 's/@.*//' | sort >"$scratch/exported"

test -s "$scratch/headers" && test -s "$scratch/exported"
result $? "the headers declare and the library exports something"

comm -3 "$scratch/headers" "$scratch/map" >"$scratch/wrong"
test ! -s "$scratch/wrong"
result $? "the version script lists what the headers declare (left: headers only, right: script only)" "$scratch/wrong"

comm -3 "$scratch/map" "$scratch/exported" >"$scratch/wrong"
test ! -s "$scratch/wrong"
result $? "the library exports what the version script lists (left: not exported, right: not listed)" "$scratch/wrong"

grep -v '^hdrt_' "$scratch/exported" >"$scratch/wrong"
test ! -s "$scratch/wrong"
result $? "every exported symbol begins hdrt_" "$scratch/wrong"

grep -v '@@*HDRT_[0-9]' "$scratch/symbols" | grep -v '^HDRT_[0-9.]*$' >"$scratch/wrong"
test ! -s "$scratch/wrong"
result $? "every exported symbol is versioned" "$scratch/wrong"

readelf -d "$library" | grep -iE 'NEEDED.*(libcuda|nvrtc|cudart|nvidia)' >"$scratch/wrong"
test ! -s "$scratch/wrong"
result $? "the library needs neither libcuda nor NVRTC nor cudart" "$scratch/wrong"
